"""Two windows of a live server side by side: findings, no words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgstrata.model.archive import ArchiveFacts, Horizon
from pgstrata.model.explanation import (
    CallsChange,
    Change,
    Chosen,
    Courses,
    LoadRow,
    RelationChange,
    RootBlocker,
    WindowFacts,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UseChange:
    """A statement as pg_stat_statements counted it in both windows, by figure.

    `per_second` are calls, seconds, rows, blocks_hit, blocks_read and wal_bytes; `per_call` are all of these but calls.
    A value is NaN where there were no calls.
    """

    statement: str
    per_second: tuple[Change, ...]
    per_call: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What a rate of the server or the host came to in each window as a whole, in the seconds that were recorded."""

    name: str
    value: float
    reference: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """Two windows side by side, without a judgement of why they differ.

    `rows` and their remainder add up to the difference of the load, and so do `waits`, `statements` and `applications`,
    each a sum of the rows by one name. `uses` are the statements with the most time in either window, `calls` where the
    change of their time comes from; both are empty where nothing was counted in one window. `relations` are
    tables and indexes. `horizons`, what held back vacuum, and `courses` are those of the comparison window and of the
    window.
    """

    window: WindowFacts
    comparison: WindowFacts
    throughput: Change
    load: Change
    time: Change
    rows: tuple[LoadRow, ...]
    waits: tuple[LoadRow, ...]
    statements: tuple[LoadRow, ...]
    applications: tuple[LoadRow, ...]
    blockers: tuple[RootBlocker, ...]
    uses: tuple[UseChange, ...]
    calls: tuple[CallsChange, ...]
    server: tuple[Change, ...]
    host: tuple[Change, ...]
    background: tuple[LoadRow, ...]
    totals: tuple[Total, ...]
    relations: tuple[RelationChange, ...]
    horizons: tuple[tuple[Horizon, ...], tuple[Horizon, ...]]
    courses: tuple[Courses, Courses]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPeriods:
    """Two windows side by side with what their words need."""

    archive: str
    facts: ArchiveFacts
    chosen: Chosen
    periods: Periods
    texts: Mapping[str, str]
