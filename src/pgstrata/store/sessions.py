"""What sessions and the server's other processes were seen doing: tables of the catalogue."""

from __future__ import annotations

import sqlite3
from typing import Final

from pgstrata.model.activity import ProcessCount, SessionCount, SessionState
from pgstrata.model.runs import RunRecord

SESSION_TABLES: Final = """\
CREATE TABLE session (
    run INTEGER NOT NULL REFERENCES run,
    position INTEGER NOT NULL,
    state TEXT NOT NULL,
    wait_type TEXT NOT NULL,
    event TEXT NOT NULL,
    query TEXT NOT NULL,
    samples INTEGER NOT NULL,
    blocker TEXT NOT NULL,
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE process (
    run INTEGER NOT NULL REFERENCES run,
    position INTEGER NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    wait_type TEXT NOT NULL,
    event TEXT NOT NULL,
    query TEXT NOT NULL,
    samples INTEGER NOT NULL,
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;
"""
_SEEN: Final = "state, wait_type, event, query, samples"


def save_sessions(connection: sqlite3.Connection, key: int | None, record: RunRecord) -> None:
    """Add what was seen in a run, of which `key` is the id; call it within a transaction."""
    connection.executemany(
        f"INSERT INTO session (run, position, {_SEEN}, blocker) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (key, place, item.state.value, item.wait_type, item.event, item.query, item.samples, item.blocker)
            for place, item in enumerate(record.sessions)
        ],
    )
    connection.executemany(
        f"INSERT INTO process (run, position, {_SEEN}, kind) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (key, place, item.state.value, item.wait_type, item.event, item.query, item.samples, item.kind)
            for place, item in enumerate(record.processes)
        ],
    )


def load_sessions(connection: sqlite3.Connection) -> dict[int, list[SessionCount]]:
    """What the sessions of each run were seen doing."""
    found: dict[int, list[SessionCount]] = {}
    query = f"SELECT run, blocker, {_SEEN} FROM session ORDER BY run, position"
    for run, blocker, state, wait_type, event, text, samples in connection.execute(query):
        item = SessionCount(
            state=SessionState(state), wait_type=wait_type, event=event, query=text, samples=samples, blocker=blocker
        )
        found.setdefault(run, []).append(item)
    return found


def load_processes(connection: sqlite3.Connection) -> dict[int, list[ProcessCount]]:
    """What the server's other processes were seen doing in each run."""
    found: dict[int, list[ProcessCount]] = {}
    query = f"SELECT run, kind, {_SEEN} FROM process ORDER BY run, position"
    for run, kind, state, wait_type, event, text, samples in connection.execute(query):
        item = ProcessCount(
            kind=kind, state=SessionState(state), wait_type=wait_type, event=event, query=text, samples=samples
        )
        found.setdefault(run, []).append(item)
    return found
