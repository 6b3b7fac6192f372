"""Shared libraries that programs need and a machine lacks, and the packages that hold them. Pure.

Running `ldd` and fetching packages belongs to `packages`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_NOT_FOUND: Final = re.compile(r"^\s*(?P<name>\S+) => not found\s*$", re.MULTILINE)
_LOADER: Final = re.compile(r"error while loading shared libraries: (?P<name>[^:\s]+): cannot open shared object file")
_TOO_OLD: Final = re.compile(r"version `(?P<version>GLIBC_[\d.]+)' not found")
_MUSL: Final = re.compile(r"Error loading shared library (?P<name>[^:\s]+):")
_SONAME: Final = re.compile(r"^(?P<stem>lib.+?)(?:-(?P<inner>\d[\d.]*))?\.so(?:\.(?P<number>\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """What keeps programs from starting: names of shared libraries, and versions of glibc newer than the one here."""

    libraries: tuple[str, ...] = ()
    glibc: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.libraries or self.glibc)


def parse_missing(text: str) -> Missing:
    """What is missing, from the output of `ldd` or the complaint of the dynamic loader."""
    names = {match["name"] for pattern in (_NOT_FOUND, _LOADER, _MUSL) for match in pattern.finditer(text)}
    versions = {match["version"] for match in _TOO_OLD.finditer(text)}
    return Missing(libraries=tuple(sorted(names)), glibc=tuple(sorted(versions)))


# Only what the general rule of Debian's names does not give.
_DEBIAN: Final[Mapping[str, str]] = {
    "libxml2.so.2": "libxml2",
    "libcrypto.so.3": "libssl3",
    "libz.so.1": "zlib1g",
    "libgcc_s.so.1": "libgcc-s1",
    "libpam.so.0": "libpam0g",
    "libxslt.so.1": "libxslt1.1",
    "libcrypto.so.1.1": "libssl1.1",
    "libssl.so.1.1": "libssl1.1",
    "libbz2.so.1.0": "libbz2-1.0",
    "libexpat.so.1": "libexpat1",
}
_ICU: Final = re.compile(r"^libicu(?:uc|data|i18n|io)\.so\.(\d+)$")


def debian_packages(soname: str) -> tuple[str, ...]:
    """Names under which Debian and Ubuntu may hold a library, likeliest first.

    Names that end in t64 are of releases after the change to 64-bit time, for the packages that it concerned.
    """
    icu = _ICU.match(soname)
    if icu is not None:
        name = f"libicu{icu[1]}"
    elif soname in _DEBIAN:
        name = _DEBIAN[soname]
    else:
        name = _by_rule(soname)
    return (name, f"{name}t64") if name else ()


def _by_rule(soname: str) -> str:
    """Debian's policy: the library's name, a dash if it ends in a digit, and the number of its interface."""
    match = _SONAME.match(soname)
    if match is None:
        return ""
    stem = match["stem"].lower().replace("_", "-")
    number = match["number"] or ""
    if match["inner"]:
        return f"{stem}-{match['inner']}-{number}".rstrip("-")
    return f"{stem}-{number}" if stem[-1].isdigit() and number else f"{stem}{number}"
