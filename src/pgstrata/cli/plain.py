"""What is printed holds no orders to a terminal, whoever wrote it: a server, a file, the name of a folder."""

from __future__ import annotations

import re
from typing import Any, Final, TextIO, cast

# Control characters (C0, DEL, C1) but the tabulator and the end of a line, and marks that turn the direction of a text.
# Colours are let through: they are how our own lines are set apart, and all that they could do is to look odd.
_ORDERS: Final = re.compile(r"(\x1b\[[0-9;]*m)|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def make_plain(stream: TextIO) -> TextIO:
    """A stream that shows a question mark where an order would stand; all else is that of the stream itself."""
    return cast("TextIO", _PlainStream(stream))


def erase_line(stream: TextIO) -> None:
    """The one order that is meant: the last line is written anew."""
    getattr(stream, "give_order", stream.write)("\r\x1b[2K")


class _PlainStream:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write it, without orders."""
        self._stream.write(_ORDERS.sub(lambda match: match[1] or "?", text))
        return len(text)

    def give_order(self, order: str) -> None:
        """Write it as it is."""
        self._stream.write(order)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
