"""Blocks as Markdown with the tables of GitHub, for issues, wikis and pull requests."""

import re
from collections.abc import Iterable, Sequence

from pgstrata.report.blocks.model import (
    Block,
    Column,
    ColumnPlace,
    Details,
    Document,
    Facts,
    Figure,
    Listing,
    Matrix,
    OnPage,
    Paragraph,
    Section,
    Table,
    Tone,
    Verbatim,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")
_MARKER = re.compile(r"^([-+]|\d+[.)])(?=\s)")


def emit_markdown(document: Document) -> str:
    """The whole document: the question as its heading, the answer, a line for each kind of doubt, then the sections."""
    parts = [f"# {escape(document.title)}"] if document.title else []
    parts += [_paragraph(paragraph) for paragraph in document.answer]
    if document.matrix is not None:
        parts += [f"## {escape(document.matrix.title)}", *_tables(document.matrix.table())]
    if document.doubts:
        parts += ["## Doubts", _items(remark.text for remark in document.doubts)]
    parts += _blocks(document.sections, 2)
    return "\n\n".join([*parts, *([escape(document.colophon)] if document.colophon else [])]) + "\n"


def escape(text: str) -> str:
    """Text from elsewhere in one line, without what Markdown or HTML would read as markup."""
    return _MARKER.sub(r"\\\1", _SPECIAL.sub(r"\\\1", " ".join(text.split())))


def _blocks(blocks: Iterable[Block], level: int) -> list[str]:
    return [part for block in blocks for part in _block(block, level)]


def _block(block: Block, level: int) -> list[str]:
    match block:
        case Section() | Details():
            body = _blocks(block.blocks, min(level + 1, 6))
            return [*([f"{'#' * level} {escape(block.title)}"] if block.title else []), *body] if body else []
        case Paragraph(tone=Tone.HELP) | Figure() | OnPage():
            return []
        case Paragraph():
            return [_paragraph(block)]
        case Listing():
            return [_items(block.items)]
        case Facts():
            facts = _items([f"{fact.name}: {fact.value}" for fact in block.facts])
            return [f"**{escape(block.title)}**", facts] if block.title else [facts]
        case Verbatim():
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
            return [f"{fence}\n{block.text}\n{fence}"]
        case Table():
            return _tables(block)
        case Matrix():
            return [f"**{escape(block.title)}**", *_tables(block.table())]


def _paragraph(block: Paragraph) -> str:
    text = escape(block.plain)
    return f"**{text}**" if block.tone is Tone.ALARM else text


def _items(texts: Iterable[str]) -> str:
    return "\n".join(f"- {escape(text)}" for text in texts)


def _tables(table: Table) -> list[str]:
    found = [_table(table.names, table.at(ColumnPlace.LEAD, ColumnPlace.MAIN, ColumnPlace.MORE))]
    aside = table.at(ColumnPlace.ASIDE)
    return [*found, _table(Column(title=table.aside[0], cells=table.names.cells), aside)] if aside else found


def _table(names: Column, columns: Sequence[Column]) -> str:
    rule = ["---", *("---" if column.words else "---:" for column in columns)]
    rows = zip(names.cells, *(column.texts for column in columns), strict=True)
    head, *body = (_row(map(escape, row)) for row in ([column.title for column in (names, *columns)], *rows))
    return "\n".join([head, _row(rule), *body])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
