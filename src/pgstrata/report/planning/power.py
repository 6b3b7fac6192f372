"""What a plan can expect to see before it starts, from the floors of its cells: as text and for JSON. Pure.

With it a warning where the default threshold is finer than the noise.
"""

import math
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.experiment import Experiment
from pgstrata.model.floor import Floor
from pgstrata.model.plan import HORIZON, Plan
from pgstrata.report.json.documents import pick_fields
from pgstrata.report.planning.floor import (
    Sensitivity,
    find_valid_floors,
    level_of,
    name_floor,
    render_effect,
    sensitivity_with,
)
from pgstrata.report.planning.known_floor import say_source
from pgstrata.stats.power import Power, forecast
from pgstrata.units import render_count, render_duration

Outlook = tuple[Sensitivity, tuple[Power, ...]]
"""What is expected in one cell within the blocks that are planned, or that the budget holds of them."""


def affordable_blocks(plan: Plan) -> int:
    """Whole blocks that fit into the budget once the datasets are built, at most those that are planned."""
    budget, cost = plan.experiment.budget, plan.forecast
    if budget is None or cost.seconds_per_block <= 0:
        return len(plan.blocks)
    once = cost.seconds_total - cost.seconds_per_block * len(plan.blocks)
    return min(len(plan.blocks), int(max(0.0, budget - once) // cost.seconds_per_block))


def find_outlooks(plan: Plan) -> list[Outlook]:
    """One for each floor that may be relied upon, the headline first."""
    blocks, delta = affordable_blocks(plan), math.log1p(plan.experiment.threshold)
    return [
        (sensitivity_with(plan, floor, blocks), forecast(floor.s0, delta, blocks, alpha=level_of(plan, floor.cell)))
        for floor in find_valid_floors(plan)
    ]


def choose_floor(floors: Sequence[Floor]) -> Floor:
    """That of all cells together, which comes first, or of the noisiest cell."""
    return floors[0] if floors[0].cell == ALL_CELLS else max(floors, key=lambda floor: floor.s0)


def power_lines(plan: Plan) -> Iterator[str]:
    """The forecast of the headline (or of the noisiest cell), indented, then what the others can see."""
    outlooks = find_outlooks(plan)
    if not outlooks:
        return
    leading = choose_floor([seen.floor for seen, _ in outlooks])
    first, powers = next(outlook for outlook in outlooks if outlook[0].floor is leading)
    yield f"{name_floor(leading)}: {_say_floor(leading)}"
    yield from (f"  {_say_power(plan, power)}" for power in powers)
    yield f"  {_say_visible(first)}"
    for seen, _ in outlooks:
        if seen is not first:
            yield f"{name_floor(seen.floor)}: {_say_floor(seen.floor)}; {_say_visible(seen)}"
    yield from (f"warning: {text}" for text in _warnings(plan, [seen for seen, _ in outlooks], first))


def _say_floor(floor: Floor) -> str:
    made = f"{floor.differences} differences, {floor.design}, {floor.measured[:10]}, {say_source(floor)}"
    return f"noise floor {render_effect(math.expm1(floor.s0))} ({made})"


def _say_power(plan: Plan, power: Power) -> str:
    time = render_duration(round(power.blocks * plan.forecast.seconds_per_block))
    share = f"{math.floor(power.probability * 100)} of 100 such studies"
    after = f"in about {render_count(round(power.blocks), 'block')}, {time}"
    if power.effect == 0:
        limit = f"{plan.experiment.threshold * 100:g} %"
        return f'equal: "no difference larger than {limit}" in {share}, {after}'
    return f"{power.effect * 100:g} %: found in {share}, {after}"


def _say_visible(seen: Sensitivity) -> str:
    blocks = render_count(seen.blocks, "block")
    if seen.effect is None:
        return f"{blocks} are too few to see any difference"
    return f"within {blocks} it sees differences from {render_effect(seen.effect)} on"


def _warnings(plan: Plan, all_seen: Sequence[Sensitivity], first: Sensitivity) -> Iterator[str]:
    threshold = plan.experiment.threshold
    # as printed: 3.01 % against 3 % would be a warning that contradicts itself
    limit = render_effect(threshold)
    blind = [
        one for one in all_seen if one.effect is None or (one.effect > threshold and render_effect(one.effect) != limit)
    ]
    if not blind:
        return
    # where the question is answered over all cells, single cells are exploratory
    who = first if first in blind else blind[0]
    place = "" if who is first else f" in {name_floor(who.floor)}, which is exploratory,"
    held = f"the budget holds {who.blocks} of {len(plan.blocks)} blocks; " if who.blocks < len(plan.blocks) else ""
    seen = f"only differences from {render_effect(who.effect)} on" if who.effect is not None else "no difference"
    yield (
        f"{held}{seen} can be seen{place} and {threshold * 100:g} % would matter: more blocks (at most {HORIZON}), "
        "longer runs, a quieter machine or a larger threshold would answer the question"
    )


def power_json(plan: Plan) -> list[dict[str, Any]]:
    """For each floor that may be relied upon; seconds without those for the datasets."""
    return [
        {
            **pick_fields(seen, "cell=floor.cell blocks smallest_visible_effect=effect"),
            "effects": [
                {
                    **pick_fields(power, "effect probability decided blocks"),
                    "seconds": power.blocks * plan.forecast.seconds_per_block,
                }
                for power in powers
            ],
        }
        for seen, powers in find_outlooks(plan)
    ]


COARSE: Final = 0.05
"""The threshold that is named instead, as a share."""
_NOISY: Final = 0.02
"""Log units of one environment, s0 / sqrt(2): above it few blocks show equality within 3 %."""


def say_threshold(plan: Plan) -> Iterator[str]:
    """A warning where the file gives no threshold and a floor that may be relied upon is above what it is meant for.

    Of the headline if it is so noisy, else of the noisiest cell.
    """
    if plan.experiment.threshold >= COARSE or _gives_threshold(plan.experiment):
        return
    noisy = [floor for floor in find_valid_floors(plan) if floor.s0 / math.sqrt(2) > _NOISY]
    if not noisy:
        return
    floor = choose_floor(noisy)
    where = "over all cells together" if floor.cell == ALL_CELLS else f"in {floor.cell}"
    default, better = (f"{threshold * 100:g} %" for threshold in (plan.experiment.threshold, COARSE))
    yield (
        f"warning: the file gives no threshold, so {default} is taken, while {where} equals differ by "
        f"{render_effect(math.expm1(floor.s0))} from block to block. Equality within {default} is found in "
        f"{_say_equal(plan, floor, plan.experiment.threshold)}, within {better} in {_say_equal(plan, floor, COARSE)}. "
        f'If differences below {better} do not matter to you, write threshold = "{better}"'
    )


def _say_equal(plan: Plan, floor: Floor, threshold: float) -> str:
    blocks, level = affordable_blocks(plan), level_of(plan, floor.cell)
    (equal,) = forecast(floor.s0, math.log1p(threshold), blocks, (0.0,), alpha=level)
    return f"{math.floor(equal.probability * 100)} of 100 such studies after about {round(equal.blocks)} blocks"


def _gives_threshold(experiment: Experiment) -> bool:
    """Whether the file has one; a text that cannot be read is left alone."""
    try:
        return "threshold" in tomllib.loads(experiment.text)
    except (ValueError, RecursionError):
        return True
