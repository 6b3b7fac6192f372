"""Flags, folders and edits with which current compilers and tools build the sources of old versions.

The tables here contain everything that depends on the version of a source. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

Major = tuple[int, int]
"""(9, 4) for 9.4.14, and (10, 2) for 10.2: the second part tells majors apart before 10 only."""

# In configure, which autoconf makes. What follows the numbers is left out: 9.5alpha1, 8.4.22lts6, 19devel.
_STATED: Final = re.compile(r"^PACKAGE_VERSION='(\d{1,3})(?:\.(\d{1,3}))?", re.MULTILINE)

_FIRST_BUILT_WHOLE: Final[Major] = (9, 6)
# Folders to build, with the first major that has them. The others (psql, ecpg, pg_rewind, tests) fail more often.
_FOLDERS: Final[tuple[tuple[Major, str], ...]] = (
    ((9, 3), "src/common"),
    ((8, 3), "src/port"),
    ((8, 3), "src/timezone"),
    ((8, 3), "src/backend"),
    ((8, 3), "src/backend/utils/mb/conversion_procs"),
    ((8, 3), "src/backend/snowball"),
    ((8, 3), "src/interfaces/libpq"),
    ((8, 3), "src/bin/initdb"),
    ((8, 3), "src/bin/pg_ctl"),
    ((8, 3), "src/bin/pg_config"),
    ((8, 3), "src/bin/pg_controldata"),
    ((8, 3), "src/bin/pg_dump"),
    ((8, 3), "src/pl/plpgsql"),
)
# Flags, with the first major that does not need them. Without them, current gcc miscompiles these sources: gcc 4.8 and
# later those before 9.2, gcc 4.3 and later those before 8.4. The last minor releases set the flags themselves.
_FLAGS: Final[tuple[tuple[Major, str], ...]] = (
    ((8, 4), "-fwrapv"),
    ((9, 2), "-fno-aggressive-loop-optimizations"),
)
# Until here the scanner is a part of the parser's file, where flex from 2.6 on keeps the parser's name of yylex.
_SCANNER: Final = ((9, 0), (9, 2), "src/backend/parser/scan.l", ("%top{", "#undef yylex", "}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Lines to insert at the beginning of a file; `file` is relative to the top of the copied source."""

    file: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a source needs in addition to what all sources need.

    Args:
        flags: for the compiler, in addition to the user's.
        folders: built one after another; empty if the whole source is built.
        edits: of files that flex reads, in a checkout only.
    """

    flags: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()


NO_NEEDS: Final = Needs()


def parse_major(configure: str) -> Major | None:
    """The major version that a `configure` names, or None."""
    stated = _STATED.search(configure)
    return (int(stated[1]), int(stated[2] or 0)) if stated else None


def needs_of(major: Major | None) -> Needs:
    """What a source of this major version needs; nothing if the version is not known."""
    if major is None or major >= _FIRST_BUILT_WHOLE:
        return NO_NEEDS
    since, until, file, lines = _SCANNER
    return Needs(
        flags=tuple(flag for without, flag in _FLAGS if major < without),
        folders=tuple(folder for first, folder in _FOLDERS if major >= first),
        edits=(Edit(file=file, lines=lines),) if since <= major < until else (),
    )
