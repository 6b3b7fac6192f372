"""What the rig could have seen, from the floors that were frozen with a plan: in words and for JSON. Pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pgstrata.compare.verdicts.judging import threshold_of
from pgstrata.model.answer import ALL_CELLS, Comparison
from pgstrata.model.floor import Floor
from pgstrata.model.metrics import METRICS
from pgstrata.model.plan import HORIZON, Plan
from pgstrata.report.planning.known_floor import floor_fields, say_source
from pgstrata.report.sentences.names import TOGETHER
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.stats.boundaries import ALPHA, GRID
from pgstrata.stats.power import smallest_effect

_FEW_BLOCKS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What could be seen in one cell: a floor, the blocks it is applied to, the smallest visible effect as a share.

    `effect` is None where no effect is large enough, because there are too few blocks.
    """

    floor: Floor
    blocks: int
    effect: float | None


def find_sensitivities(plan: Plan, comparisons: Iterable[Comparison] = ()) -> tuple[Sensitivity, ...]:
    """One for each floor that may be relied upon: all cells together first, then the cells of the plan in order.

    The blocks are those of the cell's comparisons by the primary metric (the most of them), or all that are planned.
    """
    blocks: dict[str, int] = {}
    for comparison in comparisons:
        if comparison.metric == plan.experiment.metric:
            blocks[comparison.cell] = max(_blocks_of(plan, comparison), blocks.get(comparison.cell, 0))
    known = find_valid_floors(plan)
    return tuple(sensitivity_with(plan, floor, blocks.get(floor.cell, len(plan.blocks))) for floor in known)


def find_valid_floors(plan: Plan) -> list[Floor]:
    """Floors that may be relied upon: that of all cells together first, then the cells of the plan in order."""
    return [floor for floor in _ordered(plan) if floor.valid]


def _ordered(plan: Plan) -> list[Floor]:
    names = (ALL_CELLS, *(cell.identity for cell in plan.experiment.cells))
    return [plan.floors[name] for name in names if name in plan.floors]


def sensitivity_with(plan: Plan, floor: Floor, blocks: int) -> Sensitivity:
    """What so many blocks let a comparison of a cell see."""
    return Sensitivity(floor=floor, blocks=blocks, effect=find_visible(plan, floor, blocks, level_of(plan, floor.cell)))


def find_visible(plan: Plan, floor: Floor, blocks: int, level: float) -> float | None:
    """The smallest effect (as a share: 0.012) that four of five such studies find; None where none is, or no floor.

    Whatever tells it asks here: the forecast of a plan, reports, and `pgstrata floor`.

    Args:
        plan: whose threshold of the floor's metric ends a study without a difference.
        floor: one that is not valid sees nothing.
        blocks: measured or planned.
        level: that of the comparison, see `level_of`.
    """
    if not floor.valid:
        return None
    return _smallest(floor.s0, math.log1p(threshold_of(plan.experiment, floor.metric)), blocks, level)


@cache
def _smallest(s0: float, delta: float, blocks: int, level: float) -> float | None:
    """Kept, because every cell of every environment asks for the same few."""
    return smallest_effect(s0, delta, blocks, alpha=level)


def level_of(plan: Plan, cell: str) -> float:
    """The level that a comparison of a cell begins at.

    Headlines share .045 among the environments (Holm's first step); a cell of several has its own, and is exploratory.
    """
    asked = sum(
        1 for one in plan.experiment.environments if one.control is None and one.name != plan.experiment.baseline
    )
    is_headline = cell == ALL_CELLS or len(plan.experiment.cells) == 1
    return max(ALPHA / max(1, asked), min(GRID)) if is_headline else ALPHA


def visible_effect(plan: Plan, comparison: Comparison) -> float | None:
    """The smallest effect (as a share: 0.012) that one comparison could have shown; None without a floor for it."""
    floor = plan.floors.get(comparison.cell)
    if floor is None or not floor.valid or floor.metric != comparison.metric:
        return None
    # controls and pairs do not share their level
    alone = comparison.control or bool(comparison.reference)
    level = ALPHA if alone else level_of(plan, comparison.cell)
    return find_visible(plan, floor, _blocks_of(plan, comparison), level)


def _blocks_of(plan: Plan, comparison: Comparison) -> int:
    """Those measured, or of a comparison that was decided early all that are planned: it could have gone on."""
    return comparison.blocks if comparison.decided_at is None else max(comparison.blocks, len(plan.blocks))


def say_measured(plan: Plan, floor: Floor) -> str:
    """A floor that was just measured by an A/A plan, and what it lets a comparison of two environments see."""
    size = render_effect(math.expm1(floor.s0))
    made = f"{floor.differences} differences of {say_source(floor)}"
    head = f"{name_floor(floor)} ({METRICS[floor.metric].title}, {floor.design}): {size} from {made}"
    if floor.doubt:
        return f"{head}; it is not used: {say_reason(floor.doubt)}"
    few, many = (render_effect(sensitivity_with(plan, floor, blocks).effect) for blocks in (_FEW_BLOCKS, HORIZON))
    return f"{head}; {_FEW_BLOCKS} blocks see differences from {few} on, {HORIZON} from {many} on"


def name_floor(floor: Floor) -> str:
    """The name of its cell, or that it is of all cells together."""
    return TOGETHER if floor.cell == ALL_CELLS else floor.cell


def render_effect(effect: float | None) -> str:
    """0.012 as 1.2 %, 0.104 as 10 %, 0.0004 as 0.04 %."""
    if effect is None:
        return "no size"
    percent = effect * 100
    digits = 0 if percent >= 10 else 1 if percent >= 0.1 else 2  # noqa: PLR2004 - two significant digits
    return f"{percent:.{digits}f} %"


def floor_json(plan: Plan, comparisons: Iterable[Comparison] = ()) -> dict[str, Any] | None:
    """The floor of a study for programs: of all cells together, or else of the worst cell; None without any."""
    all_seen = find_sensitivities(plan, comparisons)
    if not all_seen:
        return None
    worst = max(all_seen, key=lambda seen: math.inf if seen.effect is None else seen.effect)
    return _sensitivity_json(all_seen[0] if all_seen[0].floor.cell == ALL_CELLS else worst)


def floors_json(plan: Plan, comparisons: Iterable[Comparison] = ()) -> list[dict[str, Any]]:
    """All floors that were known, those that are not relied upon with their `doubt`."""
    all_seen = {seen.floor.cell: seen for seen in find_sensitivities(plan, comparisons)}
    return [
        _sensitivity_json(all_seen.get(floor.cell) or Sensitivity(floor=floor, blocks=len(plan.blocks), effect=None))
        for floor in _ordered(plan)
    ]


def measured_json(plan: Plan, floors: Iterable[Floor]) -> list[dict[str, Any]]:
    """Floors that an A/A plan just measured, with what they let a comparison of all `HORIZON` blocks see."""
    return [_sensitivity_json(sensitivity_with(plan, floor, HORIZON)) for floor in floors]


def _sensitivity_json(seen: Sensitivity) -> dict[str, Any]:
    return {
        **floor_fields(seen.floor),
        "smallest_visible_effect": seen.effect,
        "blocks": seen.blocks,
    }
