"""What a plan can expect to see before it starts, from the floors of its cells: as text and for JSON. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.floor import Floor
from pgstrata.model.plan import HORIZON, Plan
from pgstrata.report.json.fields import pick_fields
from pgstrata.report.planning.floor import find_sights, find_visible, level_of, name_floor, render_effect
from pgstrata.stats.power import Power, forecast
from pgstrata.units import render_count, render_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is expected in one cell within `blocks` blocks, planned or what the budget holds of them.

    `visible` is the smallest effect that four of five such studies find, as a share; None where none is.
    """

    floor: Floor
    blocks: int
    visible: float | None
    powers: tuple[Power, ...]


def affordable_blocks(plan: Plan) -> int:
    """Whole blocks that fit into the budget once the datasets are built, at most those that are planned."""
    budget, cost = plan.experiment.budget, plan.forecast
    if budget is None or cost.seconds_per_block <= 0:
        return len(plan.blocks)
    return min(len(plan.blocks), int(max(0.0, budget - cost.seconds_building) // cost.seconds_per_block))


def find_outlooks(plan: Plan) -> tuple[Outlook, ...]:
    """One for each floor that may be relied upon, the headline first."""
    blocks = affordable_blocks(plan)
    return tuple(_outlook(plan, sight.floor, blocks) for sight in find_sights(plan))


def _outlook(plan: Plan, floor: Floor, blocks: int) -> Outlook:
    level = level_of(plan, floor.cell)
    return Outlook(
        floor=floor,
        blocks=blocks,
        visible=find_visible(plan, floor, blocks, level),
        powers=forecast(floor.s0, math.log1p(plan.experiment.threshold), blocks, alpha=level),
    )


def choose_floor(floors: Sequence[Floor]) -> Floor:
    """That of all cells together, which comes first, or of the noisiest cell."""
    return floors[0] if floors[0].cell == ALL_CELLS else max(floors, key=lambda floor: floor.s0)


# ---------------------------------------------------------------------------------------------------- text


def power_lines(plan: Plan) -> Iterator[str]:
    """The forecast of the headline (or of the noisiest cell), indented, then what the others can see."""
    outlooks = find_outlooks(plan)
    if not outlooks:
        return
    leading = choose_floor([one.floor for one in outlooks])
    first = next(one for one in outlooks if one.floor is leading)
    yield f"{name_floor(first.floor)}: {_say_floor(first)}"
    yield from (f"  {_say_power(plan, power)}" for power in first.powers)
    yield f"  {_say_visible(first)}"
    yield from (
        f"{name_floor(one.floor)}: {_say_floor(one)}; {_say_visible(one)}" for one in outlooks if one is not first
    )
    yield from (f"warning: {text}" for text in _warnings(plan, outlooks, first))


def _say_floor(outlook: Outlook) -> str:
    floor = outlook.floor
    made = f"{floor.differences} differences, {floor.design}, {floor.measured[:10]}, {floor.source}"
    return f"noise floor {render_effect(math.expm1(floor.s0))} ({made})"


def _say_power(plan: Plan, power: Power) -> str:
    time = render_duration(round(power.blocks * plan.forecast.seconds_per_block))
    share = f"{math.floor(power.probability * 100)} of 100 such studies"
    after = f"in about {render_count(round(power.blocks), 'block')}, {time}"
    if power.effect == 0:
        limit = f"{plan.experiment.threshold * 100:g} %"
        return f'equal: "no difference larger than {limit}" in {share}, {after}'
    return f"{power.effect * 100:g} %: found in {share}, {after}"


def _say_visible(outlook: Outlook) -> str:
    blocks = render_count(outlook.blocks, "block")
    if outlook.visible is None:
        return f"{blocks} are too few to see any difference"
    return f"within {blocks} it sees differences from {render_effect(outlook.visible)} on"


def _warnings(plan: Plan, outlooks: Sequence[Outlook], first: Outlook) -> Iterator[str]:
    threshold = plan.experiment.threshold
    # as printed: 3.01 % against 3 % would be a warning that contradicts itself
    limit = render_effect(threshold)
    blind = [
        one
        for one in outlooks
        if one.visible is None or (one.visible > threshold and render_effect(one.visible) != limit)
    ]
    if not blind:
        return
    # where the question is answered over all cells, single cells are exploratory
    who = first if first in blind else blind[0]
    place = "" if who is first else f" in {name_floor(who.floor)}, which is exploratory,"
    held = f"the budget holds {who.blocks} of {len(plan.blocks)} blocks; " if who.blocks < len(plan.blocks) else ""
    seen = f"only differences from {render_effect(who.visible)} on" if who.visible is not None else "no difference"
    yield (
        f"{held}{seen} can be seen{place} and {threshold * 100:g} % would matter: more blocks (at most {HORIZON}), "
        "longer runs, a quieter machine or a larger threshold would answer the question"
    )


# ---------------------------------------------------------------------------------------------------- JSON


def power_json(plan: Plan) -> list[dict[str, Any]]:
    """For each floor that may be relied upon; seconds without those for the datasets."""
    return [
        {
            **pick_fields(outlook, "cell=floor.cell blocks smallest_visible_effect=visible"),
            "effects": [
                {
                    **pick_fields(power, "effect probability decided blocks"),
                    "seconds": power.blocks * plan.forecast.seconds_per_block,
                }
                for power in outlook.powers
            ],
        }
        for outlook in find_outlooks(plan)
    ]
