"""A study of 1 000 runs with sampled sessions: CPU of `show --why`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from figures import Figure
from startup import cpu_of
from synthetic import write_why_study


def measure_why() -> Sequence[Figure]:
    """CPU seconds, Python's start included."""
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "why"
        count = write_why_study(study)
        command = (sys.executable, "-m", "pgstrata", "show", str(study))
        plain, why = (min(cpu_of((*command, *option)) for _ in range(3)) for option in ((), ("--why",)))
    return [
        Figure(name=f"why: show --why, {count} runs", value=why, goal=3.0, unit="s CPU",
               notes=(f"without --why {plain:.2f} s",)),
    ]  # fmt: skip
