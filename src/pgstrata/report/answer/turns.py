"""The section of charts of cells in slices: all rounds over the visits, how visits begin, and some visits in detail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pgstrata.compare.rounds import CellRounds, find_rounds
from pgstrata.model.answer import Answer
from pgstrata.report.answer.room import drawable_cells, opens_details, say_left_out
from pgstrata.report.blocks.model import Block, Details, Paragraph, Section, Tone, end
from pgstrata.report.figures.over_time import MOST_VISITS, draw_rounds
from pgstrata.report.figures.round_profiles import draw_within
from pgstrata.report.figures.round_rows import MOST_ENVIRONMENTS
from pgstrata.report.figures.rounds import draw_visits
from pgstrata.report.sentences.names import name_cell
from pgstrata.report.sentences.rounds import say_rounds

_MOST_POINTS: Final = 11_000
"""Of the charts over the visits together: about 300 kB."""
_MOST_OF_A_ROW: Final = 200
"""Points for which a row has room."""
_FEWEST_OF_A_VISIT: Final = 2
_MOST_SLICES: Final = 2000
_HELP: Final = (
    "The environments took turns within seconds, so a disturbance of the machine affected all of them. If all rows "
    "rise or fall together, the machine became faster or slower. If one row does alone, the reason is in that "
    "environment. The verdict uses one value of each visit, the median of its rounds. Where a point stands for several "
    "rounds, it is their median, and a thin vertical line reaches from the smallest to the largest. Values outside the "
    "range of a row are drawn at its edge. Marks at the bottom of a row are events in that server's log, exact to a "
    "second or two."
)


def turn_section(answer: Answer) -> Section | None:
    """For each cell in slices what its rounds show, in words and in charts; None without such a cell."""
    plan = answer.study.plan
    cells = [cell for cell in plan.experiment.cells if plan.design(cell.identity).sliced]
    rows = len(cells) * min(MOST_ENVIRONMENTS, len(plan.experiment.environments))
    visits = max(1, answer.study.measured_blocks)
    rounds = sum(plan.design(cell.identity).rounds for cell in cells)
    slices = rounds * MOST_VISITS * len(plan.experiment.environments)
    drawn = drawable_cells(answer, marks=rows * visits * _FEWEST_OF_A_VISIT, most=_MOST_POINTS)
    detailed = drawable_cells(answer, marks=slices, most=_MOST_SLICES)
    bins = max(_FEWEST_OF_A_VISIT, min(_MOST_OF_A_ROW, _MOST_POINTS // max(1, rows)) // visits)
    parts: list[Block] = []
    for cell in drawn:
        found = find_rounds(answer.study, cell.identity)
        if found is not None:
            detail = _in_detail(answer, cell.identity) if cell in detailed else ()
            blocks = (*_over_visits(answer, found, bins), *detail)
            parts.append(Details(name_cell(cell, plan.experiment), blocks, open=opens_details(answer)))
    if not parts:
        return None
    return Section("Turn by turn", (Paragraph(_HELP + say_left_out(len(parts), len(cells)), Tone.HELP), *parts))


def _over_visits(answer: Answer, found: CellRounds, bins: int) -> Iterator[Block]:
    """What the charts show, and the charts side by side."""
    experiment = answer.study.plan.experiment
    said = " ".join(end(sentence) for sentence in say_rounds(found, experiment))
    within = draw_within(found, experiment, said=said)
    figures = (draw_visits(found, experiment, bins=bins, said=said), *((within,) if within is not None else ()))
    yield Paragraph(said)
    yield Section("", tuple(Section("", (figure,)) for figure in figures), parallel=True)


def _in_detail(answer: Answer, cell: str) -> tuple[Block, ...]:
    figure = draw_rounds(answer, cell, "")
    return (Details("Some visits, slice by slice", (figure,)),) if figure is not None else ()
