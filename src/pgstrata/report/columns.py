"""The columns of a cell's tables, and tables of plain text: as wide as what they hold, two where one has no room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import wrap

from pgstrata.model.answer import Comparison
from pgstrata.report.rows import COST_TITLES, COSTS, EnvironmentRow, render_measurement
from pgstrata.report.ties import tie, untie
from pgstrata.report.verdicts import (
    render_adjusted,
    render_decided,
    render_interval,
    render_p,
    render_sureness,
    shown_interval,
    verdict_label,
)
from pgstrata.units import render_percent_change

WIDTH = 78
_WIDEST_NAME = 34
_WIDEST_WORDS = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A heading and its cells; `words` stand at the left of their column and may be wrapped, numbers at the right."""

    title: str
    cells: tuple[str, ...]
    words: bool = False


def value_column(rows: Sequence[EnvironmentRow], metric: str) -> Column:
    """The primary metric."""
    return Column(title=metric, cells=tuple(render_measurement(row.value, metric) for row in rows))


def effect_columns(rows: Sequence[EnvironmentRow]) -> list[Column]:
    """Effect, interval and verdict of each environment."""
    found = [row.comparison for row in rows]
    return [
        Column(title="effect", cells=tuple(_render_effect(item) for item in found)),
        Column(title="interval, %", cells=tuple(_render_interval(item) for item in found)),
        Column(title="verdict", cells=tuple(verdict_label(item) if item else "baseline" for item in found), words=True),
    ]


def decision_columns(rows: Sequence[EnvironmentRow], *, explored: bool = False) -> list[Column]:
    """After how many blocks the verdict fell, and how far from chance it is; the confidence of headlines.

    `explored` cells have a p adjusted for their number instead of a confidence of their own.
    """
    found = [row.comparison for row in rows]
    columns = [
        Column(title="decided", cells=tuple(render_decided(item) if item else "" for item in found), words=True),
        Column(title="p", cells=tuple(render_p(item.repeated_p, item) if item else "" for item in found)),
    ]
    if explored:
        cells = tuple(render_adjusted(item) if item else "" for item in found)
        return [*columns, Column(title="adj. p", cells=cells)]
    cells = tuple(render_sureness(item) if item else "" for item in found)
    return [*columns, Column(title="confidence", cells=cells)]


def pair_columns(rows: Sequence[EnvironmentRow]) -> list[Column]:
    """Of pairs of environments, beside their effects: the blocks behind them, and p adjusted for their number."""
    found = [row.comparison for row in rows if row.comparison]
    return [
        Column(title="blocks", cells=tuple(str(item.blocks) for item in found)),
        Column(title="adj. p", cells=tuple(render_adjusted(item) for item in found)),
    ]


def _render_effect(comparison: Comparison | None) -> str:
    if comparison is None:
        return ""
    return render_percent_change(comparison.effect) if comparison.effect is not None else "-"


def _render_interval(comparison: Comparison | None) -> str:
    return "" if comparison is None else render_interval(shown_interval(comparison)) or "-"


def cost_columns(rows: Sequence[EnvironmentRow]) -> list[Column]:
    """What a transaction costs, as far as it was measured."""
    used = [place for place in range(len(COSTS)) if any(row.costs[place] is not None for row in rows)]
    return [
        Column(
            title=COST_TITLES[COSTS[place]],
            cells=tuple(render_measurement(row.costs[place], COSTS[place]) for row in rows),
        )
        for place in used
    ]


# ------------------------------------------------------------------------------------------------ layout


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
    return min(_WIDEST_NAME, max(len(text) for text in (names.title, *names.cells)))


def width_of(column: Column) -> int:
    """Columns that it needs: headings may be broken between their words, figures are not."""
    longest = max((len(text) for text in (*column.cells, *column.title.split())), default=1)
    return min(longest, _WIDEST_WORDS if column.words else WIDTH - _WIDEST_NAME - 1)


def _render_table(names: Column, columns: Sequence[Column], name_width: int) -> list[str]:
    widths = [name_width, *map(width_of, columns)]
    lefts = [True, *(column.words for column in columns)]
    rows = zip(names.cells, *(column.cells for column in columns), strict=True)
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
