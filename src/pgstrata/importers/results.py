"""What importers pass on: results of a foreign file, and what of it could not be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pgstrata.errors import UsageError

MOST_RESULTS: Final = 100_000
"""Results, and lines without one, of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One result of a foreign file, as the file tells it.

    `measurements` are in base units by the name of their metric, `said` are levels by the name of their dimension,
    `line` is where it begins. `opening` is by how much throughput began above or below what followed, as a share.
    """

    measurements: Mapping[str, float]
    line: int
    said: Mapping[str, str] = field(default_factory=dict)
    started: datetime | None = None
    seconds: float = 0.0
    opening: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that gave no result: a file and a line (0: the whole file), and the reason."""

    file: str
    line: int
    what: str

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a file holds: results in its order, and lines with what is wrong there.

    `compared` names the dimension that the format itself compares, such as commits; empty where it has none.
    """

    results: tuple[Result, ...]
    unusable: tuple[tuple[int, str], ...] = ()
    compared: str = ""


def refuse_many(number: int) -> None:
    """UsageError where a file holds more than can be imported."""
    if number > MOST_RESULTS:
        raise UsageError(f"there are more than {MOST_RESULTS:,} results or rows", remedy="split the file")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingTerms:
    """What the user says of tables: all columns in their order, those that number rows, those that hold values.

    `compared` are the dimensions that are compared, as far as the user names them.
    """

    columns: tuple[str, ...] = ()
    index: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A result with all of its dimensions: those of the path first; `named` are these and what the user named."""

    result: Result
    source: str
    dimensions: Mapping[str, str]
    named: frozenset[str]
