"""How many charts a page has room for, and whether they are folded."""

from __future__ import annotations

from typing import Final

from pgstrata.model.answer import Answer
from pgstrata.model.experiment import Cell
from pgstrata.report.figures.run_lines import spread

MOST_PANELS: Final = 240
_FEW_CELLS: Final = 4


def opens_details(answer: Answer) -> bool:
    """Whether there are so few cells that their charts need not be folded away."""
    return len(answer.study.plan.experiment.cells) <= _FEW_CELLS


def drawable_cells(answer: Answer, *, marks: int, most: int) -> tuple[Cell, ...]:
    """Of a very large study only so many cells, evenly chosen, that the file stays small.

    Args:
        answer: the study.
        marks: marks that all cells together would need.
        most: marks that there may be.
    """
    cells = answer.study.plan.experiment.cells
    return tuple(spread(cells, max(1, most * len(cells) // max(1, marks))))


def say_left_out(drawn: int, whole: int) -> str:
    """A sentence behind an explanation; empty where all cells are drawn."""
    return f" Only {drawn} of {whole} cells are drawn." if drawn < whole else ""
