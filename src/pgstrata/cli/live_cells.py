"""Lines of a live screen as pieces of text with a paint each; no text in them can control the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rich.cells import cell_len, set_cell_size

# Control characters, and marks that change the direction of text.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Paint(StrEnum):
    """How a piece looks: what it means, not its colour."""

    PLAIN = "plain"
    STRONG = "strong"
    FAINT = "faint"
    TITLE = "title"
    GOOD = "good"
    ALARM = "alarm"
    RUNNING = "running"
    IO = "IO"
    LWLOCK = "LWLock"
    LOCK = "Lock"
    IPC = "IPC"
    CLIENT = "Client"
    OTHER = "other"


_BACKGROUNDS: Final = {
    Paint.RUNNING: 2, Paint.IO: 4, Paint.LWLOCK: 3, Paint.LOCK: 1, Paint.IPC: 5, Paint.CLIENT: 6, Paint.OTHER: 7,
}  # fmt: skip
"""Numbers of the eight colours of every terminal."""
_WEIGHTS: Final = {
    Paint.STRONG: "1", Paint.FAINT: "2", Paint.TITLE: "7", Paint.GOOD: "1", Paint.ALARM: "1;7",
}  # fmt: skip
_COLOURS: Final = {**_WEIGHTS, Paint.GOOD: "1;32", Paint.ALARM: "1;37;41"}
_DARK: Final = frozenset({Paint.IO, Paint.LOCK, Paint.IPC})
"""Colours on which white letters are read best."""
_BLOCKS: Final = frozenset("▁▂▃▄▅▆▇█")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a line."""

    text: str
    paint: Paint = Paint.PLAIN


Line = tuple[Piece, ...]


def width_of(line: Iterable[Piece]) -> int:
    """Columns that it takes on a terminal; some characters take two."""
    return sum(cell_len(piece.text) for piece in line)


def fit(line: Iterable[Piece], columns: int) -> Line:
    """As much of a line as there is room for; its end is cut."""
    found: list[Piece] = []
    left = columns
    for piece in line:
        if left <= 0:
            break
        text = _CONTROL.sub("?", piece.text)
        width = cell_len(text)
        found.append(Piece(text if width <= left else set_cell_size(text, left), piece.paint))
        left -= width
    return tuple(found)


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """A text that takes exactly so many columns, at the left or at the right of them."""
    width = cell_len(text)
    if width > columns:
        return set_cell_size(text, columns)
    blanks = " " * (columns - width)
    return f"{blanks}{text}" if right else f"{text}{blanks}"


def shortened(text: str, columns: int) -> str:
    """A text with an ellipsis where it is too long."""
    return text if cell_len(text) <= columns else f"{set_cell_size(text, max(0, columns - 1)).rstrip()}…"


def joined(pieces: Iterable[Piece]) -> Line:
    """Neighbours of the same paint as one piece."""
    found: list[Piece] = []
    for piece in pieces:
        if found and found[-1].paint is piece.paint:
            found[-1] = Piece(found[-1].text + piece.text, piece.paint)
        else:
            found.append(piece)
    return tuple(found)


def render_frame(lines: Sequence[Line], columns: int, *, colour: bool, anew: bool = False) -> str:
    """Lines over what is on the terminal, from its upper left corner on; `anew`: after all of it was erased.

    Lines that take all `columns` erase nothing: the cursor still stands on their last character then.
    """
    shown = ("".join(_painted(line, colour=colour)) for line in lines)
    ends = ("" if width_of(line) >= columns else "\x1b[K" for line in lines)
    start = "\x1b[2J\x1b[H" if anew else "\x1b[H"
    return start + "\r\n".join(f"{line}{end}" for line, end in zip(shown, ends, strict=True))


def _painted(line: Line, *, colour: bool) -> Iterator[str]:
    for piece in line:
        code = _code(piece, colour=colour)
        yield f"\x1b[{code}m{piece.text}\x1b[0m" if code else piece.text


def _code(piece: Piece, *, colour: bool) -> str:
    """Parameters of the sequence that selects a paint; empty where there is nothing to select."""
    if not colour:
        return _WEIGHTS.get(piece.paint, "")
    number = _BACKGROUNDS.get(piece.paint)
    if number is None:
        return _COLOURS.get(piece.paint, "")
    if piece.text[:1] in _BLOCKS:
        return f"3{number}"
    return f"{'97' if piece.paint in _DARK else '30'};4{number}"
