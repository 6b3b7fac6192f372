"""What an archive of a live server holds, and a window of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Final

from pgstrata.model.query_plans import SeenPlan

CLIENT: Final = "client backend"
PARALLEL: Final = "parallel worker"
REST: Final = "(others)"
"""Key of the sum of small statements, and name of the sum of small tables or indexes: other ones in each interval."""
COUNTING: Final = "pg_stat_statements"
"""What counts statements: the detail of an event that somebody reset it."""
_IN_STATEMENT: Final = frozenset({"active", "fastpath function call"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClass:
    """What sessions have in common that were seen doing the same.

    `kind` is that of pg_stat_activity. `wait_type` and `event` have the spelling of the newest server and are empty
    without a wait event. `statement` is its key (`Statement.key`), empty where it is not known; of a session that is
    idle in a transaction it is its last one.
    """

    kind: str
    database: str = ""
    role: str = ""
    application: str = ""
    state: str = ""
    wait_type: str = ""
    event: str = ""
    statement: str = ""

    @property
    def is_load(self) -> bool:
        """Whether it counts as an active session: one of a client in a statement, or a process that helps it."""
        return self.kind in {CLIENT, PARALLEL} and self.state in _IN_STATEMENT

    @property
    def is_idle_in_transaction(self) -> bool:
        """Whether it holds a transaction open and waits for its client."""
        return self.state.startswith("idle in transaction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocking:
    """Sessions of the class `waiting` that were behind the session `pid`, the head of the chain of those that block.

    `root` is None where the head was not seen: then `pid` is 0. `held` are the seconds for which its transaction has
    been open.
    """

    waiting: SessionClass
    root: SessionClass | None
    pid: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsLook:
    """One look at all sessions: how many of each class there were, and how many were behind which blocker."""

    counts: Mapping[SessionClass, int]
    blocked: Mapping[Blocking, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement as it is told apart: by the server's id, or where there is none by a hash of its normalised text.

    `text` is normalised, without constants; empty where it is not known or not kept.
    """

    key: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementUse:
    """What pg_stat_statements counted of a statement: calls, seconds of executing, rows, blocks, bytes of WAL."""

    calls: float = 0.0
    seconds: float = 0.0
    rows: float = 0.0
    blocks_hit: float = 0.0
    blocks_read: float = 0.0
    wal_bytes: float = 0.0

    def plus(self, other: StatementUse) -> StatementUse:
        """The sum of both."""
        return StatementUse(
            calls=self.calls + other.calls,
            seconds=self.seconds + other.seconds,
            rows=self.rows + other.rows,
            blocks_hit=self.blocks_hit + other.blocks_hit,
            blocks_read=self.blocks_read + other.blocks_read,
            wal_bytes=self.wal_bytes + other.wal_bytes,
        )

    def since(self, earlier: StatementUse) -> StatementUse | None:
        """What came to it; None where a counter went backwards."""
        found = StatementUse(
            calls=self.calls - earlier.calls,
            seconds=self.seconds - earlier.seconds,
            rows=self.rows - earlier.rows,
            blocks_hit=self.blocks_hit - earlier.blocks_hit,
            blocks_read=self.blocks_read - earlier.blocks_read,
            wal_bytes=self.wal_bytes - earlier.wal_bytes,
        )
        counted = (found.calls, found.seconds, found.rows, found.blocks_hit, found.blocks_read, found.wal_bytes)
        return None if min(counted) < 0 else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A table or an index of the watched database by its qualified name; `table` is the one that an index is on."""

    name: str
    table: str = ""

    @property
    def is_index(self) -> bool:
        return bool(self.table)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationUse:
    """What the server's statistics counted of a relation: scans, rows, blocks, and finished (auto)vacuums and analyzes.

    `index_rows` are rows fetched by index scans; of an index, its entries. `live_rows` and `dead_rows` are estimates at
    the end, no counters. Of an index only its scans, entries and blocks are counted.
    """

    sequential_scans: float = 0.0
    sequential_rows: float = 0.0
    index_scans: float = 0.0
    index_rows: float = 0.0
    inserted: float = 0.0
    updated: float = 0.0
    hot_updated: float = 0.0
    deleted: float = 0.0
    blocks_hit: float = 0.0
    blocks_read: float = 0.0
    vacuums: float = 0.0
    analyzes: float = 0.0
    live_rows: float = 0.0
    dead_rows: float = 0.0

    @property
    def work(self) -> float:
        """Blocks and rows touched: orders relations by how busy they are."""
        rows = self.sequential_rows + self.index_rows + self.inserted + self.updated + self.deleted
        return self.blocks_hit + self.blocks_read + rows

    def plus(self, other: RelationUse) -> RelationUse:
        """The sum of both, also of the estimates."""
        return RelationUse(**{name: getattr(self, name) + getattr(other, name) for name in RELATION_FIELDS})

    def since(self, earlier: RelationUse) -> RelationUse | None:
        """What came to it, with the estimates as they are now; None where a counter went backwards."""
        found = {name: getattr(self, name) - getattr(earlier, name) for name in RELATION_COUNTERS}
        if min(found.values()) < 0:
            return None
        return RelationUse(**found, live_rows=self.live_rows, dead_rows=self.dead_rows)


RELATION_FIELDS: Final = tuple(each.name for each in fields(RelationUse))
RELATION_COUNTERS: Final = RELATION_FIELDS[:-2]


class HolderKind(StrEnum):
    """What keeps vacuum from removing dead rows."""

    SESSION = "session"
    PREPARED = "prepared transaction"
    SLOT = "replication slot"
    STANDBY = "standby"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A session, prepared transaction, replication slot or standby that holds back vacuum.

    `name` is the application of a session or standby, the identifier of a prepared transaction, or the name of a slot.
    """

    kind: HolderKind
    name: str
    pid: int = 0
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """The oldest snapshot that is still in use: vacuum removes no rows that died since.

    `age` is in transactions, `held` in seconds since the holder's transaction began, 0 where it has none.
    """

    holder: Holder
    age: int
    held: int


