"""Seconds of a visit in slices, by step: select-only at scale 10, two and four environments that are equal.

    ONLY=visit make bench
    VISITS=20 ONLY=visit make bench

The first six visits have an unlogged stretch of each environment; those after it have none and count.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from figures import Figure

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.model.runs import RunRecord
from pgstrata.plan.design import STRETCHED_BLOCKS
from pgstrata.ports.events import Event, EventKind
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

ARMS = (2, 4)
GOALS = {2: 7.5, 4: 10.0}
HEAD = """
question = "What does a visit cost?"
blocks = {visits}
seed = {arms}
interleave = "slices"
[[cells]]
workload = "select-only"
scale = 10
clients = 2
"""
ENVIRONMENT = """
[[environments]]
name = "arm{number}"
server = "embedded"
settings.random_page_cost = {cost}
"""


@dataclass(slots=True, kw_only=True)
class Stopwatch:
    """Implements `ports.Events`: when each block ended, on the monotonic clock."""

    ends: list[float] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        if event.kind is EventKind.BLOCK_FINISHED:
            self.ends.append(time.monotonic())


def measure_visit() -> Sequence[Figure]:
    """The median visit after those with a stretch, for each number of environments."""
    visits = int(os.environ.get("VISITS", "16"))
    return [_measure(arms, max(visits, STRETCHED_BLOCKS + 2)) for arms in ARMS]


def _measure(arms: int, visits: int) -> Figure:
    with tempfile.TemporaryDirectory() as temporary:
        folder, watch = Path(temporary), Stopwatch()
        file = folder / "visit.toml"
        environments = (ENVIRONMENT.format(number=number, cost=1.1 + number / 10) for number in range(arms))
        file.write_text(HEAD.format(visits=visits, arms=arms) + "".join(environments))
        plan = replace(load_plan(file), floors={})
        run_experiment(plan, StudyFolder(folder / "study"), watch, stop_early=False)
        runs = load_study(folder / "study").runs
    # the first visit has no end before it: it is among those with a stretch
    seconds = [later - earlier for earlier, later in zip(watch.ends, watch.ends[1:], strict=False)]
    with_stretch, without = seconds[: STRETCHED_BLOCKS - 1], seconds[STRETCHED_BLOCKS - 1 :]
    steps = _steps([run for run in runs if run.block > STRETCHED_BLOCKS])
    notes = [
        f"median of {len(without)} visits, from {min(without):.1f} to {max(without):.1f} s",
        f"with a stretch {median(with_stretch):.1f} s ({len(with_stretch)} visits)",
        ", ".join(f"{name} {value:.2f}" for name, value in sorted(steps.items(), key=lambda item: -item[1])),
    ]
    return Figure(name=f"visit: {arms} environments", value=median(without), goal=GOALS[arms], unit="s", notes=notes)


def _steps(runs: Sequence[RunRecord]) -> Mapping[str, float]:
    """Median seconds of each step in a visit, all environments together; turns are the slices."""
    visits: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for run in runs:
        visits[run.together]["turns"] += run.measured_seconds
        for name, value in run.dead_time.items():
            visits[run.together][name] += value
    names = {name for visit in visits.values() for name in visit}
    return {name: median(visit.get(name, 0.0) for visit in visits.values()) for name in names}
