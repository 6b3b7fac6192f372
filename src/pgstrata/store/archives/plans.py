"""Plans of statements in an archive: a row for each stretch of time in which a statement had the same one."""

from __future__ import annotations

import sqlite3
from typing import Final

from pgstrata.model.query_plans import GenericPlan, SeenPlan
from pgstrata.store.archives.plausible import check_count, take

_MOST: Final = 10_000
_LONGEST: Final = 20_000
_LATEST: Final = "SELECT moment, shape, problem FROM plan WHERE statement = ? ORDER BY moment DESC LIMIT 1"


def write_plan(connection: sqlite3.Connection, statement: int, moment: int, plan: GenericPlan) -> None:
    """What a statement's plan was at that moment: a new row only if it is another one than before."""
    latest = connection.execute(_LATEST, (statement,)).fetchone()
    if latest is not None and latest[1:] == (plan.shape, plan.problem):
        connection.execute(
            "UPDATE plan SET until = max(until, ?) WHERE moment = ? AND statement = ?", (moment, latest[0], statement)
        )
        return
    row = (moment, statement, moment, plan.shape, "\n".join(plan.outline), plan.problem)
    connection.execute("INSERT OR REPLACE INTO plan VALUES (?, ?, ?, ?, ?, ?)", row)


def read_plans(connection: sqlite3.Connection, begin: int, end: int) -> tuple[SeenPlan, ...]:
    """Those that were seen from `begin` (included) to `end` (excluded), in order of time."""
    query = (
        f"SELECT s.key, p.moment, p.until, p.shape, substr(p.outline, 1, {_LONGEST}), substr(p.problem, 1, {_LONGEST}) "
        "FROM plan p CROSS JOIN statement s ON s.id = p.statement WHERE p.moment < ? AND p.until >= ? ORDER BY p.moment"
    )
    return tuple(
        SeenPlan(
            statement=key,
            first=check_count(first, "seconds of a plan"),
            last=check_count(last, "seconds of a plan"),
            plan=GenericPlan(shape=shape, outline=tuple(outline.split("\n")) if outline else (), problem=problem),
        )
        for key, first, last, shape, outline, problem in take(
            connection.execute(query, (end, begin)), "plans", most=_MOST
        )
    )
