"""Lines and numbers as the kernel and other programs print them, and nothing else that Python would take for one."""

from __future__ import annotations

import re
from typing import Final

_SIGNED: Final = re.compile(r"-?[0-9]{1,20}")


def whole_lines(text: bytes) -> list[str]:
    """The lines of a file that somebody may still have been writing: a last one without its end is left out."""
    return [line for line in text[: text.rfind(b"\n") + 1].decode("utf-8", "replace").split("\n") if line]


def whole_number(word: str) -> int:
    """An integer of 64 bits; ValueError for anything else."""
    if not _SIGNED.fullmatch(word):
        raise ValueError(word)
    return int(word)


def natural_number(word: str) -> int:
    """An integer without a sign, as counters are; ValueError for anything else."""
    if word.startswith("-"):
        raise ValueError(word)
    return whole_number(word)
