"""Sums of minutes, and what is dropped of an archive that grows: seconds first, the oldest first."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import Final

from pgstrata.model.archive import GROUP_RATES, HOST_RATES, RELATION_COUNTERS, RELATION_FIELDS, SERVER_RATES
from pgstrata.store.database import transaction

MINUTE: Final = 60
HOUR: Final = 3600
_COARSE_INTERVAL: Final = 600
_SECONDS: Final = ("look_second", "session_second", "blocked_second", "server_second", "host_second", "group_second")
_MINUTES: Final = ("look_minute", "session_minute", "blocked_minute", "server_minute", "host_minute", "group_minute")
_ALL: Final = (
    *_SECONDS,
    *_MINUTES,
    "statement_interval",
    "statement_use",
    "relation_interval",
    "relation_use",
    "horizon",
    "event",
)
_ROLLED: Final = "rolled_until"
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_FOR_EVER: Final = 1 << 62
_BATCH: Final = 6 * HOUR
"""Seconds that are summed up in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """How much of the past is kept: `detail` and `total` in seconds, `size` in bytes."""

    detail: int = 7 * 86_400
    total: int = 30 * 86_400
    size: int = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinning:
    """What was dropped: seconds before `detailed_since`, everything before `begin`, by a limit of age or of size."""

    begin: int
    detailed_since: int
    by_size: bool
    forgot: bool


def roll_up(connection: sqlite3.Connection, now: int) -> None:
    """Sum up the seconds of all minutes that have ended, also those that a killed recorder left."""
    begin = _read_fact(connection, _ROLLED)
    end = now // MINUTE * MINUTE
    # nothing is summed up of stretches of which nothing is known
    while (begin := _next(connection, begin, end)) < end:
        upto = min(end, begin + _BATCH)
        with transaction(connection):
            for statement in _SUMS:
                connection.execute(statement, (begin, upto))
            connection.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (_ROLLED, str(upto)))
        begin = upto


def sum_up_again(connection: sqlite3.Connection, moment: int) -> None:
    """Minutes from that of `moment` on have got seconds: after a full disk, or a clock that was set back."""
    rolled = _read_fact(connection, _ROLLED)
    begin = moment // MINUTE * MINUTE
    if rolled is None or begin < rolled:
        connection.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (_ROLLED, str(begin)))


