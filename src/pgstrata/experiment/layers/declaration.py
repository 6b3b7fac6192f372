"""What is declared of a layer of the host, and readers of levels that several layers have.

Parsing, schema, reference, doctor and design follow from it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from pgstrata.experiment.keys import WrongValueError, suggest
from pgstrata.experiment.needs import HostLine
from pgstrata.experiment.values import SCALAR, Kind, Scalar
from pgstrata.units import parse_bytes


class Together(StrEnum):
    """Whether servers that are up together can have different levels of a key.

    NO: it belongs to the whole host. FOR_ONE: it is made for one server, and none can be up beside that. BY_PERIODS:
    the kernel gives it out by periods, so that a slice also gets what a pause has saved up.
    """

    DIFFERENT = "different"
    NO = "no"
    FOR_ONE = "for one"
    BY_PERIODS = "by periods"


@dataclass(frozen=True, slots=True)
class LayerKey:
    """A key of a layer, such as cpu.quota.

    `read` gives the normalised text of a written level or raises WrongValueError; `meaning` is its line in the
    reference, in Markdown.
    """

    read: Callable[[Scalar], str]
    meaning: str
    together: Together = Together.NO


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorKey:
    """A key of [common], [[environments]] and [factors]: one level, or with the kind TABLE a table of keys with levels.

    `levels` is its meaning in [factors] where that is another one. `wrong` and `wrong_levels` are values in [common]
    and [factors] with which the reference shows what is said to a mistake.
    """

    meaning: str
    wrong: str
    wrong_levels: str
    levels: str = ""
    kind: Kind[Any] = SCALAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer: its keys in the file and all their levels, such as cpu and cpu.quota; lines of `doctor`.

    A key that ends in .* stands for all names below it.
    """

    factors: Mapping[str, FactorKey]
    keys: Mapping[str, LayerKey]
    host: tuple[HostLine, ...] = ()


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
            raise WrongValueError(f"{level_text(value)!r} is not allowed here", suggest(text, choices))
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
