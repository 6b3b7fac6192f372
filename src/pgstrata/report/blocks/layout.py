"""Plain text within 78 columns: wrapped lines, and tables as wide as what they hold, two where one has no room."""

import re
from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap

from pgstrata.report.blocks.model import Column

TIE = "\xa0"
_UNITS = r"(?:%|µs|ms|s|min|h|d|B|kB|MB|GB|TB)(?![\w/])"


def _joints(blank: str) -> re.Pattern[str]:
    """Blanks between a number and its unit, and between the ends of [-4.2, -1.9]."""
    return re.compile(rf"(?<=\d){blank}(?={_UNITS})|(?<=\d,){blank}(?=[-+±]?[\d.]+\])")


_LOOSE, _TIED = _joints(" "), _joints(TIE)


def tie(text: str) -> str:
    """The text with no-break spaces where a line must not end."""
    return _LOOSE.sub(TIE, text)


def untie(text: str) -> str:
    """The text of `tie` with ordinary spaces again."""
    return _TIED.sub(" ", text)


_JOINTS = re.compile(r"(?<=\s)(?=\S)|(?<=[_=])(?=\w)|(?<=/)(?=\w{3})|(?<=[.:,;|@])(?=[^\d\s])|(?<=\w-)(?=[^\W\d])")


def split_name(text: str) -> list[str]:
    """The pieces of a name after which a line may end: words, and the parts of `options.extra_work` or of a path."""
    return _JOINTS.split(text)


WIDTH = 78
_WIDEST_NAME = 34
_WIDEST_WORDS = 14


def wrap_text(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Lines of at most so many characters; a number and its unit stay together."""
    lines = wrap(tie(text), width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return [untie(line) for line in lines]


def fits(names: Column, columns: Sequence[Column]) -> bool:
    """Whether the names and all these columns have room in one table."""
    return _total(_name_width(names), columns, gap=1) <= WIDTH


def render_tables(names: Column, columns: Sequence[Column], *, narrowest: int = WIDTH) -> list[list[str]]:
    """As many tables as it takes, each with the names at its left; nothing is cut.

    Names are broken at `narrowest` characters or later where that makes one table of all columns.
    """
    room = WIDTH - sum(1 + width_of(column) for column in columns)
    if narrowest <= room < _name_width(names):
        return [_render_table(names, columns, room)]
    tables: list[list[Column]] = []
    for column in columns:
        if tables and fits(names, [*tables[-1], column]):
            tables[-1].append(column)
        else:
            tables.append([column])
    return [_render_table(names, table, _name_width(names)) for table in tables]


def _total(name_width: int, columns: Sequence[Column], *, gap: int) -> int:
    return name_width + sum(gap + width_of(column) for column in columns)


def _name_width(names: Column) -> int:
    return min(_WIDEST_NAME, max((1, *(len(text) for text in (names.title, *names.cells)))))


def width_of(column: Column) -> int:
    """Columns that it needs: headings may be broken between their words, figures are not."""
    longest = max((1, *(len(text) for text in (*column.texts, *column.title.split()))))
    return min(longest, _WIDEST_WORDS if column.words else WIDTH - _WIDEST_NAME - 1)


def _render_table(names: Column, columns: Sequence[Column], name_width: int) -> list[str]:
    widths = [name_width, *map(width_of, columns)]
    lefts = [True, *(column.words for column in columns)]
    rows = zip(names.cells, *(column.texts for column in columns), strict=True)
    gap = "  " if _total(name_width, columns, gap=2) <= WIDTH else " "
    titles = [names.title, *(column.title for column in columns)]
    head = _render_row(titles, widths, lefts, gap)
    rule = gap.join("-" * width for width in widths)
    return [*head, rule, *(line for row in rows for line in _render_row(row, widths, lefts, gap))]


def _render_row(texts: Sequence[str], widths: Sequence[int], lefts: Sequence[bool], gap: str) -> list[str]:
    """Text that is too long for its column goes on in the next line."""
    cells = [wrap(text, width, break_on_hyphens=False) or [""] for text, width in zip(texts, widths, strict=True)]
    lines = []
    for parts in zip_longest(*cells, fillvalue=""):
        aligned = [
            part.ljust(width) if left else part.rjust(width)
            for part, width, left in zip(parts, widths, lefts, strict=True)
        ]
        lines.append(gap.join(aligned).rstrip())
    return lines
