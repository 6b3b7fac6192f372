"""The answer for a terminal: sentences, one table per cell, doubts."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgstrata.model.answer import Answer, Verdict
from pgstrata.model.metrics import METRICS
from pgstrata.report.columns import Column, cost_columns, effect_columns, value_column, width_of, wrap_text
from pgstrata.report.doubts import doubt_sentences
from pgstrata.report.names import count, name_cell
from pgstrata.report.rows import CellRows, EnvironmentRow, arrange_cells, count_blocks, unusual_runs
from pgstrata.report.words import answer_sentences

# Blanks that rich puts between two columns.
_GAP = 3
_STYLES = {Verdict.BETTER: "green", Verdict.WORSE: "red", Verdict.COLLAPSED: "red", Verdict.UNSTABLE: "yellow"}


def render_terminal(answer: Answer, width: int) -> RenderableType:
    """Something that a rich console can print; `width` in columns decides how much stands in the tables."""
    parts: list[RenderableType] = [
        Text("\n".join(wrap_text(f"{sentence.text}.", width)), style="bold red" if sentence.alarm else "bold")
        for sentence in answer_sentences(answer)
    ]
    cells = arrange_cells(answer)
    metric = answer.study.plan.experiment.metric
    extra = min((_count_extra(cell, metric, width) for cell in cells), default=0)
    parts += [Padding(_cell_table(answer, cell, extra), (1, 0, 0, 0)) for cell in cells]
    doubts = doubt_sentences(answer)
    if doubts:
        lines = [line for text in doubts for line in wrap_text(text, width, first="! ", rest="  ")]
        parts.append(Padding(Text("\n".join(lines), style="yellow"), (1, 0, 0, 0)))
    parts.append(Padding(Text(_counts(answer), style="dim"), (1, 0, 0, 0)))
    return Group(*parts)


def _cell_table(answer: Answer, cell: CellRows, extra: int) -> Table:
    experiment = answer.study.plan.experiment
    # Text, not str: square brackets of a name would be read as markup.
    title = Text(name_cell(cell.cell, experiment), style="bold")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    columns = [*_main_columns(cell, experiment.metric), *_extra_columns(cell)[:extra]]
    table.add_column("environment", overflow="fold", min_width=len("environment"))
    for column in columns:
        # Only names are broken where there is no room: figures stay in one piece.
        fixed = None if column.words else width_of(column)
        table.add_column(column.title, justify="left" if column.words else "right", width=fixed)
    for place, row in enumerate(cell.rows):
        table.add_row(Text(row.name), *(_cell(column, place, row) for column in columns))
    caption = f"{METRICS[experiment.metric].title}: median of the runs"
    caption += "; CPU and WAL per transaction" if extra else ""
    table.caption = Text(caption, style="dim")
    table.caption_justify = "left"
    return table


def _main_columns(cell: CellRows, metric: str) -> list[Column]:
    return [value_column(cell.rows, metric), *effect_columns(cell.rows)]


def _extra_columns(cell: CellRows) -> list[Column]:
    return [*cost_columns(cell.rows), Column(title="runs", cells=tuple(str(row.runs) for row in cell.rows))]


def _count_extra(cell: CellRows, metric: str, width: int) -> int:
    """For how many of the figures behind the comparison there is room beside whole names."""
    names = max(len(text) for text in ("environment", *(row.name for row in cell.rows)))
    left = width - names - 2 - sum(_GAP + width_of(column) for column in _main_columns(cell, metric))
    number = 0
    for column in _extra_columns(cell):
        left -= _GAP + width_of(column)
        if left < 0:
            break
        number += 1
    return number


def _cell(column: Column, place: int, row: EnvironmentRow) -> Text:
    if not column.words:
        return Text(column.cells[place])
    style = "dim" if row.comparison is None else _STYLES.get(row.comparison.verdict, "")
    return Text(column.cells[place], style=style)


def _counts(answer: Answer) -> str:
    study = answer.study
    text = f"{count_blocks(study)} of {count(len(study.plan.blocks), 'planned block')}, {count(len(study.runs), 'run')}"
    unusual = len(unusual_runs(study))
    return f"{text}, {unusual} of them not simply valid" if unusual else text
