"""Why a window of a live server was as it was: findings, no words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pgstrata.model.archive import ArchiveEvent, ArchiveFacts, Horizon, Relation, RelationUse, SessionClass, Span
from pgstrata.model.attribution import Part, ValueInterval
from pgstrata.model.causes import Cause
from pgstrata.model.query_plans import LivePlans


class Outcome(StrEnum):
    """What a window was against another one.

    INCIDENT: transactions took longer, and no more of them came. SATURATED: more came, and each took longer. MORE:
    more came, none slower. FEWER: fewer came, none slower. OTHER_MIX: the load comes from statements that were not
    there or seldom, the others are as fast as before. FASTER: transactions took less time. SAME: nothing was found.
    STALLED: sessions were active and no transaction ended. UNKNOWN: too little is known of one of the two.
    """

    INCIDENT = "incident"
    STALLED = "stalled"
    SATURATED = "saturated"
    MORE = "more demand"
    FEWER = "less demand"
    OTHER_MIX = "other mix"
    FASTER = "faster"
    SAME = "no change"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A figure of both windows; `ratio` = window / comparison with its interval of 95 %, None where it is not known.

    `limit` is the smallest relative change that would have been found in 80 % of such windows. `resolved`: the interval
    leaves out 1.
    """

    name: str
    value: float
    reference: float
    ratio: ValueInterval | None = None
    limit: float | None = None
    resolved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRow:
    """What one wait event, statement and application adds to the load: average active sessions.

    `event` is `TYPE/EVENT`, empty for `Part.RUNNING`. `interval` is that of the difference, for this row alone, None
    where it is not known; `resolved`: zero is rejected for it by Holm's procedure over all rows. `samples` are those of
    both windows. The remainder has `part` None.
    """

    part: Part | None
    event: str
    statement: str
    application: str
    value: float
    reference: float
    interval: ValueInterval | None
    resolved: bool
    samples: int

    @property
    def difference(self) -> float:
        """Window minus comparison."""
        return self.value - self.reference


@dataclass(frozen=True, slots=True, kw_only=True)
class RootBlocker:
    """A head of chains of sessions that block: what it was doing, and how many sessions waited behind it on average.

    `root` is None where heads were not seen. `pids` are the processes, the one that blocked most first; `held` is the
    longest time that a transaction of one of them had been open, in seconds.
    """

    root: SessionClass | None
    pids: tuple[int, ...]
    held: int
    value: float
    reference: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsChange:
    """A statement by what pg_stat_statements counted: its part of the change of load, and where that comes from.

    Loads are seconds of executing per second. `by_demand` is what it would add with the calls of the same mix at the
    new number of transactions, `by_mix` the rest of its calls, `by_latency` its calls taking longer: the three add up
    to the difference. `calls` are per second, `latency` in seconds.
    """

    statement: str
    calls: float
    reference_calls: float
    latency: float
    reference_latency: float
    by_demand: float
    by_mix: float
    by_latency: float
    blocks_per_call: float
    reference_blocks_per_call: float

    @property
    def difference(self) -> float:
        """Seconds of executing per second."""
        return self.by_demand + self.by_mix + self.by_latency


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationChange:
    """A table or an index in both windows: its counters per second, and its estimates of rows as they are."""

    relation: Relation
    value: RelationUse
    reference: RelationUse


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFacts:
    """How well a window is known: `seen` is the share of its seconds that were looked at, read in steps of `unit`.

    In `gaps` nobody looked at the sessions, in `host_gaps` at the host. An environment of a study is a window with its
    `name`, the `label` that sentences call it by, and so many `runs`; its span is no time.
    """

    span: Span
    seen: float
    looks: int
    gaps: tuple[Span, ...]
    events: tuple[ArchiveEvent, ...]
    unit: int
    host_gaps: tuple[Span, ...] = ()
    name: str = ""
    label: str = ""
    runs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Courses:
    """Series for charts, in cells of one length: `starts` in Unix seconds, one for each value; NaN is not known.

    Of an environment of a study the cells are its runs, and `blocks` their numbers.
    """

    starts: tuple[int, ...]
    load: tuple[tuple[str, tuple[float, ...]], ...]
    throughput: tuple[float, ...]
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Onset:
    """When a change began and ended, Unix seconds with intervals of 95 %; `end` None: no end was seen."""

    begin: float
    begin_interval: ValueInterval
    end: float | None
    end_interval: ValueInterval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """By how many seconds a figure of server or host began to change before the load did; below 0: after it."""

    name: str
    seconds: float
    interval: ValueInterval


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A window against a comparison window.

    `rows` and their remainder add up to the difference of the load, and so do `waits`, `statements` and `applications`,
    each a sum of the rows by one name. `calls` are by statement, largest first, empty where nothing was counted.
    `causes` explain most of the extra load, the first one first; empty where none is known, or nothing is slow.
    `leads` are those of figures of `server` and `host` that show a beginning.
    `courses` are those of both windows and around them; of a study those of the window, with those of the comparison
    window beside them.
    """

    window: WindowFacts
    comparison: WindowFacts
    outcome: Outcome
    throughput: Change
    load: Change
    time: Change
    rows: tuple[LoadRow, ...]
    waits: tuple[LoadRow, ...]
    statements: tuple[LoadRow, ...]
    applications: tuple[LoadRow, ...]
    blockers: tuple[RootBlocker, ...]
    calls: tuple[CallsChange, ...]
    server: tuple[Change, ...]
    host: tuple[Change, ...]
    background: tuple[LoadRow, ...]
    courses: Courses
    onset: Onset | None = None
    relations: tuple[RelationChange, ...] = ()
    horizons: tuple[Horizon, ...] = ()
    plans: LivePlans = field(default_factory=LivePlans)
    causes: tuple[Cause, ...] = ()
    reference_courses: Courses | None = None
    leads: tuple[Lead, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Both windows, and what is shown around them.

    `clipped`, `comparison_clipped`: the user asked for more than the archive has.
    """

    window: Span
    comparison: Span
    around: Span
    clipped: bool
    comparison_clipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """An explanation with what its words need: texts of statements by key, and what the archive says of itself.

    Of a study, `archive` is its folder and `cell` what was measured; of an archive `cell` is empty.
    """

    archive: str
    facts: ArchiveFacts
    chosen: Chosen
    explanation: Explanation
    texts: Mapping[str, str]
    cell: str = ""
