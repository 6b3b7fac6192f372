"""What is in a folder, as `find` lists it and programs for checksums read it; pure.

Which processes do that, and where, belongs to `tree`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

FIND: Final = ("-type", "f", "-printf", r"%y %m %s\0%P\0", "-o", "-printf", r"%y %m %l\0%P\0")
"""The words after the folder by which `find` lists it: kind, mode, size or target, then the path, ended by NULs."""


class Reader(StrEnum):
    """How contents are read: SHA-256, POSIX's CRC, or not at all."""

    SHA256 = "sha256"
    CRC = "crc"
    NOTHING = "none"


# All print the sum before the name, which begins with ./ as it was given to them. sha256sum begins the line with a
# backslash where it has changed the name.
_SUMS: Final[Mapping[Reader, re.Pattern[bytes]]] = {
    Reader.SHA256: re.compile(rb"^\\?([0-9a-f]{64}) [ *]\./", re.MULTILINE),
    Reader.CRC: re.compile(rb"^([0-9]+ [0-9]+) \./", re.MULTILINE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All that is in a folder, itself included: relative paths in the order of `find`, and the facts of each."""

    paths: tuple[bytes, ...]
    facts: tuple[bytes, ...]

    @property
    def files(self) -> tuple[bytes, ...]:
        """Paths of regular files."""
        return tuple(path for path, facts in zip(self.paths, self.facts, strict=True) if _is_file(facts))

    @property
    def programs(self) -> tuple[bytes, ...]:
        """Paths of files and links in folders bin/, sorted; wheels have theirs below others."""
        found = zip(self.paths, self.facts, strict=True)
        files = (path for path, facts in found if facts[:1] in b"fl")
        return tuple(sorted(path for path in files if path.split(b"/")[-2:-1] == [b"bin"]))

    @property
    def size(self) -> int:
        """Bytes of all regular files together."""
        return sum(int(facts.rpartition(b" ")[2]) for facts in self.facts if _is_file(facts))


def _is_file(facts: bytes) -> bool:
    return facts.startswith(b"f ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is in a folder: for each path its facts and, of regular files, the checksum; sorted."""

    lines: tuple[bytes, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of all of it."""
        return hashlib.sha256(b"\0".join(self.lines)).hexdigest()

    def differing(self, other: Contents) -> tuple[bytes, ...]:
        """Paths that are missing in one of the two, or differ in facts or checksum; sorted."""
        return tuple(sorted({line.split(b"\0")[0] for line in {*self.lines} ^ {*other.lines}}))


def parse_listing(said: bytes) -> Listing:
    """What `find` said with the words of `FIND`."""
    fields = said.split(b"\0")[:-1]
    paths = tuple(fields[1::2])
    return Listing(paths=paths, facts=tuple(fields[::2][: len(paths)]))


def parse_contents(listing: Listing, said: bytes, reader: Reader) -> Contents | None:
    """A listing with what a program said of its files, in this order; None unless it has read each of them."""
    files, sums = listing.files, _SUMS[reader].findall(said)
    if len(files) != len(sums):
        return None
    sum_of = dict(zip(files, sums, strict=True))
    found = zip(listing.paths, listing.facts, strict=True)
    return Contents(lines=tuple(sorted(b"\0".join((path, facts, sum_of.get(path, b""))) for path, facts in found)))


def parse_read(said: bytes, reader: Reader) -> Contents | None:
    """A listing followed by what a program said of its files, which has no NUL."""
    end = said.rfind(b"\0") + 1
    return parse_contents(parse_listing(said[:end]), said[end:], reader)
