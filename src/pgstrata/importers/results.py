"""Results of a foreign file, and its lines that could not be used: what readers return."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from pgstrata.errors import UsageError
from pgstrata.units import count_digits, shorten

MOST_RESULTS: Final = 100_000
"""The largest number of results and unusable lines of a file."""
NOT_FINISHED: Final = "the run did not finish: it reports no throughput"
_LONGEST_REASON: Final = 240
_MANY_DIGITS: Final = 7
BUILD: Final = " build"
"""The end of the name of a dimension that has the whole text of a version."""
_VERSION_TEXT: Final = re.compile(r"(?:PostgreSQL )?(?P<version>\d[\w.]*)(?P<more>[ ,].*)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One result of a foreign file, as the file has it.

    `measurements` are in base units by the name of their metric, `said` are levels by the name of their dimension,
    `line` is its first line. `opening` is the throughput of the start relative to that of the rest, as a share: 0.1
    means 10 % above it. `committed` is the time of the commit that was measured, which orders commits.
    """

    measurements: Mapping[str, float]
    line: int
    said: Mapping[str, str] = field(default_factory=dict)
    started: datetime | None = None
    seconds: float = 0.0
    opening: float | None = None
    committed: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A file or line that gave no result (line 0: the whole file), and the reason."""

    file: str
    line: int
    what: str

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}" if self.line else self.file


class FormatName(StrEnum):
    """The names of formats, apart from their readers, so that the help can list them without importing these."""

    PGBENCH = "pgbench"
    SYSBENCH = "sysbench"
    HAMMERDB = "hammerdb"
    BENCHBASE = "benchbase"
    POSTGRESBENCH = "postgresbench"
    PGBENT = "pgbent"
    TABLE = "table"
    WIDE = "wide"
    COMMITS = "commits"
    OTAVA = "otava"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The contents of a file: results in its order, and unusable lines, each with its number and the reason.

    `compared` names the dimension that the format itself compares, such as commits; empty if it has none. `lower` are
    metrics of which the file says that lower values are better. `traceless`: the text has no run of the tool at all.
    `history`: levels of `compared` have the order of time, such as commits.
    """

    results: tuple[Result, ...]
    unusable: tuple[tuple[int, str], ...] = ()
    compared: str = ""
    lower: frozenset[str] = frozenset()
    traceless: bool = False
    history: bool = False


def contents_of(
    results: Sequence[Result],
    unusable: Sequence[tuple[int, str]],
    compared: str = "",
    *,
    empty: str = "the table has no rows",
    lower: frozenset[str] = frozenset(),
    history: bool = False,
) -> Contents:
    """The contents of a file; `empty` is the reason where it has neither results nor unusable lines."""
    if not results and not unusable:
        unusable = ((0, empty),)
    return Contents(results=tuple(results), unusable=tuple(unusable), compared=compared, lower=lower, history=history)


def without_trace(name: str) -> Contents:
    """The contents of a text that has no run of this tool."""
    return Contents(results=(), unusable=((0, f"the file has no result of {name}"),), traceless=True)


def is_precise(value: float) -> bool:
    """Whether two runs do not have the same value by chance: it has many digits."""
    return count_digits(value) >= _MANY_DIGITS


def shorten_reason(what: str) -> str:
    """A reason of bounded length: it may quote a field, and a field may be as long as the file."""
    return shorten(what, _LONGEST_REASON)


def refuse_many(number: int) -> None:
    """UsageError if a file has more results than can be imported."""
    if number > MOST_RESULTS:
        raise UsageError(f"there are more than {MOST_RESULTS:,} results or rows", remedy="split the file")


def name_version(name: str, text: str) -> dict[str, str]:
    """Levels of a version: its number, and as dimension `NAME build` the whole text if that tells more.

    `PostgreSQL 17.2 (Debian 17.2-1) on x86_64-pc-linux-gnu, compiled by gcc` is version 17.2.
    """
    text = " ".join(text.split())
    found = _VERSION_TEXT.fullmatch(text)
    if found is None:
        return {name: text} if text else {}
    return {name: found["version"], **({f"{name}{BUILD}": text} if found["more"] else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingTerms:
    """Options of the user for tables: all columns in their order, those that number rows, those that hold values.

    `compared` are the dimensions that the user compares; empty if none are named.
    """

    columns: tuple[str, ...] = ()
    index: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A result with all its dimensions, those of the path first; `named` are those of the path or of the user."""

    result: Result
    source: str
    dimensions: Mapping[str, str]
    named: frozenset[str]
