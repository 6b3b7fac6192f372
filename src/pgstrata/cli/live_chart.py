"""Charts of the live screen in characters: a course as bars, and the load stacked by class of wait events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.cli.live_cells import Line, Paint, Piece, joined
from pgstrata.cli.live_state import Column
from pgstrata.model.attribution import Part
from pgstrata.report.live.words import local
from pgstrata.report.sentences.causes import PART_NAMES

_BARS: Final = " ▁▂▃▄▅▆▇█"
_EIGHTHS: Final = 8
_TOPS: Final = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
"""Leading digits of the upper end of a scale."""
_GAP: Final = "·"
_TICKS: Final = (15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)
_APART: Final = 12
"""Columns from one time to the next at least."""
_BLANK: Final = Piece(" ")


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitClass:
    """Wait events that are shown together: those of `wait_type`, empty for sessions without one."""

    wait_type: str
    letter: str
    name: str
    paint: Paint


_OTHERS: Final = "other"
CLASSES: Final = (
    WaitClass(wait_type="", letter="C", name=PART_NAMES[Part.RUNNING], paint=Paint.RUNNING),
    WaitClass(wait_type="IO", letter="I", name="IO", paint=Paint.IO),
    WaitClass(wait_type="LWLock", letter="W", name="LWLock", paint=Paint.LWLOCK),
    WaitClass(wait_type="Lock", letter="L", name="Lock", paint=Paint.LOCK),
    WaitClass(wait_type="IPC", letter="P", name="IPC", paint=Paint.IPC),
    WaitClass(wait_type="Client", letter="N", name="Client", paint=Paint.CLIENT),
    WaitClass(wait_type=_OTHERS, letter="o", name="other waits", paint=Paint.OTHER),
)
"""From the bottom of the stack to its top; all other types are in the last."""
_NAMED: Final = frozenset(each.wait_type for each in CLASSES)


def share_of(column: Column, shown: WaitClass) -> float:
    """The part of a column's load that belongs to a class."""
    if shown.wait_type != _OTHERS:
        return column.share(shown.wait_type)
    others = column.sessions.keys() - _NAMED
    return sum(map(column.share, others)) if others else 0.0


def draw_bars(values: Sequence[float]) -> str:
    """A bar for each value above zero; a blank where there is none."""
    top = max((value for value in values if math.isfinite(value)), default=0.0)
    return "".join(_bar(value, top) for value in values)


def _bar(value: float, top: float) -> str:
    if not math.isfinite(value):
        return " "
    return _BARS[max(1, round(value / top * _EIGHTHS))] if top > 0 else _BARS[1]


def scale_of(most: float) -> float:
    """A round number that is at least `most`, the upper end of a scale."""
    if not most > 1:
        return 1.0
    size = 10.0 ** math.floor(math.log10(most))
    return next((size * lead for lead in _TOPS if size * lead >= most), 10 * size)


def draw_stack(columns: Sequence[Column], rows: int) -> tuple[float, list[Line]]:
    """The upper end of the scale, and lines from the top: a letter and a colour for each class.

    Each character shows the class at its middle; the upper end of a stack is a bar that is less than half as high.
    """
    top = scale_of(max((column.load for column in columns if column.looks), default=0.0))
    stacks = [_stack(column, rows, top) for column in columns]
    return top, [joined(stack[row] for stack in stacks) for row in reversed(range(rows))]


def _stack(column: Column, rows: int, top: float) -> list[Piece]:
    """The pieces of a column from the bottom."""
    found: list[Piece] = []
    if not column.looks:
        found.append(Piece(_GAP, Paint.FAINT))
    elif column.sessions:
        height, upmost = 0.0, CLASSES[0]
        for each in CLASSES:
            share = share_of(column, each) / top * rows
            if share > 0:
                height, upmost = height + share, each
                found += [Piece(each.letter, each.paint)] * (math.floor(height + 0.5) - len(found))
        eighths = round((height - len(found)) * _EIGHTHS)
        if eighths > 0:
            found.append(Piece(_BARS[eighths], upmost.paint))
    return found + [_BLANK] * (rows - len(found))


def draw_clock(columns: Sequence[Column], step: int) -> str:
    """Times below columns of `step` seconds, each beginning at its own."""
    tick = next((each for each in _TICKS if each >= _APART * step), _TICKS[-1])
    pattern = "%H:%M:%S" if tick % 60 else "%H:%M"
    line = ""
    for place, column in enumerate(columns):
        said = local(column.start).strftime(f"╵{pattern}") if column.start % tick == 0 else ""
        if said and len(line) <= place <= len(columns) - len(said):
            line = f"{line:<{place}}{said}"
    return line
