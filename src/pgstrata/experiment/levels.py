"""How levels of layers are written that several layers have: words, sizes, texts, devices."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from pgstrata.experiment.keys import WrongValueError, suggest
from pgstrata.experiment.values import Scalar
from pgstrata.units import parse_bytes

_WORD: Final = re.compile(r"[A-Za-z0-9_.-]+")


def level_text(value: Scalar) -> str:
    """The level as text: on and off for booleans."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value).strip()


def one_of(*choices: str) -> Callable[[Scalar], str]:
    """A reader of one of a few words, in any case of letters."""

    def read(value: Scalar) -> str:
        text = level_text(value).lower()
        if text not in choices:
            raise WrongValueError(f"{level_text(value)!r} cannot stand here", suggest(text, choices))
        return text

    return read


def size(least: int) -> Callable[[Scalar], str]:
    """A reader of bytes, or bytes per second, from a least number on."""

    def read(value: Scalar) -> str:
        number = None if isinstance(value, bool) else bytes_or_none(level_text(value).removesuffix("/s"))
        if number is None:
            raise WrongValueError(
                f"{level_text(value)!r} is not a valid size", 'write it with its unit, in quotes: "4GB", "100MB"'
            )
        if number < least:
            raise WrongValueError(f"{level_text(value)!r} is too small", f"write at least {least // 1024} kB")
        return str(number)

    return read


def bytes_or_none(value: Scalar) -> int | None:
    """Bytes; None where it is no size."""
    try:
        return parse_bytes(level_text(value))
    except ValueError:
        return None


def read_word(value: Scalar) -> str:
    """One word."""
    text = level_text(value)
    if not _WORD.fullmatch(text):
        raise WrongValueError(f"{text!r} is not one word", "write it as the kernel does")
    return text


def read_options(value: Scalar) -> str:
    """Options of a program, as one text."""
    if isinstance(value, bool) or not level_text(value):
        raise WrongValueError("options are one text", 'write for example "noatime" or "-m crc=0"')
    return level_text(value)
