"""Blocks for a terminal: the answer, as much of the rest as is asked for, doubts."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum, auto
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from pgstrata.report.blocks.layout import width_of, wrap_text
from pgstrata.report.blocks.model import (
    Block,
    Column,
    ColumnPlace,
    Document,
    Listing,
    Matrix,
    Paragraph,
    Section,
    Table,
    Tone,
)
from pgstrata.report.blocks.text import block_lines

# Blanks that rich puts between two columns.
_GAP = 3
_LEAST_NAME = len("environment")
_LONGEST_NAME = 30
_STYLES = {"better": "green", "worse": "red", "collapsed": "red", "unstable": "yellow", "baseline": "dim"}
_MORE: Final = "More with --details, or pgstrata open STUDY: "


class Extent(StrEnum):
    """How much of a document is shown below its answer.

    ANSWER: the matrix; what is brief only where there is no matrix. TABLES: all that is brief, too. WHOLE: everything
    that plain text has.
    """

    ANSWER = auto()
    TABLES = auto()
    WHOLE = auto()


def emit_terminal(document: Document, width: int, extent: Extent = Extent.TABLES) -> RenderableType:
    """Something that a rich console can print; `width` in columns decides how much stands in the tables."""
    short = extent is Extent.ANSWER and document.matrix is not None
    parts: list[RenderableType] = [
        _wrapped([paragraph.plain], width, style="bold red" if paragraph.tone is Tone.ALARM else "bold")
        for paragraph in document.answer
    ]
    if document.matrix is not None:
        parts += _matrix(document.matrix, width)
    for section in document.sections:
        if isinstance(section, Section) and section.brief:
            parts += [] if short else _section(section, width, _count_shown(section, width))
        elif extent is Extent.WHOLE and (lines := block_lines(section)):
            parts.append(_apart(Text("\n".join(lines))))
    if document.doubts:
        texts = [remark.text for remark in document.doubts]
        parts.append(_apart(_wrapped(texts, width, first="! ", style="yellow")))
    if document.summary:
        parts.append(_apart(Text(document.summary, style="dim")))
    if extent is Extent.ANSWER:
        left = [each.title for each in document.sections if isinstance(each, Section) and (short or not each.brief)]
        parts.append(_wrapped([f"{_MORE}{'; '.join(left)}"], width, style="dim"))
    return Group(*parts)


def _matrix(matrix: Matrix, width: int) -> list[RenderableType]:
    """As many of its columns as there is room for."""
    names = max(_LEAST_NAME, min((_LONGEST_NAME, *map(len, matrix.rows))))
    left, most = width - names - 2, 0
    for column in matrix.table().columns:
        left -= _GAP + width_of(column)
        if left < 0:
            break
        most += 1
    most = max(1, most)
    rest = len(matrix.columns) - most
    note = [_wrapped([f"and {rest} more: see the report"], width, first=" ", style="dim")] if rest else []
    return [_apart(_wrapped([matrix.title], width, style="bold")), *_table(matrix.table(most), width, 0), *note]


def _apart(part: RenderableType) -> RenderableType:
    return Padding(part, (1, 0, 0, 0))


def _wrapped(texts: Iterable[str], width: int, *, first: str = "", style: str = "") -> Text:
    lines = [line for text in texts for line in wrap_text(text, width, first=first, rest=" " * len(first))]
    return Text("\n".join(lines), style=style)


def _section(section: Section, width: int, shown: int) -> list[RenderableType]:
    """Its blocks below its title, then the sections in it; nothing where there is nothing to show."""
    own: list[RenderableType] = []
    for block in section.blocks:
        own += _block(block, width, shown)
    within = [part for block in section.blocks if isinstance(block, Section) for part in _section(block, width, shown)]
    title = _apart(_wrapped([section.title], width, style="bold"))
    return [*([title, *own] if own else []), *within]


def _block(block: Block, width: int, shown: int) -> list[RenderableType]:
    match block:
        case Table():
            return _table(block, width, shown)
        case Listing():
            return [_wrapped(block.items, width, first="- ")]
        case Paragraph(tone=Tone.NOTE):
            return [_wrapped([block.plain], width, first=" ", style="dim")]
        case _:
            return []


def _table(table: Table, width: int, shown: int) -> list[RenderableType]:
    columns = [*table.at(ColumnPlace.LEAD, ColumnPlace.MAIN), *table.at(ColumnPlace.MORE, ColumnPlace.ASIDE)[:shown]]
    if _LEAST_NAME + sum(_GAP + width_of(column) for column in columns) > width:
        return [_rows(table, columns, width)]
    found = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    found.add_column(Text(table.names.title), overflow="fold", min_width=_LEAST_NAME)
    for column in columns:
        # Only names are broken where there is no room: figures stay in one piece.
        fixed = None if column.words else width_of(column)
        found.add_column(Text(column.title), justify="left" if column.words else "right", width=fixed)
    for place, name in enumerate(table.names.cells):
        # Text, not str: square brackets of a name would be read as markup.
        found.add_row(Text(name), *(_cell(column, place) for column in columns))
    aside = any(column.place is ColumnPlace.ASIDE for column in columns)
    return [found, *([_wrapped([table.aside[1]], width, first=" ", style="dim")] if aside else [])]


def _rows(table: Table, columns: Sequence[Column], width: int) -> Text:
    """A table as a list, where its columns do not fit beside each other: nothing of it may be cut off."""
    rows = (
        f"{name}: "
        + ", ".join(
            f"{column.title.partition(',')[0]} {column.texts[place]}" for column in columns if column.texts[place]
        )
        for place, name in enumerate(table.names.cells)
    )
    return _wrapped(rows, width, first="- ")


def _cell(column: Column, place: int) -> Text:
    style = _STYLES.get(column.verdicts[place], "") if column.verdicts else ""
    return Text(column.texts[place], style=style)


def _count_shown(section: Section, width: int) -> int:
    """How many of the figures behind the comparison all tables of a section show: the same columns in each."""
    return min((_count_fitting(table, width) for table in _tables(section.blocks)), default=0)


def _tables(blocks: Sequence[Block]) -> Iterator[Table]:
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Section):
            yield from _tables(block.blocks)


def _count_fitting(table: Table, width: int) -> int:
    """For how many of the lesser columns there is room beside the names, which may be broken where they are long."""
    names = max((_LEAST_NAME, *map(len, table.names.cells))) if not table.breaks else _LEAST_NAME
    left = width - names - 2 - sum(_GAP + width_of(column) for column in table.at(ColumnPlace.LEAD, ColumnPlace.MAIN))
    number = 0
    for column in table.at(ColumnPlace.MORE, ColumnPlace.ASIDE):
        left -= _GAP + width_of(column)
        if left < 0:
            break
        number += 1
    return number
