"""A study of 5 000 runs: CPU of `show`, size of the report."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from figures import Figure
from startup import cpu_of
from synthetic import write_large_study


def measure_large_study() -> Sequence[Figure]:
    """CPU seconds of `pgstrata show`, Python's start included; megabytes of the report."""
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "large"
        count = write_large_study(study)
        show = min(cpu_of((sys.executable, "-m", "pgstrata", "show", str(study))) for _ in range(3))
        target = Path(folder) / "large.html"
        report = cpu_of((sys.executable, "-m", "pgstrata", "report", str(study), "-o", str(target)))
        size = target.stat().st_size / 1e6
    return [
        Figure(name=f"large study: show, {count} runs", value=show, goal=2.0, unit="s CPU"),
        Figure(name=f"large study: report, {count} runs", value=size, goal=3.0, unit="MB",
               notes=(f"made in {report:.1f} s of CPU",)),
    ]  # fmt: skip
