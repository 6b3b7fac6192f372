"""Metrics of a recorder and its server: the families, and their values. Pure.

Labels have few values that are fixed, and none of them is a text of a statement, a name of an application, a role or a
database. So the number of series is bounded: `MOST_SERIES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pgstrata.app.watching.cost import Cost
from pgstrata.app.watching.recent import ANSWERED, HOST_CPU, WAIT_CLASSES, WINDOW, Lately, Present, Sums
from pgstrata.model.archive import EventKind
from pgstrata.report.live.openmetrics import Family, FamilyType, Measured

_LATELY: Final = f"over the last {WINDOW} seconds"


def _gauge(name: str, help_: str, *, unit: str = "", label: str = "", values: tuple[str, ...] = ()) -> Family:
    return Family(
        name=f"pgstrata_{name}", type=FamilyType.GAUGE, help=help_, unit=unit, label=label, values=values
    )  # fmt: skip


def _counter(name: str, help_: str, *, unit: str = "", label: str = "", values: tuple[str, ...] = ()) -> Family:
    return Family(
        name=f"pgstrata_{name}_total", type=FamilyType.COUNTER, help=help_, unit=unit, label=label, values=values
    )  # fmt: skip


def name_event(kind: EventKind) -> str:
    """The value of a label: server_restarted."""
    return kind.value.replace(" ", "_")


COUNTED_EVENTS: Final = (
    EventKind.LOST, EventKind.CONNECTED, EventKind.RESTARTED, EventKind.MISSED, EventKind.RESET, EventKind.EVICTED,
    EventKind.CLOCK, EventKind.THINNED,
)  # fmt: skip
"""Events that followers are told of while the recorder is at work."""

UP: Final = _gauge("up", f"1 if the server answered within the last {ANSWERED} seconds, otherwise 0.")
LOAD: Final = _gauge(
    "load", f"Active sessions by wait class, mean of the looks {_LATELY}.", label="class", values=WAIT_CLASSES
)
SESSION_SECONDS: Final = _counter(
    "active_session_seconds",
    "Seconds of active sessions by wait class; each look counts as one second.",
    unit="seconds",
    label="class",
    values=WAIT_CLASSES,
)
TRANSACTIONS: Final = _counter("transactions", "Committed transactions of all databases, without the recorder's own.")
ROLLBACKS: Final = _counter("rollbacks", "Transactions of all databases that were rolled back.")
TIME: Final = _gauge(
    "time_per_transaction_seconds",
    f"Load divided by throughput {_LATELY}; absent if nothing was committed.",
    unit="seconds",
)
CALLS: Final = _counter("statement_calls", "Calls of statements that ended, by pg_stat_statements, read each 10 s.")
SPENT: Final = _counter(
    "statement_seconds", "Execution time of statements, by pg_stat_statements, read each 10 s.", unit="seconds"
)
CONNECTIONS: Final = _gauge("connections", "Connections to the server, the recorder's own included.")
IDLE: Final = _gauge(
    "idle_in_transaction_sessions", f"Sessions idle in a transaction, mean of the looks {_LATELY}."
)  # fmt: skip
BLOCKED: Final = _gauge("blocked_sessions", f"Sessions blocked by others: the most in one look {_LATELY}.")
HELD: Final = _gauge(
    "oldest_blocker_held_seconds",
    f"Age of the oldest transaction at the head of a blocking chain {_LATELY}; 0 if nobody was blocked.",
    unit="seconds",
)
INCIDENT: Final = _gauge("incident", "1 while an incident lasts: transactions are slower than usual; otherwise 0.")
INCIDENT_BEGIN: Final = _gauge(
    "incident_begin_seconds", "When the present incident began, in Unix seconds; absent without one.", unit="seconds"
)
HOST: Final = _counter(
    "host_cpu_seconds",
    "CPU time of the server's host by kind, all CPUs together; absent if the host is not read.",
    unit="seconds",
    label="kind",
    values=tuple(HOST_CPU),
)
EVENTS: Final = _counter(
    "events",
    "What happened to the server or the recorder, such as restarts and lost connections.",
    label="kind",
    values=tuple(map(name_event, COUNTED_EVENTS)),
)
GAP: Final = _counter("gap_seconds", "Seconds without a look at the sessions.", unit="seconds")
LOOKS: Final = _counter("recorder_looks", "Looks at the sessions of the server.")
TOOK: Final = _counter(
    "recorder_look_seconds",
    "Time that looks took, until the server had answered all questions of that second.",
    unit="seconds",
)
CPU: Final = _counter("recorder_cpu_seconds", "CPU time of the recorder and its psql.", unit="seconds")
RESIDENT: Final = _gauge("recorder_resident_bytes", "Memory of the recorder and its psql.", unit="bytes")
ARCHIVE: Final = _gauge("archive_bytes", "Size of the archive on disk, with its reserve of 4 MB.", unit="bytes")
SAVED: Final = _gauge(
    "archive_saved_seconds", "When the archive was last written, in Unix seconds.", unit="seconds"
)  # fmt: skip

FAMILIES: Final = (
    UP, LOAD, SESSION_SECONDS, TRANSACTIONS, ROLLBACKS, TIME, CALLS, SPENT, CONNECTIONS, IDLE, BLOCKED, HELD, INCIDENT,
    INCIDENT_BEGIN, HOST,
    EVENTS, GAP, LOOKS, TOOK, CPU, RESIDENT, ARCHIVE, SAVED,
)  # fmt: skip
MOST_SERIES: Final = sum(max(1, len(family.values)) for family in FAMILIES)


def measure(present: Present, cost: Cost) -> tuple[Measured, ...]:
    """The values of all families, in the order of `FAMILIES`; without values where nothing is known."""
    values = {**_of_server(present.lately, present), **_of_sums(present.sums), **_of_cost(cost)}
    return tuple(Measured(family=family, values=values.get(family, {})) for family in FAMILIES)


def _of_server(lately: Lately, present: Present) -> Mapping[Family, Mapping[str, float]]:
    return {
        UP: _one(float(lately.up)),
        LOAD: lately.load or {},
        TIME: _one(lately.time),
        CONNECTIONS: _one(present.connections if lately.up else None),
        IDLE: _one(lately.idle),
        BLOCKED: _one(lately.blocked),
        HELD: _one(lately.held),
        INCIDENT: _one(float(present.incident is not None)),
        INCIDENT_BEGIN: _one(present.incident),
        SAVED: _one(present.saved),
    }


def _of_sums(sums: Sums) -> Mapping[Family, Mapping[str, float]]:
    return {
        SESSION_SECONDS: sums.sessions,
        TRANSACTIONS: _one(sums.commits),
        ROLLBACKS: _one(sums.rollbacks),
        CALLS: _one(sums.calls),
        SPENT: _one(sums.spent),
        HOST: sums.host,
        EVENTS: {name_event(kind): sums.events.get(kind, 0) for kind in COUNTED_EVENTS},
        GAP: _one(sums.gap),
        LOOKS: _one(sums.looks),
        TOOK: _one(sums.took),
    }


def _of_cost(cost: Cost) -> Mapping[Family, Mapping[str, float]]:
    return {CPU: _one(cost.cpu), RESIDENT: _one(cost.resident), ARCHIVE: _one(cost.archive)}


def _one(value: float | None) -> Mapping[str, float]:
    return {} if value is None else {"": value}
