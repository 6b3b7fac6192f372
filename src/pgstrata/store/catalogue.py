"""The catalogue of a study in SQLite: runs, measurements, series, statements, fingerprints, in plain tables.

Everything in it is derived from files beside it. Open it with any SQLite client for questions of your own.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pgstrata.errors import StudyError
from pgstrata.model.activity import ProcessCount, SessionCount, SessionState
from pgstrata.model.codec import decode
from pgstrata.model.metrics import Measurement, Series
from pgstrata.model.runs import Reason, RunRecord, RunStatus, StatementLatency, Validity
from pgstrata.model.server import Fingerprint
from pgstrata.store.failures import damaged_catalogue
from pgstrata.store.queries import QUERY_TABLES, load_query_counts, save_query_counts, save_query_plans
from pgstrata.store.waits import WAIT_TABLES, load_waits, save_waits
from pgstrata.system.files import copy_file
from pgstrata.system.users import UserIds, acting_as
from pgstrata.system.ways import as_owner, find_owner

CATALOGUE: Final = "catalogue.sqlite"
_BUSY_SECONDS = 5.0
_SCHEMA_VERSION = 8
_SCHEMA = f"""
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    block INTEGER NOT NULL,
    environment TEXT NOT NULL,
    cell TEXT NOT NULL,
    status TEXT NOT NULL,
    validity TEXT NOT NULL,
    reasons TEXT NOT NULL,
    started TEXT NOT NULL,
    measured_seconds REAL NOT NULL,
    dead_time TEXT NOT NULL,
    together TEXT NOT NULL
) STRICT;
CREATE TABLE measurement (
    metric TEXT NOT NULL,
    run INTEGER NOT NULL REFERENCES run,
    position INTEGER NOT NULL,
    value REAL,
    PRIMARY KEY (metric, run, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE series (
    run INTEGER NOT NULL REFERENCES run,
    position INTEGER NOT NULL,
    metric TEXT NOT NULL,
    subject TEXT NOT NULL,
    times BLOB NOT NULL,
    "values" BLOB NOT NULL,
    PRIMARY KEY (run, position)
) STRICT;
CREATE TABLE statement (
    run INTEGER NOT NULL REFERENCES run,
    position INTEGER NOT NULL,
    text TEXT NOT NULL,
    seconds REAL,
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;
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
{QUERY_TABLES}{WAIT_TABLES}CREATE TABLE fingerprint (
    name TEXT NOT NULL,
    fact TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name, fact)
) STRICT, WITHOUT ROWID;
"""
_RUN_COLUMNS = (
    "id, identity, block, environment, cell, status, validity, reasons, started, measured_seconds, dead_time, together"
)
_SEEN = "state, wait_type, event, query, samples"
_PLACES = ", ".join("?" * (_RUN_COLUMNS.count(",") + 1))


class _Connection(sqlite3.Connection):
    """Root uses it as the user who could replace the files beside the database, which SQLite opens and removes."""

    owner: UserIds | None = None

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        with acting_as(self.owner):
            return super().execute(*arguments)

    def close(self) -> None:
        with acting_as(self.owner):
            super().close()


@as_owner
def create_catalogue(path: Path) -> None:
    """A new, empty catalogue."""
    with closing(open_raw(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"BEGIN;{_SCHEMA}PRAGMA user_version = {_SCHEMA_VERSION};COMMIT")


def open_raw(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode; waits some seconds where another program holds the database."""
    _refuse_endless(path)
    owner = find_owner(path)
    with acting_as(owner):
        connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_SECONDS, factory=_Connection)
    connection.owner = owner
    return connection


def open_for_writing(path: Path) -> sqlite3.Connection:
    """As `open_raw`, of a catalogue of the known format."""
    connection = open_raw(path)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        _check_version(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_endless(path: Path) -> None:
    """SQLite would wait for ever for the other end of a pipe."""
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        if file.exists() and not file.is_file():
            raise StudyError(
                "this is no ordinary file, and the catalogue needs one",
                where=str(file),
                remedy=f"remove it, and rebuild the catalogue: pgstrata reparse {path.parent}",
            )


@contextmanager
def open_for_reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection that also works beside a writer, and in a folder that cannot be written."""
    with tempfile.TemporaryDirectory(prefix="pgstrata-") as scratch:
        connection = _connect_read_only(path, Path(scratch))
        with closing(connection):
            _check_version(connection, path)
            connection.execute("BEGIN")
            yield connection


@as_owner
def _connect_read_only(path: Path, scratch: Path) -> sqlite3.Connection:
    if not path.exists():
        raise StudyError(
            "the study has no catalogue",
            where=str(path),
            remedy=f"rebuild it from the evidence: pgstrata reparse {path.parent}",
        )
    _refuse_endless(path)
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_BUSY_SECONDS)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
            raise
        return _connect_immutable(path, scratch)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_immutable(path: Path, scratch: Path) -> sqlite3.Connection:
    """SQLite needs a file beside a WAL database; without the right to make one, nobody else writes here either."""
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        # A writer was killed and the study moved to where nothing can be written: replay its log elsewhere.
        copy_file(path, scratch / path.name)
        copy_file(log, scratch / log.name)
        return sqlite3.connect(scratch / path.name)
    return sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    (number,) = connection.execute("PRAGMA user_version").fetchone()
    if number != _SCHEMA_VERSION:
        raise StudyError(
            f"the catalogue has format {number}, this pgstrata knows {_SCHEMA_VERSION}",
            where=str(path),
            remedy=f"rebuild it from the evidence: pgstrata reparse {path.parent}",
        )
    # a view in the place of a table might never end
    there = {text for (text,) in connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'table'")}
    if not there.issuperset(filter(None, map(str.strip, _SCHEMA.split(";")))):
        raise damaged_catalogue(path.parent, "a table is missing or has other columns")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself after a full disk.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def save_run(connection: sqlite3.Connection, record: RunRecord) -> None:
    """Add a run with all its measurements, series, statements and sessions; call it within a transaction."""
    reasons = json.dumps([[reason.code, reason.text] for reason in record.reasons], ensure_ascii=False)
    row = (
        None, record.identity, record.block, record.environment, record.cell, record.status.value,
        record.validity.value, reasons, record.started, record.measured_seconds,
        json.dumps(dict(record.dead_time), ensure_ascii=False), record.together,
    )  # fmt: skip
    key = connection.execute(f"INSERT INTO run ({_RUN_COLUMNS}) VALUES ({_PLACES})", row).lastrowid
    connection.executemany(
        "INSERT INTO measurement (metric, run, position, value) VALUES (?, ?, ?, ?)",
        [(item.metric, key, place, item.value) for place, item in enumerate(record.measurements)],
    )
    connection.executemany(
        'INSERT INTO series (run, position, metric, subject, times, "values") VALUES (?, ?, ?, ?, ?, ?)',
        [
            (key, place, item.metric, item.subject, _floats(item.times), _floats(item.values))
            for place, item in enumerate(record.series)
        ],
    )
    connection.executemany(
        "INSERT INTO statement (run, position, text, seconds) VALUES (?, ?, ?, ?)",
        [(key, place, item.text, item.seconds) for place, item in enumerate(record.statements)],
    )
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
    save_query_plans(connection, record)
    save_query_counts(connection, key, record)
    save_waits(connection, key, record)


def _floats(numbers: Sequence[float]) -> bytes:
    return array("f", numbers).tobytes()


def save_fingerprint(connection: sqlite3.Connection, name: str, fingerprint: Fingerprint) -> None:
    """Replace what is remembered under that name; call it within a transaction."""
    connection.execute("DELETE FROM fingerprint WHERE name = ?", (name,))
    rows = [(name, fact, value) for fact, value in fingerprint.facts.items()]
    connection.executemany("INSERT INTO fingerprint (name, fact, value) VALUES (?, ?, ?)", rows)


def load_identities(connection: sqlite3.Connection) -> frozenset[str]:
    """Identities of all runs."""
    return frozenset(identity for (identity,) in connection.execute("SELECT identity FROM run"))


def load_fingerprints(connection: sqlite3.Connection) -> Mapping[str, Fingerprint]:
    """All fingerprints by name."""
    found: dict[str, dict[str, str]] = {}
    for name, fact, value in connection.execute("SELECT name, fact, value FROM fingerprint"):
        found.setdefault(name, {})[fact] = value
    return {name: Fingerprint(facts=facts) for name, facts in found.items()}


def load_runs(
    connection: sqlite3.Connection, *, metrics: Sequence[str] | None, series: bool | Collection[str], sessions: bool
) -> tuple[RunRecord, ...]:
    """All runs in order of their commit, with the measurements of those metrics only; None is all.

    `series`: those of the same metrics (True), none (False), or those of the metrics named. `sessions`: whether what
    sessions were seen doing, and what servers counted of their statements, is read too.
    """
    measured = _load_measurements(connection, *_metric_filter(metrics))
    named = metrics if isinstance(series, bool) else tuple(series)
    lines = _load_series(connection, *_metric_filter(named)) if series else {}
    profiles = _load_statements(connection)
    seen = _load_sessions(connection) if sessions else {}
    beside = _load_processes(connection) if sessions else {}
    rows = connection.execute(f"SELECT {_RUN_COLUMNS} FROM run ORDER BY id")
    counted = load_query_counts(connection) if sessions else {}
    waits = load_waits(connection) if sessions else {}
    return tuple(
        [
            replace(
                _read_run(row[1:], measured.get(row[0], ()), lines.get(row[0], ()), profiles.get(row[0], ())),
                sessions=tuple(seen.get(row[0], ())),
                processes=tuple(beside.get(row[0], ())),
                queries=counted.get(row[0]),
                waits=waits.get(row[0]),
            )
            for row in rows
        ]
    )


def _read_run(
    row: tuple[Any, ...],
    measured: Sequence[Measurement],
    lines: Sequence[Series],
    statements: Sequence[StatementLatency],
) -> RunRecord:
    identity, block, environment, cell, status, validity, reasons, started, seconds, dead_time, together = row
    return RunRecord(
        identity=identity,
        block=block,
        environment=environment,
        cell=cell,
        status=RunStatus(status),
        validity=Validity(validity),
        reasons=() if reasons == "[]" else _parse_reasons(reasons),
        started=started,
        measured_seconds=seconds,
        measurements=tuple(measured),
        series=tuple(lines),
        dead_time=decode(dict[str, float], json.loads(dead_time)),
        statements=tuple(statements),
        together=together,
    )


def _metric_filter(metrics: Sequence[str] | None) -> tuple[str, tuple[str, ...]]:
    if metrics is None:
        return "", ()
    return f" WHERE metric IN ({', '.join('?' * len(metrics))})", tuple(metrics)


def _parse_reasons(text: str) -> tuple[Reason, ...]:
    pairs = decode(tuple[tuple[str, ...], ...], json.loads(text))
    return tuple(Reason(code=code, text=sentence) for code, sentence in pairs)


def _load_measurements(
    connection: sqlite3.Connection, wanted: str, names: tuple[str, ...]
) -> dict[int, list[Measurement]]:
    found: dict[int, list[Measurement]] = {}
    query = f"SELECT run, metric, value FROM measurement{wanted} ORDER BY run, position"
    for run, metric, value in connection.execute(query, names):
        # SQLite keeps a number that is none as NULL.
        item = Measurement(metric=metric, value=float("nan") if value is None else value)
        found.setdefault(run, []).append(item)
    return found


def _load_series(connection: sqlite3.Connection, wanted: str, names: tuple[str, ...]) -> dict[int, list[Series]]:
    found: dict[int, list[Series]] = {}
    query = f'SELECT run, metric, subject, times, "values" FROM series{wanted} ORDER BY run, position'
    for run, metric, subject, times, values in connection.execute(query, names):
        item = Series(metric=metric, times=tuple(array("f", times)), values=tuple(array("f", values)), subject=subject)
        if len(item.times) != len(item.values):
            raise ValueError(f"times and values of a series of {metric} differ in number")
        found.setdefault(run, []).append(item)
    return found


def _load_statements(connection: sqlite3.Connection) -> dict[int, list[StatementLatency]]:
    found: dict[int, list[StatementLatency]] = {}
    for run, text, seconds in connection.execute("SELECT run, text, seconds FROM statement ORDER BY run, position"):
        item = StatementLatency(text=text, seconds=float("nan") if seconds is None else seconds)
        found.setdefault(run, []).append(item)
    return found


def _load_sessions(connection: sqlite3.Connection) -> dict[int, list[SessionCount]]:
    found: dict[int, list[SessionCount]] = {}
    query = f"SELECT run, blocker, {_SEEN} FROM session ORDER BY run, position"
    for run, blocker, state, wait_type, event, text, samples in connection.execute(query):
        item = SessionCount(
            state=SessionState(state), wait_type=wait_type, event=event, query=text, samples=samples, blocker=blocker
        )
        found.setdefault(run, []).append(item)
    return found


def _load_processes(connection: sqlite3.Connection) -> dict[int, list[ProcessCount]]:
    found: dict[int, list[ProcessCount]] = {}
    query = f"SELECT run, kind, {_SEEN} FROM process ORDER BY run, position"
    for run, kind, state, wait_type, event, text, samples in connection.execute(query):
        item = ProcessCount(
            kind=kind, state=SessionState(state), wait_type=wait_type, event=event, query=text, samples=samples
        )
        found.setdefault(run, []).append(item)
    return found
