"""Blocks as plain text, ready for a mailing list: no line but those to be copied is longer than 78 columns."""

from collections.abc import Iterable, Sequence

from pgstrata.report.blocks.layout import WIDTH, fits, render_tables, wrap_text
from pgstrata.report.blocks.model import (
    Block,
    Column,
    ColumnPlace,
    Details,
    Document,
    Fact,
    Facts,
    Figure,
    Listing,
    Matrix,
    OnPage,
    Paragraph,
    Remark,
    Section,
    Shape,
    Table,
    Tone,
    Verbatim,
)

_INDENT = "    "


def emit_text(document: Document) -> str:
    """The whole document: the answer, the question and doubts, then the sections."""
    head = [line for paragraph in document.answer for line in wrap(paragraph.plain)]
    asked = wrap(f"Question: {document.title}") if document.title else []
    asked += wrap(f"Measured: {document.summary}") if document.summary else []
    matrix = Section(document.matrix.title, (document.matrix.table(),)) if document.matrix else None
    before = block_lines(matrix) if matrix else []
    sections = [before, _doubt_lines(document.doubts), *(block_lines(block) for block in document.sections)]
    return "\n\n".join(filter(None, map("\n".join, (head, asked, *sections)))) + "\n"


def _doubt_lines(doubts: Sequence[Remark]) -> list[str]:
    """Each kind of doubt, and below it the cases that it sums up."""
    lines: list[str] = []
    for doubt in doubts:
        lines += wrap(doubt.text, first="- ", rest="  ")
        lines += [line for text in doubt.cases for line in wrap(text, first="  - ", rest="    ")]
    return [*_heading("Doubts", 0), *lines] if lines else []


def wrap(text: str, *, first: str = "", rest: str = "") -> list[str]:
    """Lines of at most 78 columns."""
    return wrap_text(text, WIDTH, first=first, rest=rest) or [first.rstrip()]


def block_lines(block: Block, depth: int = 0) -> list[str]:
    """The lines of one block; none of what stands on pages only."""
    match block:
        case Section() | Details():
            body = blocks_lines(block.blocks, depth + 1)
            return [*_heading(block.title, depth), *body] if body and block.title else body
        case Paragraph(tone=Tone.HELP) | Figure() | OnPage():
            return []
        case Paragraph(tone=Tone.NOTE):
            return wrap(block.plain, first="  ", rest="  ")
        case Paragraph():
            return wrap(block.plain)
        case Listing():
            return [line for text in block.items for line in wrap(text, first="- ", rest="  ")]
        case Facts():
            return _facts_lines(block.facts, block.title)
        case Verbatim():
            return _verbatim_lines(block)
        case Table():
            return _table_lines(block)
        case Matrix():
            return [*wrap(block.title), *_table_lines(block.table())]


def blocks_lines(blocks: Iterable[Block], depth: int = 0) -> list[str]:
    """Blocks below each other; a blank line before and after those that are not running text."""
    lines: list[str] = []
    apart = False
    for block in blocks:
        found = block_lines(block, depth)
        if not found:
            continue
        stands = isinstance(block, Section | Details | Verbatim) or _is_ruled(block)
        if lines and (stands or apart):
            lines.append("")
        lines += found
        # the notes of a table stand right below it
        apart = stands and not _is_ruled(block)
    return lines


def _is_ruled(block: Block) -> bool:
    return isinstance(block, Table) and block.shape is not Shape.SENTENCES


def _heading(title: str, depth: int) -> list[str]:
    """Ruled at the top, elsewhere with a blank line unless a colon leads over to what follows."""
    lines = wrap(title)
    if depth:
        return lines if title.endswith(":") else [*lines, ""]
    return [*lines, "-" * max(map(len, lines))]


def _facts_lines(facts: Sequence[Fact], title: str) -> list[str]:
    indent = f"  {'  ' if title else ''}"
    lines = wrap(f"{title}:", first="  ", rest="  ") if title else []
    for fact in facts:
        lines += wrap(f"{fact.name}: {fact.value}", first=indent, rest=f"{indent}    ")
    return lines


def _verbatim_lines(block: Verbatim) -> list[str]:
    if block.exact:
        return [f"{_INDENT}{line}".rstrip() for line in block.text.splitlines()]
    lines = []
    depths = [len(line) - len(line.lstrip()) for line in block.text.splitlines()]
    deepest = max(depths, default=0)
    for line, depth in zip(block.text.splitlines(), depths, strict=True):
        # a tree that is deeper than half a line is drawn closer together, so that its levels stay apart
        indent = _INDENT + " " * (depth if deepest <= WIDTH // 2 else depth * (WIDTH // 2) // deepest)
        lines += wrap(line.strip(), first=indent, rest=f"{indent}    ")
    return lines


def _table_lines(table: Table) -> list[str]:
    match table.shape:
        case Shape.SENTENCES:
            return _sentences(table)
        case Shape.RECORDS:
            return _records(table)
        case Shape.TABLE:
            return _ruled_tables(table)


def _ruled_tables(table: Table) -> list[str]:
    """One table, or several where the columns do not fit beside each other."""
    names = table.names
    lead, main, more = (table.at(place) for place in (ColumnPlace.LEAD, ColumnPlace.MAIN, ColumnPlace.MORE))
    if fits(names, [*lead, *main, *more]) or not (lead or more):
        groups = [[*lead, *main, *more]]
    elif fits(names, [*lead, *main]):
        groups = [[*lead, *main], [*more]]
    else:
        groups = [[*main], [*lead, *more]]
    tables = [lines for group in groups for lines in render_tables(names, group, narrowest=table.breaks or WIDTH)]
    if aside := table.at(ColumnPlace.ASIDE):
        tables += render_tables(Column(title=table.aside[0], cells=names.cells), aside)
    return [line for lines in tables for line in ("", *lines)][1:]


def _sentences(table: Table) -> list[str]:
    lines: list[str] = []
    rows = len(table.names.cells)
    most = min(table.most or rows, rows)
    for place in range(most):
        said = "".join(f"{column.joint}{column.texts[place]}" for column in table.columns if column.texts[place])
        lines += wrap(f"{table.names.cells[place]}{said}", first="- ", rest="  ")
    return lines if most == rows else [*lines, f"  ... and {rows - most} more"]


def _records(table: Table) -> list[str]:
    lines: list[str] = []
    for place, name in enumerate(table.names.cells):
        lines += wrap(name, first="  ", rest="    ")
        for column in table.columns:
            lines += wrap(f"{column.title}: {column.texts[place]}", first="    ", rest="      ")
    return lines
