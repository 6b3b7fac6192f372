"""Output to a terminal: no text from servers, files or names can control it, except its colours and its weight."""

import re
from collections.abc import Iterable
from typing import Any, Final, TextIO, cast

# The styles of pgstrata's own output pass, from any source: bold, dim, red, green, yellow and their end. At worst text
# looks odd.
_STYLE: Final = r"\x1b\[(?:(?:[012]|3[123])(?:;(?:[012]|3[123]))*)?m"
# Control characters (C0, DEL, C1) except tab and newline, marks that change the direction of text, and surrogates, for
# which there is no encoding.
_CONTROL: Final = re.compile(
    rf"({_STYLE})|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def make_plain(stream: TextIO) -> TextIO:
    """A stream that writes control characters, and what its encoding lacks, as question marks; otherwise itself."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
    return cast("TextIO", _PlainStream(stream))


def erase_lines(stream: TextIO, number: int) -> None:
    """Erase so many lines above the cursor, and what follows: the only control sequences that are let through."""
    up = f"\x1b[{number}A" if number > 0 else ""
    getattr(stream, "write_control", stream.write)(f"{up}\r\x1b[0J")


class _PlainStream:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text; control characters become question marks."""
        self._stream.write(_CONTROL.sub(lambda match: match[1] or "?", text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts as `write` does."""
        for line in lines:
            self.write(line)

    def write_control(self, sequence: str) -> None:
        """Write a control sequence unchanged."""
        self._stream.write(sequence)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