def _next(connection: sqlite3.Connection, begin: int | None, end: int) -> int:
    """The first minute from `begin` on of which seconds are kept, at most `end`."""
    firsts = (
        connection.execute(
            f"SELECT min(moment) FROM {table} WHERE moment >= ?", (-_FOR_EVER if begin is None else begin,)
        ).fetchone()[0]
        for table in ("look_second", "server_second", "host_second")
    )
    return min(end, *(end if first is None else int(first) // MINUTE * MINUTE for first in firsts))


def _sum_rates(name: str, columns: tuple[str, ...]) -> str:
    means = ", ".join(
        f"sum({column} * seconds) / sum(CASE WHEN {column} IS NOT NULL THEN seconds END)" for column in columns
    )
    return (
        f"INSERT OR REPLACE INTO {name}_minute SELECT moment / 60 * 60, sum(seconds), {means} "
        f"FROM {name}_second WHERE moment >= ? AND moment < ? GROUP BY 1"
    )


_SECONDS_THERE: Final = "SELECT moment / 60 * 60 FROM look_second WHERE moment >= ? AND moment < ?"
_SUMS: Final = (
    f"DELETE FROM session_minute WHERE moment IN ({_SECONDS_THERE})",
    f"DELETE FROM blocked_minute WHERE moment IN ({_SECONDS_THERE})",
    (
        "INSERT OR REPLACE INTO look_minute SELECT moment / 60 * 60, sum(looks), sum(load) FROM look_second "
        "WHERE moment >= ? AND moment < ? GROUP BY 1"
    ),
    (
        "INSERT OR REPLACE INTO session_minute SELECT moment / 60 * 60, class, sum(sessions) FROM session_second "
        "WHERE moment >= ? AND moment < ? GROUP BY 1, 2"
    ),
    (
        "INSERT OR REPLACE INTO blocked_minute SELECT moment / 60 * 60, class, root, pid, max(held), sum(sessions) "
        "FROM blocked_second WHERE moment >= ? AND moment < ? GROUP BY 1, 2, 3, 4"
    ),
    _sum_rates("server", SERVER_RATES),
    _sum_rates("host", HOST_RATES),
    _sum_rates("group", GROUP_RATES),
)


def thin(connection: sqlite3.Connection, keep: Keep, now: int, share: float = 1.0) -> Thinning | None:
    """Drop what is older than it may be, and the oldest of what is more than there may be.

    Args:
        connection: to the archive, minutes summed up.
        keep: the limits.
        now: Unix seconds.
        share: of what is there now, the most that may be left.
    """
    most = min(keep.size, round(share * _used(connection))) if share < 1 else keep.size
    first, detailed = _first(connection, "look_minute", now), _first(connection, "look_second", now)
    begin, since = now - keep.total, now - keep.detail
    _drop(connection, begin, since)
    by_size = False
    while _used(connection) > most:
        by_size = True
        oldest_second, oldest_minute = _first(connection, "look_second", now), _first(connection, "look_minute", now)
        if oldest_second < now - HOUR:
            since = max(since, oldest_second // HOUR * HOUR + HOUR)
        elif oldest_minute < now - HOUR:
            begin = max(begin, min(now - HOUR, oldest_minute + max(HOUR, (now - oldest_minute) // 10)))
        else:
            break
        _drop(connection, begin, since)
    changed = first < begin or detailed < since
    forgot = first // HOUR < begin // HOUR  # it reads all minutes that are kept
    if forgot:
        _forget(connection, begin)
    if not changed:
        return None
    if share >= 1:
        connection.executescript("PRAGMA incremental_vacuum")  # which steps to its end, as execute does not
    return Thinning(begin=max(begin, first), detailed_since=max(since, detailed), by_size=by_size, forgot=forgot)


def _drop(connection: sqlite3.Connection, begin: int, since: int) -> None:
    """Everything before `begin`, and the seconds before `since`."""
    with transaction(connection):
        for table in _ALL:
            connection.execute(f"DELETE FROM {table} WHERE moment < ?", (begin,))
        connection.execute("DELETE FROM plan WHERE until < ?", (begin,))
        for table in _SECONDS:
            connection.execute(f"DELETE FROM {table} WHERE moment < ?", (since,))
        for counted in _COUNTED:
            _thin_intervals(connection, counted, since)
        # of each holder and minute the last is enough
        connection.execute("DELETE FROM horizon WHERE moment < ? AND moment % 60 <> 0", (since,))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Tables of what is counted in intervals: of the intervals and of the uses, with what is summed up in each."""

    intervals: str
    sums: str
    uses: str
    by: str
    use_sums: str


_COUNTED: Final = (
    _Counted(
        intervals="statement_interval",
        sums="sum(seconds), sum(spent), min(complete)",
        uses="statement_use",
        by="statement",
        use_sums="sum(calls), sum(seconds), sum(rows), sum(blocks_hit), sum(blocks_read), sum(wal_bytes)",
    ),
    _Counted(
        intervals="relation_interval",
        sums="sum(seconds)",
        uses="relation_use",
        by="relation",
        use_sums=", ".join(f"sum({name})" if name in RELATION_COUNTERS else f"max({name})" for name in RELATION_FIELDS),
    ),
)


def _thin_intervals(connection: sqlite3.Connection, counted: _Counted, since: int) -> None:
    """Intervals before `since` become ones of ten minutes."""
    end = since // _COARSE_INTERVAL * _COARSE_INTERVAL
    fine = f"moment <= ? AND moment % {_COARSE_INTERVAL} <> 0"
    (first,) = connection.execute(f"SELECT min(moment) FROM {counted.intervals} WHERE {fine}", (end,)).fetchone()
    if first is None:
        return
    span, inside = (first // _COARSE_INTERVAL * _COARSE_INTERVAL, end), "moment > ? AND moment <= ?"
    to_ten = f"(moment + {_COARSE_INTERVAL - 1}) / {_COARSE_INTERVAL} * {_COARSE_INTERVAL}"
    for table, names, sums in (
        (counted.uses, f"{to_ten}, {counted.by}", counted.use_sums),
        (counted.intervals, to_ten, counted.sums),
    ):
        groups = ", ".join(str(place + 1) for place in range(names.count(", ") + 1))
        connection.execute(
            f"CREATE TEMP TABLE coarse AS SELECT {names}, {sums} FROM {table} WHERE {inside} GROUP BY {groups}", span
        )
        connection.execute(f"DELETE FROM {table} WHERE {inside}", span)
        connection.execute(f"INSERT INTO {table} SELECT * FROM coarse")
        connection.execute("DROP TABLE coarse")


def _forget(connection: sqlite3.Connection, begin: int) -> None:
    """Classes and statements of which nothing is left after `begin`.

    Whatever seconds have, their minutes have, too, but those at both ends. To read all seconds would take so long that
    the recorder would miss looks.
    """
    ends = {"first": begin + MINUTE, "rolled": _read_fact(connection, _ROLLED) or begin}
    kept = " UNION ".join(
        f"SELECT {column} FROM {table}_minute UNION SELECT {column} FROM {table}_second WHERE moment < :first "
        f"UNION SELECT {column} FROM {table}_second WHERE moment >= :rolled"
        for table, column in (("session", "class"), ("blocked", "class"), ("blocked", "root"))
    )
    with transaction(connection):
        connection.execute(f"DELETE FROM session_class WHERE id NOT IN ({kept})", ends)
        connection.execute(
            "DELETE FROM statement WHERE id NOT IN (SELECT statement FROM session_class UNION "
            "SELECT statement FROM statement_use UNION SELECT statement FROM plan)"
        )
        connection.execute("DELETE FROM relation WHERE id NOT IN (SELECT relation FROM relation_use)")


def _used(connection: sqlite3.Connection) -> int:
    """Bytes of the pages that hold something."""
    return _pragma(connection, "page_count") * _pragma(connection, "page_size") - count_free(connection)


def count_free(connection: sqlite3.Connection) -> int:
    """Bytes of the pages that hold nothing."""
    return _pragma(connection, "freelist_count") * _pragma(connection, "page_size")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _first(connection: sqlite3.Connection, table: str, otherwise: int) -> int:
    (found,) = connection.execute(f"SELECT min(moment) FROM {table}").fetchone()
    return otherwise if found is None else int(found)


def _read_fact(connection: sqlite3.Connection, name: str) -> int | None:
    found = connection.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
    return int(found[0]) if found is not None and _NUMBER.fullmatch(found[0]) else None
