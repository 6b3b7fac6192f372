"""What stands beside every table: how the cell was measured, what its seconds are worth, what the rig can see of it."""

from typing import Any

from pgstrata.compare.noise.within_run import weigh_seconds
from pgstrata.model.answer import ALL_CELLS, Answer, Study
from pgstrata.model.experiment import Cell
from pgstrata.model.plan import Plan
from pgstrata.report.answer.slice_scatter import say_scatter
from pgstrata.report.json.fields import pick_fields
from pgstrata.report.planning.floor import Sight, find_sights, render_effect
from pgstrata.report.sentences.names import count
from pgstrata.units import render_duration


def say_design(plan: Plan, cell: Cell) -> str:
    """Measured in 16 slices of 250 ms: the environments can be up together, and nothing is written."""
    design = plan.design(cell.identity)
    text = f"Measured in {design.describe(cell.run)}"
    return f"{text}: {design.reason}" if design.reason else text


def say_values(plan: Plan, cell: Cell) -> str:
    """Where the absolute figures of a cell come from."""
    if plan.design(cell.identity).sliced:
        return "median of unlogged stretches; differences come from the slices"
    return "median of the runs"


def cell_notes(answer: Answer, cell: Cell) -> tuple[str, ...]:
    """What stands beside the tables of a cell, without full stops."""
    plan = answer.study.plan
    scatter = say_scatter(answer.study, cell.identity)
    seconds = say_seconds(answer.study, cell.identity)
    notes = (say_design(plan, cell), scatter, seconds, floor_note(answer, cell.identity))
    return tuple(note for note in notes if note)


def headline_note(answer: Answer) -> str:
    """What stands beside the table of the headlines; empty without a floor for them."""
    return floor_note(answer, ALL_CELLS)


def floor_note(answer: Answer, cell: str) -> str:
    """Noise floor 0.4 %: differences from 1.2 % on could be seen with 9 blocks; or why it is not relied upon."""
    plan = answer.study.plan
    floor = plan.floors.get(cell)
    if floor is None:
        return ""
    sight = next((sight for sight in find_sights(plan, answer.comparisons) if sight.floor.cell == cell), None)
    if sight is None:
        return f"The noise floor is not relied upon: {floor.doubt or 'it is made of too little'}"
    return f"Noise floor {render_effect(floor.s0)}: {_say_sight(sight)}"


def _say_sight(sight: Sight) -> str:
    if sight.effect is None:
        return f"{count(sight.blocks, 'block')} too few to show anything"
    return f"differences from {render_effect(sight.effect)} on could be seen with {count(sight.blocks, 'block')}"


def say_seconds(study: Study, cell: str) -> str:
    """A run (1 min) is worth about 9 independent seconds.

    Empty for a cell in slices, and for runs that are too short to tell.
    """
    found = weigh_seconds(study.runs, cell)
    if found is None or found.worth is None:
        return ""
    worth = count(max(1, round(found.worth)), "independent second")
    return f"A run ({render_duration(found.seconds)}) is worth about {worth}"


def seconds_json(study: Study, cell: str) -> dict[str, Any] | None:
    """As `say_seconds`; lengths in seconds, None where nothing is known."""
    found = weigh_seconds(study.runs, cell)
    return None if found is None else {"cell": cell, **pick_fields(found, "runs seconds worth")}
