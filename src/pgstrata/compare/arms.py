"""Runs by arm: what each environment did in each cell, and its values by block, ready to be compared."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from pgstrata.compare.steady import SteadyPart, find_steady
from pgstrata.model.metrics import NEIGHBOURS, TPS
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.stats.ranks import FloatArray

COMPANIONS: Final = frozenset({"checkpoints", "autovacuums", "wal_per_tx"})
"""What must be alike in both arms, or be said."""
SETTLED_RUNS: Final = 3
"""Runs from which on a collapse ends the measuring."""


@dataclass(slots=True, kw_only=True)
class Arm:
    """The runs of one environment in one cell, by what became of them.

    `blocks` are those of all runs; `tokens` hold `RunRecord.together` by block for the runs that may enter an estimate;
    `values`, by metric and block, only what a logarithm can be taken of; `rounds`, by block, tps of each round of
    slices, shape (rounds,); `neighbours`, by block, is the share of the CPUs that other processes used; `companions`
    are what happened beside the runs, by metric; `steady`, by block, is the part of a run that was alone of which its
    throughput was taken.
    """

    name: str
    made: int = 0
    invalid: int = 0
    collapsed: int = 0
    suspect: int = 0
    blocks: set[int] = field(default_factory=set)
    tokens: dict[int, str] = field(default_factory=dict)
    values: dict[str, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    rounds: dict[int, FloatArray] = field(default_factory=dict)
    neighbours: dict[int, float] = field(default_factory=dict)
    companions: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    steady: dict[int, SteadyPart] = field(default_factory=dict)

    @property
    def has_collapsed(self) -> bool:
        """Whether most runs collapsed: of such an environment only the luckier runs are left to compare."""
        return 2 * self.collapsed > self.made

    @property
    def is_closed(self) -> bool:
        """Whether it collapsed in so many runs that measuring goes on without it."""
        return self.has_collapsed and self.made >= SETTLED_RUNS

    def levels(self, metric: str) -> dict[int, float]:
        """Values by block that can be compared with those of other blocks.

        Of throughput those of whole runs, because blocks are not all cut alike; of a run that took turns the median of
        its rounds, because its throughput is that of a short unlogged stretch before them.
        """
        values = self.values.get(metric, {})
        if metric != TPS.name:
            return dict(values)
        found = {block: value / self.ratio(block) for block, value in values.items()}
        medians = {block: np.median(rounds[rounds > 0]) for block, rounds in self.rounds.items() if (rounds > 0).any()}
        return {block: float(medians.get(block, value)) for block, value in found.items()}

    def ratio(self, block: int) -> float:
        """Throughput after the cut over that of the whole run."""
        return self.steady[block].ratio if block in self.steady else 1.0


Arms = Mapping[tuple[str, str], Arm]
"""By environment and cell."""


def sort_runs(runs: Sequence[RunRecord], metrics: frozenset[str]) -> dict[tuple[str, str], Arm]:
    """Runs by environment and cell, with the values of the metrics asked for.

    Throughput of a run that was alone is that after the warm-up cut of its block (`find_steady`), all else that of the
    whole run.

    Raises:
        ValueError: an environment has two runs of one cell in one block.
    """
    arms: dict[tuple[str, str], Arm] = {}
    parts = find_steady(run for run in runs if may_enter(run)) if TPS.name in metrics else {}
    for run in runs:
        key = (run.environment, run.cell)
        if key not in arms:
            arms[key] = Arm(name=run.environment)
        arm = arms[key]
        if run.block in arm.blocks:
            raise ValueError(f"two runs of {run.environment} in block {run.block}, cell {run.cell}")
        _add_run(arm, run, metrics, parts.get(run.identity))
    return arms


def cut_runs(runs: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """The same runs with the warm-up already cut from their throughput, for whoever sorts many parts of them.

    Their seconds are gone, so that nothing is cut twice. As a cut does not hang on later blocks, the first blocks of
    these are what the first blocks of `runs` would have come to.
    """
    parts = find_steady(run for run in runs if may_enter(run))
    return tuple(_cut_run(run, parts[run.identity]) if run.identity in parts else run for run in runs)


def whole_runs(runs: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """The same runs without their seconds, so that nothing is cut: for levels, of which each run has its own."""
    return tuple(_without_seconds(run) for run in runs)


def _cut_run(run: RunRecord, part: SteadyPart) -> RunRecord:
    if not part.cut:
        return _without_seconds(run)
    return replace(
        _without_seconds(run),
        measurements=tuple(
            replace(found, value=found.value * part.ratio) if found.metric == TPS.name else found
            for found in run.measurements
        ),
    )


def _without_seconds(run: RunRecord) -> RunRecord:
    return replace(run, series=tuple(series for series in run.series if series.metric != TPS.name))


def _add_run(arm: Arm, run: RunRecord, metrics: frozenset[str], part: SteadyPart | None) -> None:
    arm.blocks.add(run.block)
    arm.made += 1
    if run.status is RunStatus.COLLAPSED:
        arm.collapsed += 1
        return
    if not may_enter(run):
        arm.invalid += 1
        return
    arm.suspect += run.validity is Validity.SUSPECT
    arm.tokens[run.block] = run.together
    if part is not None:
        arm.steady[run.block] = part
    for measurement in run.measurements:
        if measurement.metric in metrics:
            found = arm.values[measurement.metric]
            value = measurement.value * (part.ratio if part and measurement.metric == TPS.name else 1.0)
            if 0 < value < math.inf:
                found.setdefault(run.block, value)
        if measurement.metric == NEIGHBOURS:
            arm.neighbours[run.block] = measurement.value
        if measurement.metric in COMPANIONS:
            arm.companions[measurement.metric].append(measurement.value)
    if run.together and TPS.name in metrics:
        # The catalogue keeps series in single precision: a run that was just derived must give the same difference.
        arm.rounds[run.block] = np.array(run.rounds(), dtype=np.float32).astype(np.float64)


def find_arm(arms: Arms, environment: str, cell: str) -> Arm:
    """The arm, empty where nothing was measured yet."""
    return arms.get((environment, cell)) or Arm(name=environment)


def may_enter(run: RunRecord) -> bool:
    """Whether a run may be part of an estimate."""
    return run.status is RunStatus.COMPLETED and run.validity is not Validity.INVALID
