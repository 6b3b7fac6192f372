"""What a program was built for: its architecture, and whether it needs shared libraries; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

HEADER: Final = 20
"""Bytes that have to be known."""

_MAGIC: Final = b"\x7fELF"
_CLASS, _DATA, _MACHINE = 4, 5, 18
_LONG: Final = 2
_LONG_HEADER: Final = 64
_INTERPRETER: Final = 3
_BITS: Final[Mapping[int, int]] = {1: 32, _LONG: 64}
_ORDER: Final[Mapping[int, str]] = {1: "little", 2: "big"}

# e_machine, bits and byte order, as `uname -m` calls them; the numbers are those of elf(5).
_NAMES: Final[Mapping[tuple[int, int, str], frozenset[str]]] = {
    (62, 64, "little"): frozenset({"x86_64"}),
    (3, 32, "little"): frozenset({"i386", "i486", "i586", "i686"}),
    (183, 64, "little"): frozenset({"aarch64"}),
    (40, 32, "little"): frozenset({"armv6l", "armv7l", "armv8l"}),
    (21, 64, "little"): frozenset({"ppc64le"}),
    (21, 64, "big"): frozenset({"ppc64"}),
    (22, 64, "big"): frozenset({"s390x"}),
    (243, 64, "little"): frozenset({"riscv64"}),
    (258, 64, "little"): frozenset({"loongarch64"}),
}
_KNOWN: Final = frozenset().union(*_NAMES.values())


def foreign_architecture(header: bytes, machine: str) -> str:
    """What a program was built for if that is not `machine` (`uname -m`); empty if it fits or nobody can tell.

    Scripts are no ELF files and fit everywhere.
    """
    if len(header) < HEADER or not header.startswith(_MAGIC) or machine not in _KNOWN:
        return ""
    bits, order = _BITS.get(header[_CLASS], 0), _ORDER.get(header[_DATA], "little")
    number = int.from_bytes(header[_MACHINE:HEADER], "big" if order == "big" else "little")
    names = _NAMES.get((number, bits, order))
    if names is None:
        return f"ELF machine {number}"
    return "" if machine in names else "/".join(sorted(names))


def needs_libraries(program: bytes) -> bool:
    """Whether a 64-bit program, given from its beginning, names a loader of shared libraries (PT_INTERP, elf(5))."""
    if len(program) < _LONG_HEADER or not program.startswith(_MAGIC) or program[_CLASS] != _LONG:
        return False
    order: Literal["little", "big"] = "big" if _ORDER.get(program[_DATA]) == "big" else "little"
    table = int.from_bytes(program[32:40], order)
    size, number = (int.from_bytes(program[at : at + 2], order) for at in (54, 56))
    starts = range(table, table + size * number, size or 1)
    return any(int.from_bytes(program[at : at + 4], order) == _INTERPRETER for at in starts)
