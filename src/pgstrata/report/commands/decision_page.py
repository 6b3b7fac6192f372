"""The document of the answer on other tools' results: a page with charts, like that of a study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pgstrata.compare.one_look import ImportAnswer
from pgstrata.model.answer import ALL_CELLS, Comparison, OrderedAxis
from pgstrata.report.answer.matrix import make_field
from pgstrata.report.blocks.model import (
    Block,
    Column,
    Details,
    Document,
    Effect,
    Listing,
    Matrix,
    Paragraph,
    Remark,
    Section,
    Table,
    Tone,
    begin,
    end,
)
from pgstrata.report.commands.decide import group_doubts
from pgstrata.report.commands.decision_sentences import (
    is_whole,
    label_of,
    say_answer,
    say_axis,
    say_main_steps,
    say_single_steps,
    say_terms,
)
from pgstrata.report.commands.decision_tables import figure_columns, order_environments, pick_comparisons
from pgstrata.report.commands.decision_worth import worth_sections
from pgstrata.report.figures.imports import draw_comparisons, draw_steps, draw_values
from pgstrata.report.sentences.names import TOGETHER, capitalise, count, say_on

_MOST_ENVIRONMENTS: Final = 24
_MOST_CELLS: Final = 24
_MOST_STEPS: Final = 4
_MOST_FIELDS: Final = 1500
_WHOLE: Final = "\0"
"""Stands for all cells together: no cell of a file has this name."""
_FEW: Final = 4
_EFFECTS: Final = (
    "Differences from the baseline with their intervals. The grey band is the threshold: differences inside it do not "
    "matter here. The medians in the table are those of the compared values."
)
_BLOCKS: Final = (
    "Every value; those of one environment are joined. If the machine drifts, all values of a block rise or fall "
    "together, and the difference inside the block stays the same. The scale is logarithmic."
)
_LOOSE: Final = (
    "Every value in the order of the file. Without blocks a drift of the machine looks like a difference, so values "
    "that rise or fall along the file are a reason for doubt. The scale is logarithmic."
)
_STEPS: Final = (
    "Each dot is the difference of a level from the mean over all levels, in one block. Bars are medians, dashed lines "
    "mark steps."
)
_UNSAID: Final = (
    "the file has only results: it does not show how the environments differ apart from their names",
    "values are assumed to be of independent runs, and those of one block to be measured side by side",
    "the answer is about the machine and the time of these results, not about others",
)


def make_decision_document(answer: ImportAnswer) -> Document:
    """The whole answer on a table of results, in the order in which it is read."""
    question = answer.question
    told = [list(say_answer(answer)), list(say_main_steps(answer))]
    if answer.levels:
        told.reverse()
    sections = (
        *_compared(answer),
        *worth_sections(answer),
        *_steps(answer),
        *_values(answer),
        Section("What this does not say", (Listing(tuple(end(begin(text)) for text in _UNSAID)),)),
    )
    environments = count(len(question.environments) + 1, "environment")
    blocks = count(question.blocks, "block") if answer.paired else "no blocks"
    cells = f", {count(len(answer.cells), 'cell')}" if len(answer.cells) > 1 else ""
    return Document(
        name=f"Results in {answer.source}",
        title=f"How do the results in {answer.source} compare with {question.baseline}?",
        summary=f"{environments}{cells}, {blocks}, {count(len(answer.observations), 'value')} of {question.metric}.",
        answer=tuple(Paragraph(end(capitalise(text))) for said in told for text in said),
        matrix=_matrix(answer),
        doubts=tuple(Remark(text.removesuffix(".")) for _, text in group_doubts(answer)),
        sections=sections,
        colophon=f"{say_terms(answer)} Read from {answer.source}",
    )


def _matrix(answer: ImportAnswer) -> Matrix | None:
    """Environments by cells, with all cells together first; None where there is but one effect, or too many."""
    several = len(answer.cells) > 1
    found = {
        (item.environment, _WHOLE if several and is_whole(item) else item.cell): item for item in answer.comparisons
    }
    names = order_environments(answer)
    cells = [cell for cell in (_WHOLE, *answer.question.cells) if any(one == cell for _, one in found)]
    if not 1 < len(found) <= _MOST_FIELDS:
        return None
    return Matrix(
        title=f"Difference in {answer.question.metric} from {answer.question.baseline}",
        corner="environment",
        rows=tuple(names),
        columns=tuple("all cells" if cell in {_WHOLE, ALL_CELLS} else cell for cell in cells),
        effects=tuple(tuple(_make_field(answer, found.get((name, cell))) for cell in cells) for name in names),
    )


def _make_field(answer: ImportAnswer, item: Comparison | None) -> Effect | None:
    return None if item is None else make_field(item, answer.question.threshold, label_of(answer, item))


def _compared(answer: ImportAnswer) -> Iterator[Section]:
    """The headlines and, if there are several cells, a section for each environment with its cells."""
    items = pick_comparisons(answer, answer.headlines)
    several = len(answer.cells) > 1
    named = several and not answer.paired
    title = f"Over {TOGETHER}" if several and answer.paired else "What was compared"
    names = [item.environment + say_on(item.cell, item.environment) if named else item.environment for item in items]
    yield _section(answer, f"{title}, against {answer.question.baseline}", names, items, "environment")
    if not (several and answer.paired):
        return
    for environment in order_environments(answer)[:_MOST_ENVIRONMENTS]:
        own = [item for item in answer.explored if item.environment == environment]
        cells = [item for item in pick_comparisons(answer, own) if not is_whole(item)]
        if cells:
            yield _section(
                answer, f"{environment}, cell by cell (exploratory)", [item.cell for item in cells], cells, "cell"
            )


def _section(answer: ImportAnswer, title: str, names: Sequence[str], items: Sequence[Comparison], noun: str) -> Section:
    labels = [label_of(answer, item) for item in items]
    *figures, verdicts = figure_columns(answer, items)
    marked = Column(
        title=verdicts.title, cells=verdicts.cells, words=True, verdicts=tuple(item.verdict.value for item in items)
    )
    chart = draw_comparisons(answer, list(zip(names, items, labels, strict=True)))
    table = Table(names=Column(title=noun, cells=tuple(names)), columns=(*figures, marked))
    return Section(title, (Paragraph(_EFFECTS, Tone.HELP), chart, table), brief=True)


def _steps(answer: ImportAnswer) -> Iterator[Section]:
    if not answer.axes:
        return
    blocks: list[Block] = [Paragraph(_STEPS, Tone.HELP)] if answer.paired else []
    for axis in answer.axes[:_MOST_STEPS]:
        blocks.append(Paragraph(end(capitalise(say_axis(answer, axis)))))
        if figure := _draw(answer, axis):
            blocks.append(figure)
    if single := say_single_steps(answer):
        blocks.append(Listing(tuple(end(capitalise(text)) for text in single)))
    yield Section("Steps along the environments", tuple(blocks))


def _draw(answer: ImportAnswer, axis: OrderedAxis) -> Block | None:
    return draw_steps(answer, axis, title="", label=say_axis(answer, axis))


def _values(answer: ImportAnswer) -> Iterator[Section]:
    shown = [(cell, draw_values(answer, cell)) for cell in answer.question.cells[:_MOST_CELLS]]
    figures = [(cell, figure) for cell, figure in shown if figure is not None]
    if not figures:
        return
    help_ = Paragraph(_BLOCKS if answer.paired else _LOOSE, Tone.HELP)
    title = "Block by block" if answer.paired else "Value by value"
    if len(answer.cells) <= 1:
        yield Section(title, (help_, figures[0][1]))
        return
    folded = [Details(cell, (figure,), open=len(figures) <= _FEW) for cell, figure in figures]
    left = len(answer.question.cells) - len(figures)
    rest = (Paragraph(f"{count(left, 'more cell')} are not drawn.", Tone.NOTE),) if left > 0 else ()
    yield Section(title, (help_, *folded, *rest))
