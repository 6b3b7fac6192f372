"""Output to a terminal: text from servers, files or names cannot control it."""

from __future__ import annotations

import re
from typing import Any, Final, TextIO, cast

# Control characters (C0, DEL, C1) except tab and newline, and marks that change the direction of text. Colours pass,
# from any source, because pgstrata's own output uses them; at worst they look odd.
_CONTROL: Final = re.compile(r"(\x1b\[[0-9;]*m)|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def make_plain(stream: TextIO) -> TextIO:
    """A stream that writes control characters as question marks; otherwise the stream itself."""
    return cast("TextIO", _PlainStream(stream))


def erase_line(stream: TextIO) -> None:
    """Erase the current line: the only control sequence besides colours that is let through."""
    getattr(stream, "write_control", stream.write)("\r\x1b[2K")


class _PlainStream:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text; control characters become question marks."""
        self._stream.write(_CONTROL.sub(lambda match: match[1] or "?", text))
        return len(text)

    def write_control(self, sequence: str) -> None:
        """Write a control sequence unchanged."""
        self._stream.write(sequence)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
