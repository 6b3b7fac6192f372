"""What the catalogue holds of waits that servers sampled by themselves."""

from __future__ import annotations

import sqlite3
from typing import Final

from pgstrata.model.activity import SessionCount, SessionState, WaitProfile
from pgstrata.model.runs import RunRecord

WAIT_TABLES: Final = """\
CREATE TABLE wait_profile (
    run INTEGER PRIMARY KEY REFERENCES run,
    hertz REAL NOT NULL
) STRICT;
CREATE TABLE wait (
    run INTEGER NOT NULL REFERENCES run,
    position INTEGER NOT NULL,
    state TEXT NOT NULL,
    wait_type TEXT NOT NULL,
    event TEXT NOT NULL,
    samples INTEGER NOT NULL,
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;
"""


def save_waits(connection: sqlite3.Connection, key: int | None, record: RunRecord) -> None:
    """Add what was sampled in a run; call it within a transaction."""
    if record.waits is None:
        return
    connection.execute("INSERT INTO wait_profile (run, hertz) VALUES (?, ?)", (key, record.waits.hertz))
    connection.executemany(
        "INSERT INTO wait (run, position, state, wait_type, event, samples) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (key, place, item.state.value, item.wait_type, item.event, item.samples)
            for place, item in enumerate(record.waits.counts)
        ],
    )


def load_waits(connection: sqlite3.Connection) -> dict[int, WaitProfile]:
    """What was sampled, by run."""
    found: dict[int, list[SessionCount]] = {}
    query = "SELECT run, state, wait_type, event, samples FROM wait ORDER BY run, position"
    for run, state, wait_type, event, samples in connection.execute(query):
        item = SessionCount(state=SessionState(state), wait_type=wait_type, event=event, query="", samples=samples)
        found.setdefault(run, []).append(item)
    return {
        run: WaitProfile(hertz=hertz, counts=tuple(found.get(run, ())))
        for run, hertz in connection.execute("SELECT run, hertz FROM wait_profile")
    }
