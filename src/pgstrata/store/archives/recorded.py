"""Seconds of an archive in the form in which a recorder passes them to followers, for a recorder that is restarted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Final

from pgstrata.model.archive import COMMITS, ArchiveWindow, SessionsLook, StatementUse
from pgstrata.ports.recording import Counted, RecordedSecond
from pgstrata.store.archives.plausible import LONGEST_KEY, check_number, take

USES: Final = ("calls", "seconds", "rows", "blocks_hit", "blocks_read", "wal_bytes")


def read_recorded(connection: sqlite3.Connection, window: ArchiveWindow) -> Iterator[RecordedSecond]:
    """Load, transactions and statements in each second of a window whose steps are one second."""
    span = (window.span.begin, window.span.end)
    query = "SELECT moment, commits, seconds FROM server_second WHERE moment >= ? AND moment < ?"
    rows = take(connection.execute(query, span), "seconds")
    commits = {moment: (rate, seconds) for moment, rate, seconds in rows if rate is not None}
    counted = _read_counted(connection, span)
    for place, looks in enumerate(window.looks):
        moment = window.span.begin + place
        seen = {session: counts[place] for session, counts in window.sessions.items() if counts[place]}
        rate, seconds = commits.get(moment, (None, 0.0))
        if looks or rate is not None or moment in counted:
            yield RecordedSecond(
                moment=moment,
                look=SessionsLook(counts=seen, blocked={}) if looks else None,
                server={} if rate is None else {COMMITS: check_number(rate, COMMITS)},
                server_seconds=check_number(seconds, "length of an interval"),
                counted=counted.get(moment),
            )


def _read_counted(connection: sqlite3.Connection, span: tuple[int, int]) -> Mapping[int, Counted]:
    """Counters of statements by the end of each interval."""
    query = (
        f"SELECT i.moment, i.seconds, i.spent, i.complete, substr(s.key, 1, {LONGEST_KEY}), "
        f"{', '.join(f'u.{name}' for name in USES)} "
        "FROM statement_interval i LEFT JOIN statement_use u ON u.moment = i.moment "
        "LEFT JOIN statement s ON s.id = u.statement WHERE i.moment >= ? AND i.moment < ?"
    )
    found: dict[int, Counted] = {}
    uses: dict[int, dict[str, StatementUse]] = {}
    for moment, seconds, spent, complete, key, *values in take(connection.execute(query, span), "statements"):
        if moment not in found:
            lengths = [check_number(each, "length of an interval") for each in (seconds, spent)]
            uses[moment] = {}
            found[moment] = Counted(seconds=lengths[0], spent=lengths[1], uses=uses[moment], complete=bool(complete))
        if key is not None:
            checked = [check_number(value, "counter of a statement") for value in values]
            uses[moment][key] = StatementUse(**dict(zip(USES, checked, strict=True)))
    return found