class EventKind(StrEnum):
    """What happened to the recorder or to the server while it was recorded; from CHECKPOINT on, by the server's log."""

    STARTED = "recorder started"
    STOPPED = "recorder stopped"
    LOST = "connection lost"
    CONNECTED = "connected again"
    RESTARTED = "server restarted"
    MISSED = "look failed"
    RESET = "statistics reset"
    EVICTED = "statements evicted"
    CLOCK = "clock stepped"
    THINNED = "archive thinned"
    FULL = "disk full"
    LIMIT = "CPU limit changed"
    OUT_OF_MEMORY = "killed for lack of memory"
    CHECKPOINT = "checkpoint started"
    CHECKPOINT_DONE = "checkpoint complete"
    AUTOVACUUM = "autovacuum finished"
    TEMPORARY = "temporary files"
    LOCK_WAIT = "long waits for a lock"
    DEADLOCK = "deadlock"
    CANCELED = "statements canceled"
    REFUSED = "connections refused"
    ERRORS = "errors"
    CRASHED = "server process crashed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveEvent:
    """Something that explains a gap, a doubt or a change: `times` in the second `moment`, Unix seconds.

    `detail` is of the first of them.
    """

    moment: int
    kind: EventKind
    detail: str = ""
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From `begin` (included) to `end` (excluded), Unix seconds."""

    begin: int
    end: int

    @property
    def seconds(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveFacts:
    """What an archive says of itself: `facts` of the server and its recorder by name, `limits` as codes."""

    span: Span
    facts: Mapping[str, str]
    limits: tuple[str, ...]
    detailed_since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveWindow:
    """A window of an archive in cells of equal length, in order of time.

    It was read in steps of `unit` seconds: 1, or 60 where only sums of minutes are left, or it is long. `looks` are
    those at sessions, by cell; `sessions` what they saw by class, summed over the looks of each cell.
    `rates` are means by metric and cell, NaN where nothing is known. `statements` are sums over the whole window,
    `counted` the seconds that they cover, None where nothing was counted, and `transactions` those committed in them.
    `blocked` are sums of sessions. `relations` are sums over `relations_counted` seconds, None where none were counted.
    `horizons` are, of each holder, the one at which it held back vacuum most, the one that held back most first.
    `plans` are those that were seen in it, in order of time. In `gaps` nobody looked at the sessions, in `host_gaps` at
    the host.
    """

    span: Span
    unit: int
    cell: int
    looks: tuple[int, ...]
    sessions: Mapping[SessionClass, tuple[int, ...]]
    rates: Mapping[str, tuple[float, ...]]
    blocked: Mapping[Blocking, int] = field(default_factory=dict)
    statements: Mapping[str, StatementUse] = field(default_factory=dict)
    counted: float | None = None
    transactions: float = 0.0
    relations: Mapping[Relation, RelationUse] = field(default_factory=dict)
    relations_counted: float | None = None
    horizons: tuple[Horizon, ...] = ()
    plans: tuple[SeenPlan, ...] = ()
    events: tuple[ArchiveEvent, ...] = ()
    gaps: tuple[Span, ...] = ()
    host_gaps: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCourses:
    """What was counted of some statements, in order of time: a cell is one interval or several that follow each other.

    `seconds` are those that each cell covers; `uses` are sums by cell, of statements by key.
    """

    seconds: tuple[float, ...]
    uses: Mapping[str, tuple[StatementUse, ...]]


COMMITS: Final = "commits"
"""The rate of committed transactions, the throughput."""
SERVER_RATES: Final = (
    COMMITS, "rollbacks", "blocks_hit", "blocks_read", "rows_returned", "rows_changed", "temporary_bytes",
    "wal_bytes", "wal_records", "wal_images", "wal_buffers_full", "wal_writes", "wal_syncs", "wal_writing",
    "wal_syncing", "checkpoints_due", "checkpointer_buffers", "bgwriter_buffers", "backend_buffers", "backend_fsyncs",
    "relation_read", "relation_written", "relation_extended", "relation_reading", "relation_writing",
    "relation_extending", "connections",
)  # fmt: skip
"""What is kept of the server each second; all but the number of connections are rates."""
HOST_RATES: Final = (
    "host_user_cpu", "host_system_cpu", "host_interrupt_cpu", "host_iowait_cpu", "host_steal_cpu", "run_queue_length",
    "context_switches", "page_faults", "disk_iops", "disk_throughput", "disk_queue", "disk_await", "cpu_stalled",
    "cpu_throttled", "io_stalled", "memory_stalled", "memory_available", "memory_dirty", "memory_writeback",
)  # fmt: skip
"""What is kept of the host each second: rates, and levels."""
GROUP_RATES: Final = (
    "cpu_limit", "cpu_limit_reached", "group_cpu_stalled", "group_io_stalled", "group_memory_stalled", "group_read",
    "group_written", "memory_limit_reached",
)  # fmt: skip
"""What is kept of the control group that the server runs in, besides `cpu_throttled`."""
AROUND_RATES: Final = (*HOST_RATES, *GROUP_RATES)
"""What is kept of what is around the server."""
