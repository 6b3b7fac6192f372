"""What must not be parted at the end of a line: a number and its unit, the two ends of an interval."""

from __future__ import annotations

import re

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
