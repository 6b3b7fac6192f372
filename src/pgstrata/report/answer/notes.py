"""What stands beside every table: how the cell was measured and why so, and what this rig can see of it."""

from __future__ import annotations

from pgstrata.model.answer import ALL_CELLS, Answer
from pgstrata.model.experiment import Cell
from pgstrata.model.plan import Plan
from pgstrata.report.answer.run_seconds import say_seconds
from pgstrata.report.answer.slice_scatter import say_scatter
from pgstrata.report.planning.floor import Sight, find_sights, render_effect
from pgstrata.report.sentences.names import count
from pgstrata.report.sentences.reasons import say_why_so


def say_design(plan: Plan, cell: Cell) -> str:
    """Measured in 16 slices of 250 ms: the environments can be up together, and nothing is written."""
    design = plan.design(cell.identity)
    text = f"Measured in {design.describe(cell.run)}"
    why = say_why_so(design)
    return f"{text}: {why}" if why else text


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
