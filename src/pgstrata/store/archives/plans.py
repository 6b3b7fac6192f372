"""Plans of statements in an archive: a row for each stretch of time in which a plan of a statement was seen."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

from pgstrata.model.query_plans import LivePlan, PlanSource, SeenPlan
from pgstrata.store.archives.plausible import LATEST, LONGEST_KEY, check_count

_MOST: Final = 10_000
_LONGEST: Final = 20_000
_PAUSE: Final = 600
"""Seconds without a logged plan after which the next one of the same shape begins another row."""


def write_plan(connection: sqlite3.Connection, statement: int, seen: SeenPlan) -> None:
    """What the plan of a statement, by its number, was at a moment; `seen.first` and `seen.last` are the same.

    Another row begins where the plan is another one than at the last look; of logged plans, where none of its shape was
    logged for a while.
    """
    plan, moment = seen.plan, seen.first
    wanted = "moment, shape, problem, until FROM plan WHERE statement = ? AND source = ?"
    names: tuple[int | str, ...] = (statement, seen.source.value)
    if seen.source is PlanSource.LOGGED:
        wanted, names = f"{wanted} AND shape = ? AND until >= ?", (*names, plan.shape, moment - _PAUSE)
    latest = connection.execute(f"SELECT {wanted} ORDER BY moment DESC LIMIT 1", names).fetchone()
    if latest is not None and latest[1:3] == (plan.shape, plan.problem):
        connection.execute(
            "UPDATE plan SET until = max(until, ?), times = times + ? "
            "WHERE moment = ? AND statement = ? AND source = ? AND shape = ?",
            (moment, seen.times, latest[0], statement, seen.source.value, plan.shape),
        )
        return
    row = (
        moment, statement, seen.source.value, plan.shape, moment, seen.times, "\n".join(plan.outline), plan.problem,
    )  # fmt: skip
    connection.execute("INSERT OR REPLACE INTO plan VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def read_plans(connection: sqlite3.Connection, begin: int, end: int, ids: Mapping[str, str]) -> tuple[SeenPlan, ...]:
    """Plans that were seen from `begin` (included) to `end` (excluded), in order of time.

    Of very many, those that were seen most often. `ids` are ids of statements by the hashes of their texts, as far as
    both are known.
    """
    query = (
        f"SELECT substr(s.key, 1, {LONGEST_KEY}), "
        "p.moment, p.until, p.shape, p.outline, p.problem, p.source, p.times "
        f"FROM (SELECT moment, statement, until, times, source, substr(shape, 1, {LONGEST_KEY}) AS shape, "
        f"substr(outline, 1, {_LONGEST}) AS outline, substr(problem, 1, {_LONGEST}) AS problem FROM plan "
        f"WHERE moment < ? AND until >= ? ORDER BY times DESC LIMIT {_MOST}) p "
        "CROSS JOIN statement s ON s.id = p.statement ORDER BY p.moment, p.statement, p.source, p.shape"
    )
    known = {source.value for source in PlanSource}
    return tuple(
        SeenPlan(
            statement=ids.get(key, key),
            first=check_count(first, "seconds of a plan", most=LATEST),
            last=check_count(last, "seconds of a plan", most=LATEST),
            plan=LivePlan(shape=shape, outline=tuple(outline.split("\n")) if outline else (), problem=problem),
            source=PlanSource(source),
            times=check_count(times, "looks at a plan"),
        )
        for key, first, last, shape, outline, problem, source, times in connection.execute(query, (end, begin))
        if source in known
    )
