"""Which architecture a program was built for, from the first bytes of its file; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

HEADER: Final = 20
"""Bytes that have to be known."""

_MAGIC: Final = b"\x7fELF"
_CLASS, _DATA, _MACHINE = 4, 5, 18
_BITS: Final[Mapping[int, int]] = {1: 32, 2: 64}
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
