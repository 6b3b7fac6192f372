"""The answer for a terminal: sentences, the headlines, one table per cell, doubts."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgstrata.compare.headlines import headline_comparisons
from pgstrata.model.answer import Answer, Verdict
from pgstrata.model.metrics import METRICS
from pgstrata.report.anomalies import anomaly_sentences
from pgstrata.report.columns import (
    Column,
    cost_columns,
    decision_columns,
    effect_columns,
    pair_columns,
    value_column,
    width_of,
    wrap_text,
)
from pgstrata.report.designs import cell_notes, headline_note, say_values
from pgstrata.report.doubts import doubt_sentences
from pgstrata.report.names import count, name_cell
from pgstrata.report.rows import (
    CellRows,
    EnvironmentRow,
    arrange_cells,
    arrange_headlines,
    arrange_pairs,
    note_pairs,
    title_pairs,
    unusual_runs,
)
from pgstrata.report.verdicts import name_baseline
from pgstrata.report.words import answer_sentences

# Blanks that rich puts between two columns.
_GAP = 3
_LEAST_NAME = len("environment")
_STYLES = {Verdict.BETTER: "green", Verdict.WORSE: "red", Verdict.COLLAPSED: "red", Verdict.UNSTABLE: "yellow"}


def render_terminal(answer: Answer, width: int) -> RenderableType:
    """Something that a rich console can print; `width` in columns decides how much stands in the tables."""
    parts: list[RenderableType] = [
        Text("\n".join(wrap_text(f"{sentence.text}.", width)), style="bold red" if sentence.alarm else "bold")
        for sentence in answer_sentences(answer)
    ]
    parts += _headlines(answer, width)
    parts += _cells(answer, width)
    parts += _pairs(answer, width)
    parts += _anomalies(answer, width)
    doubts = doubt_sentences(answer)
    if doubts:
        lines = [line for text in doubts for line in wrap_text(text, width, first="! ", rest="  ")]
        parts.append(_spaced(Text("\n".join(lines), style="yellow")))
    parts.append(_spaced(Text(_counts(answer), style="dim")))
    return Group(*parts)


def _spaced(part: RenderableType) -> RenderableType:
    return Padding(part, (1, 0, 0, 0))


# ------------------------------------------------------------------------------------------------ tables


def _headlines(answer: Answer, width: int) -> list[RenderableType]:
    rows = arrange_headlines(answer)
    if not rows:
        return []
    experiment = answer.study.plan.experiment
    cells = count(len(experiment.cells), "cell")
    title = f"All {cells} together, against {name_baseline(experiment)}"
    return [_spaced(_decided_table(rows, title, width)), *_note_lines([headline_note(answer)], width)]


def _pairs(answer: Answer, width: int) -> list[RenderableType]:
    rows = arrange_pairs(answer)
    if not rows:
        return []
    main, extra = effect_columns(rows), pair_columns(rows)
    # names of pairs are long: rather broken than without the figures
    columns = [*main, *extra[: _count_fitting(_LEAST_NAME, main, extra, width)]]
    table = _table(rows, title_pairs(answer), columns, names="pair")
    return [_spaced(table), *_note_lines([note_pairs(answer)], width)]


def _decided_table(rows: Sequence[EnvironmentRow], title: str, width: int) -> Table:
    main, extra = effect_columns(rows), decision_columns(rows)
    return _table(rows, title, [*main, *extra[: _count_fitting(_name_width(rows), main, extra, width)]])


def _cells(answer: Answer, width: int) -> list[RenderableType]:
    """One table for each cell, all with the same columns."""
    metric = answer.study.plan.experiment.metric
    explored = bool(headline_comparisons(answer))
    cells = arrange_cells(answer)
    layouts = [(_main_columns(cell, metric), _extra_columns(cell, explored=explored)) for cell in cells]
    extra = min(
        (
            _count_fitting(_name_width(cell.rows), main, more, width)
            for cell, (main, more) in zip(cells, layouts, strict=True)
        ),
        default=0,
    )
    parts: list[RenderableType] = []
    for cell, (main, more) in zip(cells, layouts, strict=True):
        experiment = answer.study.plan.experiment
        title = f"{name_cell(cell.cell, experiment)}{' (exploratory)' if explored else ''}"
        table = _table(cell.rows, title, [*main, *more[:extra]])
        costs = any(column.title == "server CPU" for column in more[:extra])
        caption = f"{METRICS[metric].title}: {say_values(answer.study.plan, cell.cell)}"
        notes = [f"{caption}; CPU and WAL per transaction" if costs else caption, *cell_notes(answer, cell.cell)]
        parts += [_spaced(table), *_note_lines(notes, width)]
    return parts


def _table(
    rows: Sequence[EnvironmentRow], title: str, columns: Sequence[Column], *, names: str = "environment"
) -> Table:
    # Text, not str: square brackets of a name would be read as markup.
    table = Table(title=Text(title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(names, overflow="fold", min_width=_LEAST_NAME)
    for column in columns:
        # Only names are broken where there is no room: figures stay in one piece.
        fixed = None if column.words else width_of(column)
        table.add_column(column.title, justify="left" if column.words else "right", width=fixed)
    for place, row in enumerate(rows):
        table.add_row(Text(row.name), *(_cell(column, place, row) for column in columns))
    return table


def _main_columns(cell: CellRows, metric: str) -> list[Column]:
    return [value_column(cell.rows, metric), *effect_columns(cell.rows)]


def _extra_columns(cell: CellRows, *, explored: bool) -> list[Column]:
    decisions = decision_columns(cell.rows, explored=explored)
    runs = Column(title="runs", cells=tuple(str(row.runs) for row in cell.rows))
    return [*decisions, *cost_columns(cell.rows), runs]


def _name_width(rows: Sequence[EnvironmentRow]) -> int:
    """Columns that whole names need."""
    return max([_LEAST_NAME, *(len(row.name) for row in rows)])


def _count_fitting(names: int, main: Sequence[Column], extra: Sequence[Column], width: int) -> int:
    """For how many of the figures behind the comparison there is room beside so many columns of names."""
    left = width - names - 2 - sum(_GAP + width_of(column) for column in main)
    number = 0
    for column in extra:
        left -= _GAP + width_of(column)
        if left < 0:
            break
        number += 1
    return number


def _cell(column: Column, place: int, row: EnvironmentRow) -> Text:
    if not column.words:
        return Text(column.cells[place])
    style = "dim" if row.comparison is None else _STYLES.get(row.comparison.verdict, "")
    return Text(column.cells[place], style=style if column.title == "verdict" else "")


# ------------------------------------------------------------------------------------------------ words


def _anomalies(answer: Answer, width: int) -> list[RenderableType]:
    lines = [line for text in anomaly_sentences(answer) for line in wrap_text(text, width, first="- ", rest="  ")]
    if not lines:
        return []
    title = "What looked wrong"
    return [_spaced(Text(title, style="bold")), Text("\n".join(lines))]


def _note_lines(notes: Sequence[str], width: int) -> list[RenderableType]:
    lines = [line for note in notes if note for line in wrap_text(note, width, first=" ", rest=" ")]
    return [Text("\n".join(lines), style="dim")] if lines else []


def _counts(answer: Answer) -> str:
    study = answer.study
    text = (
        f"{study.measured_blocks} of {count(len(study.plan.blocks), 'planned block')}, {count(len(study.runs), 'run')}"
    )
    unusual = len(unusual_runs(study))
    return f"{text}, {unusual} of them not simply valid" if unusual else text
