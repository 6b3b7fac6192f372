"""What incidents are looked for in: load, transactions and execution of an archive in steps, without statements."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping
from typing import Final

from pgstrata.model.archive import Span
from pgstrata.model.incidents import LoadStep
from pgstrata.store.archives.plausible import check_count, check_number, take

_MINUTE: Final = 60
_LONGEST: Final = 1.5
"""Lengths of a step up to which an interval of statements belongs to it."""
_MOST: Final = 5_000_000
"""Steps of a search, more than a year in steps of 10 s."""
_MOST_SESSIONS: Final = 1 << 40
_NAN: Final = math.nan


def read_steps(connection: sqlite3.Connection, span: Span, seconds: int) -> list[LoadStep]:
    """Steps of so many seconds that ended in a span, in order; of minutes only those that are summed up.

    A step ends with a whole multiple of its length, as intervals of statements do: the step that ends at 20 has the
    seconds 11 to 20. Minutes begin with theirs.
    """
    if seconds >= _MINUTE:
        return _read(connection, span, "minute", f"moment + {_MINUTE - 1}", seconds)
    return _read(connection, span, "second", f"(moment + {seconds - 1}) / {seconds} * {seconds}", seconds)


def _read(connection: sqlite3.Connection, span: Span, size: str, end: str, seconds: int) -> list[LoadStep]:
    inside = "WHERE moment > ? AND moment <= ? GROUP BY 1"
    within = (span.begin - (seconds if size == "minute" else 0), span.end)
    commits = dict(
        connection.execute(
            f"SELECT {end}, sum(commits * seconds) / sum(CASE WHEN commits IS NOT NULL THEN seconds END) "
            f"FROM server_{size} {inside}",
            within,
        )
    )
    spent = {} if size == "minute" else _spent(connection, within, end, seconds)
    query = f"SELECT {end}, sum(looks), sum(load), min(looks), min(load) FROM look_{size} {inside} ORDER BY 1"
    looks = take(connection.execute(query, within), "steps", most=_MOST)
    return [
        LoadStep(
            end=moment, seconds=seconds, looks=_checked(number, least, "looks", seconds),
            load=float(_checked(load, fewest, "sessions")), commits=_known(commits.get(moment), "commits"),
            spent=_known(spent.get(moment), "time of statements"),
        )
        for moment, number, load, least, fewest in looks
    ]  # fmt: skip


def _spent(
    connection: sqlite3.Connection, within: tuple[int, int], end: str, seconds: int
) -> Mapping[int, float | None]:
    """Seconds of execution per second; older intervals of statements are longer than a step, and are in none."""
    return dict(
        connection.execute(
            f"SELECT {end}, sum(spent) / sum(seconds) FROM statement_interval "
            f"WHERE complete AND seconds <= {_LONGEST * seconds} AND moment > ? AND moment <= ? GROUP BY 1",
            within,
        )
    )


def _checked(value: int, least: int, what: str, most: int = _MOST_SESSIONS) -> int:
    check_count(least, what)
    return check_count(value, what, most=most)


def _known(value: float | None, what: str) -> float:
    return _NAN if value is None else check_number(value, what)
