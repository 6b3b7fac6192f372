"""Points of curves over clients and single runs that look wrong by the primary metric.

They stay in every estimate, and nothing is measured because of them: whether one stays is a question for a new study,
whose blocks know nothing of the suspicion.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from pgstrata.compare.by_load import find_curves
from pgstrata.compare.pairing.arms import Arms, find_arm, sort_runs
from pgstrata.compare.pairing.pairs import to_ratio
from pgstrata.model.anomaly import Anomaly, AnomalyKind
from pgstrata.model.experiment import Cell, Experiment
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.stats.anomaly import JUDGED_FROM, find_kinks, run_limit
from pgstrata.stats.ranks import FloatArray

FEWEST_POINTS: Final = 5
_WHOLE_BLOCKS: Final = 3


def find_anomalies(plan: Plan, runs: Sequence[RunRecord]) -> tuple[Anomaly, ...]:
    """Kinks first, then runs far from the median of their environment in a cell, the largest first.

    Args:
        plan: what was to be measured.
        runs: what was measured so far, in any order.

    Raises:
        ValueError: a run is there twice.
    """
    arms = sort_runs(runs, frozenset((plan.experiment.metric,)))
    blocks = sorted({run.block for run in runs})
    found = [*_find_kinks(plan.experiment, arms, blocks), *_find_strays(plan, arms)]
    return tuple(sorted(found, key=lambda one: (one.kind is AnomalyKind.RUN, -_size(one.effect))))


def _size(ratio: float) -> float:
    return abs(math.log(ratio)) if ratio > 0 else math.inf


def _find_kinks(experiment: Experiment, arms: Arms, blocks: Sequence[int]) -> Iterator[Anomaly]:
    metric = experiment.metric
    for curve in find_curves(experiment, FEWEST_POINTS):
        for environment in (each.name for each in experiment.environments):
            # Of a point that collapsed only the luckier runs are left.
            sound = [cell for cell in curve if not find_arm(arms, environment, cell.identity).has_collapsed]
            cells = [cell for cell in sound if find_arm(arms, environment, cell.identity).values.get(metric)]
            logs = _whole_blocks(_read_logs(arms, environment, cells, blocks, metric))
            kinks = find_kinks([cell.clients for cell in cells], logs) if len(cells) >= FEWEST_POINTS else ()
            seen = tuple(block for block, row in zip(blocks, logs, strict=True) if np.isfinite(row).any())
            for kink in kinks:
                yield Anomaly(
                    kind=AnomalyKind.KINK,
                    environment=environment,
                    cell=cells[kink.place].identity,
                    witness=cells[kink.witness].identity,
                    metric=metric,
                    effect=to_ratio(kink.residual),
                    blocks=seen,
                )


def _read_logs(arms: Arms, environment: str, cells: Sequence[Cell], blocks: Sequence[int], metric: str) -> FloatArray:
    """ln of the values, shape (blocks, cells), NaN where there is none."""
    found = [find_arm(arms, environment, cell.identity).levels(metric) for cell in cells]
    values = np.array([[by_block.get(block, math.nan) for by_block in found] for block in blocks], dtype=np.float64)
    return np.asarray(np.log(values.reshape(len(blocks), len(cells))), dtype=np.float64)


def _whole_blocks(logs: FloatArray) -> FloatArray:
    """Without the blocks that lack a point, as long as enough are left: points that go on alone drift with the host."""
    lacking = ~np.isfinite(logs).all(axis=1, keepdims=True)
    return np.where(lacking, np.nan, logs) if (~lacking).sum() >= _WHOLE_BLOCKS else logs


def _find_strays(plan: Plan, arms: Arms) -> Iterator[Anomaly]:
    """Runs far from the median of their environment, with at least six blocks to tell."""
    metric = plan.experiment.metric
    for (environment, cell), arm in arms.items():
        values = dict(sorted(arm.levels(metric).items()))
        if arm.has_collapsed or len(values) < JUDGED_FROM:
            continue
        logs = np.log(np.array(list(values.values()), dtype=np.float64))
        off = logs - np.median(logs)
        # Where the machine drifts more than its floor says, a run that goes along with it is not the one to be blamed.
        limit = max(run_limit(_floor(plan, cell), logs), run_limit(None, logs))
        for place in np.flatnonzero(np.abs(off) > limit).tolist():
            yield Anomaly(
                kind=AnomalyKind.RUN,
                environment=environment,
                cell=cell,
                witness=cell,
                metric=metric,
                effect=to_ratio(off[place]),
                blocks=(list(values)[place],),
                following=to_ratio(off[place + 1]) if place + 1 < off.size else None,
            )


def _floor(plan: Plan, cell: str) -> float | None:
    floor = plan.floors.get(cell)
    return floor.s0 if floor is not None and floor.valid and floor.metric == plan.experiment.metric else None
