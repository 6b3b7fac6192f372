"""Runs the experiment of `make demo` repeatedly: how often are all its comparisons decided correctly and in time?

It runs on a quiet machine and beside two busy loops, and takes more than an hour. TIMES=3 repeats it less often;
SIDES=quiet measures the quiet machine only. Minutes are those of the whole command, without building the data.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from figures import Figure, say_share
from loops import busy
from observer import Silence

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.compare import compare_study
from pgstrata.model.answer import Verdict
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

EXPERIMENT = Path(__file__).parents[1] / "examples" / "demo.toml"
TIMES = 10
# By side: loops beside the experiment, and the minutes in which all of it should be decided.
SIDES = {"quiet": (0, 3.0), "beside two busy loops": (2, 5.0)}
RIGHT = {"18-more-work": Verdict.WORSE, "18-small-cache": Verdict.WORSE, "18-control": Verdict.EQUIVALENT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One run of the demo: verdicts by environment, and the minutes that the command took."""

    minutes: float
    verdicts: dict[str, Verdict]

    def right(self, minutes: float) -> bool:
        return self.minutes <= minutes and self.verdicts == RIGHT

    def __str__(self) -> str:
        wrong = [f"{name}: {self.verdicts.get(name)}" for name in RIGHT if self.verdicts.get(name) is not RIGHT[name]]
        return f"{self.minutes:.1f} min" + (f" ({', '.join(wrong)})" if wrong else "")


def measure_demo() -> Iterator[Figure]:
    """Percentage of demos in which all three comparisons got the right verdict within the minutes in `SIDES`."""
    times = int(os.environ.get("TIMES") or TIMES)
    wanted = os.environ.get("SIDES", "")
    ask(EXPERIMENT)  # builds the data, which the others find
    for side, (loops, minutes) in SIDES.items():
        if wanted and side.split()[0] not in wanted.split(","):
            continue
        asked = []
        with busy(loops):
            for number in range(times):
                asked.append(ask(EXPERIMENT))
                print(f"    {side}, {number + 1} of {times}: {asked[-1]}", flush=True)
        right = sum(each.right(minutes) for each in asked)
        median = statistics.median(each.minutes for each in asked)
        yield Figure(
            name=f"demo, {side}: right in {minutes:g} min",
            value=100 * right / times,
            goal=90,
            unit="%",
            low_is_good=False,
            notes=(f"{say_share(right, times)}; {median:.1f} min in the median", *map(str, asked)),
        )


def ask(file: Path) -> Asked:
    """Run the experiment once, without noise floors, as on a machine that has never measured before."""
    with tempfile.TemporaryDirectory() as folder:
        plan = replace(load_plan(file), floors={})
        begun = time.monotonic()
        run_experiment(plan, StudyFolder(Path(folder) / "study"), Silence())
        minutes = (time.monotonic() - begun) / 60
        found = compare_study(plan, load_study(Path(folder) / "study", series=True).runs)
    verdicts = {each.environment: each.verdict for each in found if each.metric == "tps" and not each.exploratory}
    return Asked(minutes=minutes, verdicts=verdicts)
