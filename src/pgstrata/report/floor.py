"""What the rig could have seen, from the floors that were frozen with a plan: in words and for JSON. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pgstrata.model.answer import ALL_CELLS, Comparison
from pgstrata.model.floor import Floor
from pgstrata.model.metrics import METRICS
from pgstrata.model.plan import Plan
from pgstrata.report.components import floor_fields
from pgstrata.report.names import TOGETHER
from pgstrata.stats.boundaries import MAX_BLOCKS
from pgstrata.stats.floor import smallest_visible_effect

_FEW_BLOCKS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What could be seen in one cell: a floor, the blocks it is applied to, the smallest visible effect as a share.

    `effect` is None where no effect is large enough, because there are too few blocks.
    """

    floor: Floor
    blocks: int
    effect: float | None


def find_sights(plan: Plan, comparisons: Iterable[Comparison] = ()) -> tuple[Sight, ...]:
    """A sight for each floor that may be relied upon: all cells together first, then the cells of the plan in order.

    The blocks are those of the cell's comparisons by the primary metric (the most of them), or all that are planned.
    """
    blocks: dict[str, int] = {}
    for comparison in comparisons:
        if comparison.metric == plan.experiment.metric:
            blocks[comparison.cell] = max(comparison.blocks, blocks.get(comparison.cell, 0))
    return tuple(_sight(floor, blocks.get(floor.cell, len(plan.blocks))) for floor in _ordered(plan) if floor.valid)


def _ordered(plan: Plan) -> list[Floor]:
    names = (ALL_CELLS, *(cell.identity for cell in plan.experiment.cells))
    return [plan.floors[name] for name in names if name in plan.floors]


def _sight(floor: Floor, blocks: int) -> Sight:
    effect = math.expm1(smallest_visible_effect(floor.s0, blocks))
    return Sight(floor=floor, blocks=blocks, effect=effect if math.isfinite(effect) else None)


def visible_effect(plan: Plan, comparison: Comparison) -> float | None:
    """The smallest effect (as a share: 0.012) that one comparison could have shown; None without a floor for it."""
    floor = plan.floors.get(comparison.cell)
    if floor is None or not floor.valid or floor.metric != comparison.metric:
        return None
    return _sight(floor, comparison.blocks).effect


def say_measured(floor: Floor) -> str:
    """A floor that was just measured, and what it lets studies see."""
    name = TOGETHER if floor.cell == ALL_CELLS else floor.cell
    size = render_effect(math.expm1(floor.s0))
    made = f"{floor.differences} differences of {floor.source}"
    head = f"{name} ({METRICS[floor.metric].title}, {floor.design}): {size} from {made}"
    if floor.doubt:
        return f"{head}; it is not relied upon: {floor.doubt}"
    few, many = (render_effect(_sight(floor, blocks).effect) for blocks in (_FEW_BLOCKS, MAX_BLOCKS))
    return f"{head}; {_FEW_BLOCKS} blocks see differences from {few} on, {MAX_BLOCKS} from {many} on"


def _size(sight: Sight) -> float:
    return math.inf if sight.effect is None else sight.effect


def render_effect(effect: float | None) -> str:
    """0.012 as 1.2 %, 0.104 as 10 %, 0.0004 as 0.04 %."""
    if effect is None:
        return "no size"
    percent = effect * 100
    digits = 0 if percent >= 10 else 1 if percent >= 0.1 else 2  # noqa: PLR2004 - two significant digits
    return f"{percent:.{digits}f} %"


# ---------------------------------------------------------------------------------------------------- JSON


def floor_json(plan: Plan, comparisons: Iterable[Comparison] = ()) -> dict[str, Any] | None:
    """The floor of a study for programs: of all cells together, or else of the worst cell; None without any."""
    sights = find_sights(plan, comparisons)
    if not sights:
        return None
    first = sights[0] if sights[0].floor.cell == ALL_CELLS else max(sights, key=_size)
    return _sight_json(first)


def floors_json(plan: Plan, comparisons: Iterable[Comparison] = ()) -> list[dict[str, Any]]:
    """All floors that were known, those that are not relied upon with their `doubt`."""
    sights: Mapping[str, Sight] = {sight.floor.cell: sight for sight in find_sights(plan, comparisons)}
    return [
        _sight_json(sights.get(floor.cell) or Sight(floor=floor, blocks=len(plan.blocks), effect=None))
        for floor in _ordered(plan)
    ]


def measured_json(floors: Iterable[Floor]) -> list[dict[str, Any]]:
    """Floors that were just measured, with what they let a study of all `MAX_BLOCKS` blocks see."""
    return [_sight_json(_sight(floor, MAX_BLOCKS)) for floor in floors]


def _sight_json(sight: Sight) -> dict[str, Any]:
    return {**floor_fields(sight.floor), "smallest_visible_effect": sight.effect, "blocks": sight.blocks}
