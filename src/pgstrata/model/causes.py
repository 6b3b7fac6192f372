"""What most likely made a live server slower: findings, no words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pgstrata.model.archive import Horizon, SessionClass


class CauseKind(StrEnum):
    """What a slowdown came from; of two that explain as much, the one that stands first here is the more specific.

    IDLE_IN_TRANSACTION, PREPARED, RELATION_LOCK, LOCK_HELD: sessions waited for a lock, behind a session that was idle
    in its transaction, behind a prepared transaction, for a whole table, behind a session at work. OLD_TRANSACTION: row
    versions piled up, which an open transaction keeps from being removed. MORE_BLOCKS: statements touch more blocks a
    call. WAL_BURST: much more WAL. SPILL: more temporary files. CACHE: more reads for the same blocks. MEMORY: the host
    ran out of memory. CONNECTIONS: many new connections. STOLEN_CPU: the hypervisor took CPU. NEIGHBOUR: other programs
    took CPU. SLOW_IO: each read or write took longer. SLOW_WAL: each flush of WAL took longer. STANDBY: commits waited
    for a standby. CPU_LIMIT: sessions got less CPU, and no one else had it. DEMAND: more transactions than CPUs and
    disks serve as fast. NEW_STATEMENTS: statements that were not there before, or seldom. MORE_CALLS: more calls for
    each transaction. CLIENT: clients read or sent slowly. CPU_EACH: transactions took more CPU. CPU: sessions ran or
    were ready for longer, and the host is not seen. EVENT: waits for an event that no other kind explains.
    """

    IDLE_IN_TRANSACTION = "idle in transaction"
    PREPARED = "prepared transaction"
    RELATION_LOCK = "relation lock"
    LOCK_HELD = "lock held"
    OLD_TRANSACTION = "old transaction"
    MORE_BLOCKS = "more blocks a call"
    WAL_BURST = "WAL burst"
    SPILL = "temporary files"
    CACHE = "cache too small"
    MEMORY = "memory pressure"
    CONNECTIONS = "new connections"
    STOLEN_CPU = "CPU taken by the hypervisor"
    NEIGHBOUR = "other programs on the CPUs"
    SLOW_IO = "slow I/O"
    SLOW_WAL = "slow WAL flushes"
    STANDBY = "slow standby"
    CPU_LIMIT = "CPU limit"
    DEMAND = "more demand"
    NEW_STATEMENTS = "new statements"
    MORE_CALLS = "more calls a transaction"
    CLIENT = "slow clients"
    CPU_EACH = "more CPU a transaction"
    CPU = "CPU or run queue"
    EVENT = "wait event"


class EvidenceCode(StrEnum):
    """What a figure of evidence is, with its unit; `name` of `Evidence` is what stands in brackets.

    BEHIND: sessions behind the head. OPEN: seconds for which its transaction had been open at most. WAIT: sessions in a
    wait event (event). RUNNING: sessions that ran or were ready. LOAD: sessions in a statement (statement). BLOCKS:
    blocks a call (statement; empty: of all statements, at the window's mix of calls, per transaction). READS: blocks
    read per transaction at the window's mix. TIME: seconds a call (statement). CALLS: calls per transaction (statement;
    empty: all). WAL_OF: bytes of WAL per second (statement). RATE: a figure of server or host (its name). EACH: the
    same per transaction. OTHERS: tasks that ran or were ready and were no sessions. PRESENT: seconds for which a
    session was seen without a pause. GREW: blocks per transaction in the last and in the middle third of the window.
    AGE: transactions since the snapshot. RESTARTED: how often the server was restarted. PLAN: Unix seconds at which
    another plan was first seen (statement), and at which the one before was last seen; in a study 0 and None.
    """

    BEHIND = "sessions behind it"
    OPEN = "transaction open for"
    WAIT = "sessions in wait event"
    RUNNING = "sessions running or ready"
    LOAD = "sessions in statement"
    BLOCKS = "blocks a call"
    READS = "reads a transaction"
    TIME = "time of a call"
    CALLS = "calls a transaction"
    WAL_OF = "WAL of statement"
    RATE = "rate"
    EACH = "per transaction"
    OTHERS = "other tasks ready"
    PRESENT = "seen for"
    AGE = "snapshot behind"
    GREW = "blocks a transaction, late and earlier"
    RESTARTED = "restarts"
    PLAN = "plan changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A figure of the window, and of the comparison window where it has one; `name` by `code`."""

    code: EvidenceCode
    value: float
    reference: float | None = None
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A cause and the share of the extra load that it explains, above 0 and at most 1.

    The extra load is what is active beyond the load that as many transactions took in the comparison window, summed
    over the wait events of which there is more; of a window without a transaction it is all load. `session` is what
    held the lock or the old transaction, where it was seen, `pids` its processes; `horizon` is what held back vacuum.
    `statements` are those that it shows in, the largest first; `event` is `TYPE/EVENT`.
    """

    kind: CauseKind
    share: float
    evidence: tuple[Evidence, ...] = ()
    session: SessionClass | None = None
    pids: tuple[int, ...] = ()
    statements: tuple[str, ...] = ()
    event: str = ""
    horizon: Horizon | None = None
