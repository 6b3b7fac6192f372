"""What the catalogue holds of runs beside their figures: sessions, processes, waits, statements and their plans."""

import sqlite3
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, Generic, TypeVar, get_type_hints

from pgstrata.model.activity import ProcessCount, SessionCount, WaitProfile
from pgstrata.model.queries import QueryCount, QueryCounts
from pgstrata.model.query_plans import PlannedWith, PlanUse, QueryPlan
from pgstrata.model.runs import RunRecord

_Item = TypeVar("_Item")
_Counted = TypeVar("_Counted", SessionCount, ProcessCount)
_TYPES: Final[dict[Any, str]] = {int: "INTEGER NOT NULL", float: "REAL NOT NULL", float | None: "REAL"}


class _Rows(Generic[_Item]):
    """A table with several items of each run, whose columns are their fields; those in `alike` have no column."""

    def __init__(self, table: str, kind: type[_Item], **alike: str) -> None:
        hints = {name: hint for name, hint in get_type_hints(kind).items() if name not in alike}
        columns = "".join(f"    {name} {_TYPES.get(hint, 'TEXT NOT NULL')},\n" for name, hint in hints.items())
        self.schema = (
            f"CREATE TABLE {table} (\n    run INTEGER NOT NULL REFERENCES run,\n    position INTEGER NOT NULL,\n"
            f"{columns}    PRIMARY KEY (run, position)\n) STRICT, WITHOUT ROWID;\n"
        )
        names = ", ".join(hints)
        self._kind, self._alike, self._names = kind, alike, tuple(hints)
        self._enums = {name: hint for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, Enum)}
        self._insert = f"INSERT INTO {table} (run, position, {names}) VALUES (?, ?{', ?' * len(hints)})"
        self._select = f"SELECT run, {names} FROM {table} ORDER BY run, position"

    def save(self, connection: sqlite3.Connection, key: int | None, items: Iterable[_Item]) -> None:
        """Add the items of a run, of which `key` is the id."""
        rows = [(key, place, *(getattr(item, name) for name in self._names)) for place, item in enumerate(items)]
        connection.executemany(self._insert, rows)

    def load(self, connection: sqlite3.Connection) -> dict[int, list[_Item]]:
        """The items by run."""
        found: dict[int, list[_Item]] = {}
        for run, *values in connection.execute(self._select):
            item = dict(zip(self._names, values, strict=True))
            item.update((name, kind(item[name])) for name, kind in self._enums.items())
            found.setdefault(run, []).append(self._kind(**item, **self._alike))
        return found


_SESSIONS: Final = _Rows("session", SessionCount)
_PROCESSES: Final = _Rows("process", ProcessCount)
_WAITS: Final = _Rows("wait", SessionCount, query="", blocker="")
_QUERIES: Final = _Rows("query", QueryCount)
TABLES: Final = f"""\
{_SESSIONS.schema}{_PROCESSES.schema}CREATE TABLE query_plan (
    environment TEXT NOT NULL,
    cell TEXT NOT NULL,
    statement TEXT NOT NULL,
    planned_with TEXT NOT NULL,
    shape TEXT NOT NULL,
    error TEXT NOT NULL,
    position INTEGER NOT NULL,
    text TEXT NOT NULL,
    runs INTEGER NOT NULL,
    PRIMARY KEY (environment, cell, statement, planned_with, shape, error)
) STRICT, WITHOUT ROWID;
CREATE TABLE query_counts (
    run INTEGER PRIMARY KEY REFERENCES run,
    lost TEXT NOT NULL
) STRICT;
{_QUERIES.schema}CREATE TABLE wait_profile (
    run INTEGER PRIMARY KEY REFERENCES run,
    hertz REAL NOT NULL
) STRICT;
{_WAITS.schema}"""


def save_details(connection: sqlite3.Connection, key: int | None, record: RunRecord) -> None:
    """Add what is known of a run, of which `key` is the id; call it within a transaction.

    A plan stands there once for each environment, cell and statement that had it, with the number of runs.
    """
    _SESSIONS.save(connection, key, record.sessions)
    _PROCESSES.save(connection, key, record.processes)
    if record.waits is not None:
        connection.execute("INSERT INTO wait_profile (run, hertz) VALUES (?, ?)", (key, record.waits.hertz))
        _WAITS.save(connection, key, record.waits.counts)
    if record.queries is not None:
        connection.execute("INSERT INTO query_counts (run, lost) VALUES (?, ?)", (key, record.queries.lost))
        _QUERIES.save(connection, key, record.queries.queries)
    place = record.environment, record.cell
    connection.executemany(
        "INSERT INTO query_plan (environment, cell, statement, planned_with, shape, error, position, text, runs) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET runs = runs + 1",
        [
            (*place, plan.statement, plan.planned_with.value, "\n".join(plan.shape), plan.error, number, plan.text)
            for number, plan in enumerate(record.query_plans)
        ],
    )


def load_details(connection: sqlite3.Connection) -> dict[int, dict[str, Any]]:
    """Fields of the record of each run, by run: sessions, processes, waits and queries, as far as there are any."""
    found: dict[int, dict[str, Any]] = {}
    for name, items in (("sessions", _SESSIONS.load(connection)), ("processes", _PROCESSES.load(connection))):
        for run, seen in items.items():
            found.setdefault(run, {})[name] = _seen(seen)
    waits, queries = _WAITS.load(connection), _QUERIES.load(connection)
    for run, hertz in connection.execute("SELECT run, hertz FROM wait_profile"):
        found.setdefault(run, {})["waits"] = WaitProfile(hertz=hertz, counts=_seen(waits.get(run, ())))
    for run, lost in connection.execute("SELECT run, lost FROM query_counts"):
        found.setdefault(run, {})["queries"] = QueryCounts(queries=_called(queries.get(run, ())), lost=lost)
    return found


def _seen(counts: Iterable[_Counted]) -> tuple[_Counted, ...]:
    """Without counts of nothing, which pgstrata never writes."""
    return tuple(count for count in counts if count.samples > 0)


def _called(counts: Iterable[QueryCount]) -> tuple[QueryCount, ...]:
    """Counts of statements that were called: the latency of a statement is that of a call."""
    return tuple(count for count in counts if count.calls > 0)


def load_query_plans(connection: sqlite3.Connection) -> tuple[PlanUse, ...]:
    """All plans, by environment and cell, in the order of the statements, the most frequent of each first."""
    rows = connection.execute(
        "SELECT environment, cell, statement, planned_with, shape, error, text, runs FROM query_plan "
        "ORDER BY environment, cell, position, statement, runs DESC, shape"
    )
    return tuple(
        PlanUse(
            environment=environment, cell=cell, runs=runs,
            plan=QueryPlan(
                statement=statement, planned_with=PlannedWith(planned_with), shape=tuple(shape.splitlines()), text=text,
                error=error,
            ),
        )
        for environment, cell, statement, planned_with, shape, error, text, runs in rows
    )  # fmt: skip
