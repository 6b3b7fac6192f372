"""Runs by arm, and the pairs of blocks that a comparison is made of."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pgstrata.model.answer import Interval
from pgstrata.model.experiment import Environment
from pgstrata.model.metrics import METRICS
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.rule import Span
from pgstrata.units import Direction

CLIENT_SHARE: Final = "client_share"
COMPANIONS: Final = frozenset({"checkpoints", "autovacuums", "wal_per_tx"})
"""What must be alike in both arms, or be said."""


@dataclass(slots=True, kw_only=True)
class Arm:
    """The runs of one environment in one cell, by what became of them.

    `values` by metric, then by block; `companions` are what happened beside the runs, by metric.
    """

    name: str
    made: int = 0
    invalid: int = 0
    collapsed: int = 0
    suspect: int = 0
    blocks: set[int] = field(default_factory=set)
    values: dict[str, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    companions: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def has_collapsed(self) -> bool:
        return 2 * self.collapsed > self.made


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """One comparison to be made: values of the blocks in which both arms have one, each of shape (n,)."""

    environment: Environment
    cell: str
    metric: str
    arm: Arm
    base: Arm
    values: FloatArray
    base_values: FloatArray

    @property
    def sign(self) -> float:
        """Turns ln(value / baseline value) so that above zero is better."""
        return 1.0 if METRICS[self.metric].direction is Direction.HIGHER else -1.0

    @property
    def differences(self) -> FloatArray:
        """D of each block. A difference of logarithms changes its sign exactly where the arms are swapped."""
        return np.asarray(self.sign * (np.log(self.values) - np.log(self.base_values)), dtype=np.float64)

    def ratio(self, d: float) -> float:
        """An oriented log difference as value / baseline value."""
        return math.exp(self.sign * d)

    def interval(self, span: Span | None) -> Interval | None:
        """An oriented span as ratios, the lower first."""
        if span is None:
            return None
        low, high = sorted((self.ratio(span.low), self.ratio(span.high)))
        return Interval(low=low, high=high)


def sort_runs(runs: Sequence[RunRecord], metrics: frozenset[str]) -> dict[tuple[str, str], Arm]:
    """Runs by environment and cell, with the values of the metrics asked for.

    Raises:
        ValueError: an environment has two runs of one cell in one block.
    """
    arms: dict[tuple[str, str], Arm] = {}
    for run in runs:
        key = (run.environment, run.cell)
        if key not in arms:
            arms[key] = Arm(name=run.environment)
        arm = arms[key]
        if run.block in arm.blocks:
            raise ValueError(f"two runs of {run.environment} in block {run.block}, cell {run.cell}")
        _add_run(arm, run, metrics)
    return arms


def _add_run(arm: Arm, run: RunRecord, metrics: frozenset[str]) -> None:
    arm.blocks.add(run.block)
    arm.made += 1
    if run.status is RunStatus.COLLAPSED:
        arm.collapsed += 1
        return
    if not may_enter(run):
        arm.invalid += 1
        return
    arm.suspect += run.validity is Validity.SUSPECT
    for measurement in run.measurements:
        if measurement.metric in metrics:
            arm.values[measurement.metric].setdefault(run.block, measurement.value)
        if measurement.metric in COMPANIONS:
            arm.companions[measurement.metric].append(measurement.value)


def may_enter(run: RunRecord) -> bool:
    """Whether a run may be part of an estimate."""
    return run.status is RunStatus.COMPLETED and run.validity is not Validity.INVALID


def pair_metrics(
    arms: Mapping[tuple[str, str], Arm], environment: Environment, baseline: str, cell: str, metrics: Sequence[str]
) -> list[Pairing]:
    """Pairings of one environment in one cell; the first metric is always there."""
    arm = arms.get((environment.name, cell)) or Arm(name=environment.name)
    base = arms.get((baseline, cell)) or Arm(name=baseline)
    pairings = []
    for metric in metrics:
        if metric != metrics[0] and metric not in arm.values and metric not in base.values:
            continue
        values, base_values = arm.values.get(metric, {}), base.values.get(metric, {})
        blocks = [
            block
            for block in sorted(values.keys() & base_values.keys())
            if 0 < values[block] < math.inf and 0 < base_values[block] < math.inf
        ]
        pairings.append(
            Pairing(
                environment=environment,
                cell=cell,
                metric=metric,
                arm=arm,
                base=base,
                values=np.array([values[block] for block in blocks], dtype=np.float64),
                base_values=np.array([base_values[block] for block in blocks], dtype=np.float64),
            )
        )
    return pairings


def median(values: FloatArray) -> float | None:
    """Median of shape (n,), None without values; on a few dozen values several times faster than numpy's."""
    if not values.size:
        return None
    ascending = sorted(values.tolist())
    return float((ascending[(len(ascending) - 1) // 2] + ascending[len(ascending) // 2]) / 2)


def client_share(runs: Sequence[RunRecord], environment: str, cell: str) -> float | None:
    """Median of the client's share of the CPU time (0 to 1) over the valid and suspect runs; None without any."""
    found = [
        value
        for run in runs
        if run.environment == environment and run.cell == cell and may_enter(run)
        for value in (run.value(CLIENT_SHARE),)
        if value is not None and math.isfinite(value)
    ]
    return median(np.array(found, dtype=np.float64))
