"""The A/A differences of a study: what its control says about the noise of the rig.

Only the control `same` counts: it is the baseline a second time, in the same build and on the same data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pgstrata.compare.arms import Arms, find_arm, sort_runs
from pgstrata.compare.noise import measure_runs, measure_slices
from pgstrata.compare.shared_blocks import align, over_rounds, shared_blocks
from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.experiment import ControlKind, Environment
from pgstrata.model.floor import RunsMeasured, SlicesMeasured
from pgstrata.model.metrics import METRICS, TPS
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlDifferences:
    """D of the control against the baseline in one cell (or `ALL_CELLS`, their mean), in log units, block by block.

    Throughput of a cell has `slices` or `runs` as well, by the design of the cell, where they can be estimated.
    """

    cell: str
    metric: str
    d: tuple[float, ...]
    slices: SlicesMeasured | None = None
    runs: RunsMeasured | None = None


def find_control(plan: Plan) -> Environment | None:
    """The baseline a second time; None where the experiment has none."""
    return next((one for one in plan.experiment.environments if one.control is ControlKind.SAME), None)


def control_differences(
    plan: Plan, runs: Sequence[RunRecord], metrics: Sequence[str]
) -> tuple[ControlDifferences, ...]:
    """A/A differences in the order of cells and metrics; what has none is left out.

    They are paired as comparisons are: by blocks, the median over its rounds for a block in slices. A cell in which an
    arm collapsed has none, and where the plan has several cells, the mean over them needs all of a block.
    """
    control = find_control(plan)
    if control is None:
        return ()
    arms = sort_runs(runs, frozenset(metrics))
    baseline = plan.experiment.baseline
    cells = [cell.identity for cell in plan.experiment.cells]
    found: list[ControlDifferences] = []
    for metric in metrics:
        by_cell = {cell: _by_block(arms, control.name, baseline, cell, metric) for cell in cells}
        found += [
            ControlDifferences(cell=cell, metric=metric, d=tuple(by_cell[cell].values()))
            for cell in cells
            if by_cell[cell]
        ]
        together = _mean_over(list(by_cell.values())) if len(cells) > 1 else ()
        if together:
            found.append(ControlDifferences(cell=ALL_CELLS, metric=metric, d=together))
    return tuple(_with_components(plan, arms, runs, one) for one in found)


def _with_components(
    plan: Plan, arms: Arms, runs: Sequence[RunRecord], found: ControlDifferences
) -> ControlDifferences:
    control = find_control(plan)
    if control is None or found.metric != TPS.name or found.cell == ALL_CELLS:
        return found
    own = [run for run in runs if run.cell == found.cell]
    design, names = plan.design(found.cell), (control.name, plan.experiment.baseline)
    if design.sliced:
        pair = (find_arm(arms, names[0], found.cell), find_arm(arms, names[1], found.cell))
        logs = align(pair, found.metric, shared_blocks(pair).blocks).logs
        return replace(found, slices=measure_slices(design, logs[0] - logs[1], own))
    return replace(found, runs=measure_runs(names, found.d, own))


def _by_block(arms: Arms, control: str, baseline: str, cell: str, metric: str) -> dict[int, float]:
    pair = (find_arm(arms, control, cell), find_arm(arms, baseline, cell))
    if any(arm.has_collapsed for arm in pair):
        return {}
    aligned = align(pair, metric, shared_blocks(pair).blocks)
    if not aligned.blocks:
        return {}
    d = METRICS[metric].sign * over_rounds(aligned.logs[0] - aligned.logs[1], aligned.least)
    return {block: float(value) for block, value in zip(aligned.blocks, d, strict=True) if np.isfinite(value)}


def _mean_over(cells: Sequence[Mapping[int, float]]) -> tuple[float, ...]:
    """The mean over cells is the logarithm of the geometric mean of their ratios."""
    shared = sorted(set.intersection(*(set(cell) for cell in cells)))
    return tuple(sum(cell[block] for cell in cells) / len(cells) for block in shared)
