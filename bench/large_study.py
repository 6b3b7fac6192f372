"""A study of 5 000 runs: CPU of `show`, size of the report, and the time until a browser has painted it."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from figures import Figure
from startup import cpu_of
from support import load_support
from synthetic import write_large_study

TIMES = 5
# "complete" is set before the event that it announces has been handled, so both are awaited.
_LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"
_PAINTED = "(performance.getEntriesByName('first-contentful-paint')[0] || {}).startTime"


def measure_large_study() -> Iterator[Figure]:
    """CPU seconds of `pgstrata show`, Python's start included; megabytes of the report; seconds to its first paint."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study, target = folder / "large", folder / "large.html"
        count = write_large_study(study)
        show = min(cpu_of((sys.executable, "-m", "pgstrata", "show", str(study))) for _ in range(3))
        yield Figure(name=f"large study: show, {count} runs", value=show, goal=2.0, unit="s CPU")
        report = cpu_of((sys.executable, "-m", "pgstrata", "report", str(study), "-o", str(target)))
        size = target.stat().st_size / 1e6
        yield Figure(name=f"large study: report, {count} runs", value=size, goal=3.0, unit="MB")
        yield Figure(name=f"large study: making the report, {count} runs", value=report, goal=6.0, unit="s CPU")
        yield from _paint(target, folder, count)


def _paint(page: Path, folder: Path, count: int) -> Iterator[Figure]:
    """Medians over several headless browsers, each with an empty profile."""
    chromium = load_support("chromium")
    if chromium.PROGRAM is None:
        print("    no first paint: there is no Chromium")
        return
    painted, loaded = [], []
    for number in range(TIMES):
        with chromium.opened(folder / f"profile-{number}") as tab:
            tab.resize(1400, 900)
            tab.show(page)
            tab.wait(f"{_PAINTED} > 0 && {_LOADED} > 0")
            painted.append(tab.run(_PAINTED) / 1e3)
            loaded.append(tab.run(_LOADED) / 1e3)
    note = f"slowest of {TIMES}: {max(painted):.2f} s; all of it loaded after {statistics.median(loaded):.2f} s"
    yield Figure(
        name=f"large study: first paint, {count} runs", value=statistics.median(painted), goal=2.0, unit="s",
        notes=(note,),
    )  # fmt: skip
