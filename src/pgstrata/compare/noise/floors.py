"""The A/A differences of a study: what its control says about the noise of the rig.

Only the control `same` counts: it is the baseline a second time, in the same build and on the same data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgstrata.compare.pairing.arms import sort_runs
from pgstrata.compare.pairing.pairs import over_cells, pair_cells
from pgstrata.compare.verdicts.judging import ask
from pgstrata.model.experiment import ControlKind, Environment
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlDifferences:
    """D of the control against the baseline in one cell (or `ALL_CELLS`, their mean), in log units, block by block."""

    cell: str
    metric: str
    d: tuple[float, ...]


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
    found: list[ControlDifferences] = []
    for metric in metrics:
        pairings = pair_cells(arms, ask(plan, metric), control.name)
        sound = [pairing for pairing in pairings if not (pairing.arm.has_collapsed or pairing.base.has_collapsed)]
        whole = [over_cells(sound)] if len(pairings) > 1 and len(sound) == len(pairings) else []
        found += [
            ControlDifferences(cell=pairing.cell, metric=metric, d=tuple(pairing.differences.tolist()))
            for pairing in (*sound, *whole)
            if pairing.blocks
        ]
    return tuple(found)
