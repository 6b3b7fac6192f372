"""Results of a foreign file, and its lines that could not be used: what readers return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pgstrata.errors import UsageError

MOST_RESULTS: Final = 100_000
"""The largest number of results and unusable lines of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One result of a foreign file, as the file has it.

    `measurements` are in base units by the name of their metric, `said` are levels by the name of their dimension,
    `line` is its first line. `opening` is the throughput of the start relative to that of the rest, as a share: 0.1
    means 10 % above it.
    """

    measurements: Mapping[str, float]
    line: int
    said: Mapping[str, str] = field(default_factory=dict)
    started: datetime | None = None
    seconds: float = 0.0
    opening: float | None = None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The contents of a file: results in its order, and unusable lines, each with its number and the reason.

    `compared` names the dimension that the format itself compares, such as commits; empty if it has none.
    """

    results: tuple[Result, ...]
    unusable: tuple[tuple[int, str], ...] = ()
    compared: str = ""


def refuse_many(number: int) -> None:
    """UsageError if a file has more results than can be imported."""
    if number > MOST_RESULTS:
        raise UsageError(f"there are more than {MOST_RESULTS:,} results or rows", remedy="split the file")


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
