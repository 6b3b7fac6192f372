"""What the catalogue holds of single statements of a workload: their plans, and what servers counted of them.

A plan stands there once for each environment, cell and statement that had it, with the number of runs.
"""

from __future__ import annotations

import sqlite3
from dataclasses import fields
from typing import Final

from pgstrata.model.queries import QueryCount, QueryCounts
from pgstrata.model.query_plans import PlannedWith, PlanUse, QueryPlan
from pgstrata.model.runs import RunRecord

QUERY_TABLES: Final = """\
CREATE TABLE query_plan (
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
CREATE TABLE query (
    run INTEGER NOT NULL REFERENCES run,
    position INTEGER NOT NULL,
    query TEXT NOT NULL,
    calls REAL NOT NULL,
    seconds REAL NOT NULL,
    rows REAL NOT NULL,
    blocks_hit REAL NOT NULL,
    blocks_read REAL NOT NULL,
    wal_bytes REAL,
    plans REAL,
    plan_seconds REAL,
    jit_functions REAL,
    jit_seconds REAL,
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;
"""
_COLUMNS: Final = tuple(member.name for member in fields(QueryCount))


def save_query_plans(connection: sqlite3.Connection, record: RunRecord) -> None:
    """Count the plans of a run; call it within a transaction."""
    connection.executemany(
        "INSERT INTO query_plan (environment, cell, statement, planned_with, shape, error, position, text, runs) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET runs = runs + 1",
        [
            (
                record.environment, record.cell, plan.statement, plan.planned_with.value, "\n".join(plan.shape),
                plan.error, place, plan.text,
            )
            for place, plan in enumerate(record.query_plans)
        ],
    )  # fmt: skip


def save_query_counts(connection: sqlite3.Connection, key: int | None, record: RunRecord) -> None:
    """Add what was counted in a run; call it within a transaction."""
    if record.queries is None:
        return
    connection.execute("INSERT INTO query_counts (run, lost) VALUES (?, ?)", (key, record.queries.lost))
    connection.executemany(
        f"INSERT INTO query (run, position, {', '.join(_COLUMNS)}) VALUES (?, ?{', ?' * len(_COLUMNS)})",
        [
            (key, place, *(getattr(item, name) for name in _COLUMNS))
            for place, item in enumerate(record.queries.queries)
        ],
    )


def load_query_counts(connection: sqlite3.Connection) -> dict[int, QueryCounts]:
    """What was counted, by run."""
    found: dict[int, list[QueryCount]] = {}
    for run, *values in connection.execute(f"SELECT run, {', '.join(_COLUMNS)} FROM query ORDER BY run, position"):
        found.setdefault(run, []).append(QueryCount(**dict(zip(_COLUMNS, values, strict=True))))
    return {
        run: QueryCounts(queries=tuple(found.get(run, ())), lost=lost)
        for run, lost in connection.execute("SELECT run, lost FROM query_counts")
    }


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
