"""A figure of the benchmark: name, value, goal, whether it was reached; and the file that keeps the last of each."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from pgstrata import __version__

# What shortens a benchmark, and so belongs to its figures.
SHORTENED = (
    "LOADS",
    "TRUTH_MINUTES",
    "VISITS",
    "PAIRS",
    "SEEDS",
    "KINDS",
    "ROUNDS",
    "REPETITIONS",
    "BLOCKS",
    "WEEKS",
    "INCIDENTS",
    "FAMILIES",
    "TIMES",
    "RUN_MINUTES",
    "SIDES",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured figure; `low_is_good` false turns the goal into a floor."""

    name: str
    value: float
    goal: float
    unit: str = ""
    low_is_good: bool = True
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def reached(self) -> bool:
        return self.value <= self.goal if self.low_is_good else self.value >= self.goal

    def line(self) -> str:
        sign = "<=" if self.low_is_good else ">="
        state = "ok" if self.reached else "short"
        return f"{self.name:<36} {self.value:>10.4g} {self.unit:<6} goal {sign} {self.goal:g}  {state}"


Benchmark = Callable[[], Iterable[Figure]]


def run_benchmarks(benchmarks: dict[str, Benchmark], only: str | None, results: Path) -> int:
    """Measure, print a line per figure as it comes, keep all as JSON; always 0, unless a name is unknown.

    `only` names some of them, separated by commas. A benchmark that was measured replaces its own figures in `results`
    as soon as it has ended, those of the others stay.
    """
    wanted = [name.strip() for name in (only or "").split(",") if name.strip()]
    unknown = [name for name in wanted if name not in benchmarks]
    if unknown:
        print(f"there is no benchmark {', '.join(unknown)}: {', '.join(benchmarks)}")
        return 2
    # before anything is written, results and pages of the documentation included
    commit = _commit()
    for name, benchmark in benchmarks.items():
        if not wanted or name in wanted:
            print(f"# {name}", flush=True)
            done: list[Figure] = []
            for figure in benchmark():
                print(figure.line(), flush=True)
                for note in figure.notes:
                    print(f"    {note}", flush=True)
                done.append(figure)
            if done:
                keep_figures(results, name, done, commit)
    return 0


def keep_figures(results: Path, name: str, figures: Sequence[Figure], commit: str | None) -> None:
    """Put the figures of one benchmark into the file, which is whole at any time."""
    try:
        kept = json.loads(results.read_text())
    except (OSError, ValueError):
        kept = {}
    content = {**(kept if isinstance(kept, dict) else {}), name: _entry(figures, commit)}
    draft = results.with_name(f"{results.name}.{os.getpid()}")
    draft.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
    draft.replace(results)


def _entry(figures: Sequence[Figure], commit: str | None) -> Mapping[str, Any]:
    versions = {"pgstrata": __version__, "python": platform.python_version(), "numpy": np.__version__}
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "versions": {**versions, "kernel": platform.release()},
        "shortened": {name: os.environ[name] for name in SHORTENED if os.environ.get(name)},
        "figures": [
            # JSON has no infinity, which is the value of what never came to the right answer.
            {**asdict(figure), "value": figure.value if math.isfinite(figure.value) else None,
             "state": "ok" if figure.reached else "short"}
            for figure in figures
        ],
    }  # fmt: skip


def say_share(count: int, made: int) -> str:
    """With Wilson's interval for a proportion (Wilson 1927) at 95 %, where anything was made."""
    if not made:
        return "none"
    share, z2 = count / made, 1.96**2
    centre = (share + z2 / (2 * made)) / (1 + z2 / made)
    half = 1.96 * math.sqrt(share * (1 - share) / made + z2 / (4 * made**2)) / (1 + z2 / made)
    return f"{count} of {made}, 95 % interval {max(0.0, 100 * (centre - half)):.0f} to {100 * (centre + half):.0f} %"


def _commit() -> str | None:
    """The commit of the checkout, with "-dirty" where files were changed since; None outside of one."""
    return _ask_git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def commit_of_source() -> str:
    """The last commit that changed `src`, short, with "-dirty" where it was changed since; "unknown" outside of one."""
    found = _ask_git("log", "-1", "--format=%h", "--abbrev=8", "--", ":/src")
    return f"{found}-dirty" if found and _ask_git("status", "--porcelain", "--", ":/src") else found or "unknown"


def _ask_git(*words: str) -> str | None:
    try:
        done = subprocess.run(("git", *words), cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
