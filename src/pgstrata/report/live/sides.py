"""Figures of two windows side by side: what differs for certain in a table, the rest folded below it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from pgstrata.model.explanation import Change, LoadRow
from pgstrata.report.blocks.model import Block, Column, Details, Paragraph, Table, Tone, begin
from pgstrata.report.live.tables import say_amount
from pgstrata.report.live.words import render_change, render_sessions, render_span
from pgstrata.units import render_count

COMPARISON: Final = "comparison"
WINDOW: Final = "window"
_NARROWEST: Final = 20
_MOST: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A figure of both windows in words; `certain`: its difference is resolved."""

    name: str
    reference: str
    value: str
    difference: str
    certain: bool
    hint: str = ""


def change_line(name: str, change: Change, say: Callable[[float], str], hint: str = "") -> Line:
    """A figure whose change is relative."""
    return Line(
        name=name,
        reference=_finite(change.reference, say),
        value=_finite(change.value, say),
        difference=_difference(change),
        certain=change.resolved,
        hint=hint,
    )


def rate_lines(changes: Iterable[Change], name: Callable[[str], str]) -> Iterator[Line]:
    """Rates and levels of the server or the host; what was nothing in both windows is left out."""
    for change in changes:
        if change.value or change.reference:
            yield change_line(name(change.name), change, partial(say_amount, change.name))


def load_lines(rows: Iterable[LoadRow], name: Callable[[LoadRow], str]) -> Iterator[Line]:
    """Parts of the load, whose change is a number of sessions."""
    for row in rows:
        yield Line(
            name=name(row),
            reference=render_sessions(row.reference),
            value=render_sessions(row.value),
            difference=f"{render_sessions(row.difference, signed=True)} {render_span(row.interval)}".rstrip(),
            certain=row.resolved,
        )


def _finite(value: float, say: Callable[[float], str]) -> str:
    return say(value) if math.isfinite(value) else ""


def _difference(change: Change) -> str:
    if change.reference == 0 and change.value > 0:
        return "new"
    if change.value == 0 and change.reference > 0:
        return "gone"
    return render_change(change)


def side_blocks(title: str, lines: Iterable[Line]) -> Iterator[Block]:
    """What differs for certain, then the rest folded away; the order is that of the lines."""
    rows = list(lines)
    certain = [line for line in rows if line.certain]
    rest = [line for line in rows if not line.certain]
    if certain:
        yield side_table(title, certain[:_MOST])
    elif rest:
        yield Paragraph(f"{begin(title)}: nothing differs for certain.", Tone.NOTE)
    if rest:
        folded = f"{begin(title)}: {render_count(len(rest), 'row')} whose difference may be chance"
        yield Details(folded, (side_table(title, rest[:_MOST]),))


def side_table(title: str, lines: Sequence[Line]) -> Table:
    """Both windows and the difference."""
    return Table(
        names=Column(title=title, cells=tuple(line.name for line in lines)),
        columns=(
            Column(title=COMPARISON, cells=tuple(line.reference for line in lines)),
            Column(title=WINDOW, cells=tuple(line.value for line in lines)),
            Column(title="difference [95 %]", cells=tuple(line.difference for line in lines)),
        ),
        hints=tuple(line.hint for line in lines) if any(line.hint for line in lines) else (),
        breaks=_NARROWEST,
    )
