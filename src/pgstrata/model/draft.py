"""A draft of a workload: scripts of the top statements of a server, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LOOK: Final = "-- LOOK:"
"""Begins a line of a script where a person must look; no plan is made of a script that has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedStatement:
    """A statement as pg_stat_statements counts it; `seconds` in total. `text` is None where it is not shown."""

    identity: str
    text: str | None
    calls: int
    seconds: float
    top_level: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """Statistics of a column; texts name it for people.

    `low` and `high` are the ends of its values in pg_stats, None where there are none or it holds no numbers.
    `distinct` as in pg_stats: below 0 a share of the rows; 0 unknown. `unique`: it is part of a unique index.
    """

    schema: str
    table: str
    column: str
    type: str
    numeric: bool
    whole: bool
    low: float | None = None
    high: float | None = None
    distinct: float = 0.0
    unique: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftScript:
    """A script of the draft; `share` of the total time, `looks`: places where a person must look."""

    name: str
    text: str
    weight: int
    share: float
    looks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A statement that is no script, with the reason, and its share of the total time; `text` is shortened."""

    text: str
    reason: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadDraft:
    """Scripts and what they leave out.

    `more`: further statements that were not among the top ones, with their share of the time. `warnings` are sentences.
    """

    database: str
    version: str
    scripts: tuple[DraftScript, ...]
    left_out: tuple[LeftOut, ...]
    more: int
    more_share: float
    warnings: tuple[str, ...] = ()

    @property
    def covered(self) -> float:
        """Share of the total time that the scripts' statements have."""
        return sum(script.share for script in self.scripts)
