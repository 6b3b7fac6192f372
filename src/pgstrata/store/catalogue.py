"""The catalogue of a study in SQLite: runs, measurements, series, statements, fingerprints, in plain tables.

Everything in it is derived from files beside it. Open it with any SQLite client for questions of your own.
"""

import json
import math
import sqlite3
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from pgstrata.errors import StudyError
from pgstrata.model.codec import decode, encode
from pgstrata.model.metrics import Measurement, Series
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import RunRecord, RunStatus, StatementLatency, Validity
from pgstrata.model.server import Fingerprint
from pgstrata.sources.ceilings import drop_wrong_ceilings
from pgstrata.store.database import connect, reading
from pgstrata.store.details import TABLES, load_details, save_details
from pgstrata.store.failures import catalogue_errors, damaged_catalogue
from pgstrata.system.ways import as_owner

CATALOGUE: Final = "catalogue.sqlite"
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
{TABLES}CREATE TABLE fingerprint (
    name TEXT NOT NULL,
    fact TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name, fact)
) STRICT, WITHOUT ROWID;
"""
_RUN_COLUMNS = (
    "id, identity, block, environment, cell, status, validity, reasons, started, measured_seconds, dead_time, together"
)
_PLACES = ", ".join("?" * (_RUN_COLUMNS.count(",") + 1))


@as_owner
def create_catalogue(path: Path) -> None:
    """A new, empty catalogue."""
    with closing(open_raw(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"BEGIN;{_SCHEMA}PRAGMA user_version = {_SCHEMA_VERSION};COMMIT")


def open_raw(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode; waits some seconds where another program holds the database."""
    return connect(path, _unfit)


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


def _missing(path: Path) -> StudyError:
    return StudyError(
        "the study has no catalogue",
        where=str(path),
        remedy=f"rebuild it from the evidence: pgstrata reparse {path.parent}",
    )


def _unfit(file: Path) -> StudyError:
    return StudyError(
        "this is not an ordinary file, and the catalogue needs one",
        where=str(file),
        remedy=f"remove it, and rebuild the catalogue: pgstrata reparse {file.parent}",
    )


@contextmanager
def open_for_reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection that also works beside a writer, and in a folder that cannot be written."""
    with reading(path, _unfit, _missing) as connection:
        _check_version(connection, path)
        connection.execute("BEGIN")
        yield connection


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


def save_run(connection: sqlite3.Connection, record: RunRecord) -> None:
    """Add a run with all its measurements, series, statements and sessions; call it within a transaction."""
    reasons = json.dumps(encode(record.reasons), ensure_ascii=False)
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
    save_details(connection, key, record)


def _floats(numbers: Sequence[float]) -> bytes:
    return array("f", numbers).tobytes()


def save_fingerprint(connection: sqlite3.Connection, name: str, fingerprint: Fingerprint) -> None:
    """Replace what is remembered under that name; call it within a transaction."""
    connection.execute("DELETE FROM fingerprint WHERE name = ?", (name,))
    rows = [(name, fact, value) for fact, value in fingerprint.facts.items()]
    connection.executemany("INSERT INTO fingerprint (name, fact, value) VALUES (?, ?, ?)", rows)


def load_fingerprints(connection: sqlite3.Connection) -> Mapping[str, Fingerprint]:
    """All fingerprints by name."""
    found: dict[str, dict[str, str]] = {}
    for name, fact, value in connection.execute("SELECT name, fact, value FROM fingerprint"):
        found.setdefault(name, {})[fact] = value
    return {name: Fingerprint(facts=facts) for name, facts in found.items()}


def count_runs(path: Path) -> int:
    """How many runs a catalogue has; StudyError where it is missing, damaged or of another format."""
    with catalogue_errors(path.parent), open_for_reading(path.absolute()) as connection:
        (number,) = connection.execute("SELECT count(*) FROM run").fetchone()
    return int(number)


def load_runs(
    connection: sqlite3.Connection, *, metrics: Sequence[str] | None, series: bool | Collection[str], sessions: bool
) -> tuple[RunRecord, ...]:
    """All runs in order of their commit, with the measurements of those metrics only; None is all.

    No run is told to be near a ceiling that another one exceeded.

    `series`: those of the same metrics (True), none (False), or those of the metrics named. `sessions`: whether what
    sessions were seen doing, and what servers counted of their statements, is read too.
    """
    measured = _load_measurements(connection, *_metric_filter(metrics))
    named = metrics if isinstance(series, bool) else tuple(series)
    lines = _load_series(connection, *_metric_filter(named)) if series else {}
    profiles = _load_statements(connection)
    details = load_details(connection) if sessions else {}
    return drop_wrong_ceilings(
        [
            _read_run(
                row,
                measurements=tuple(measured.get(key, ())),
                series=tuple(lines.get(key, ())),
                statements=tuple(profiles.get(key, ())),
                **details.get(key, {}),
            )
            for key, *row in connection.execute(f"SELECT {_RUN_COLUMNS} FROM run ORDER BY id")
        ]
    )


def _read_run(row: Sequence[Any], **beside: Any) -> RunRecord:
    """A run from its row, and `beside` it what other tables hold."""
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
        dead_time=decode(dict[str, float], json.loads(dead_time)),
        together=together,
        **beside,
    )


def _metric_filter(metrics: Sequence[str] | None) -> tuple[str, tuple[str, ...]]:
    if metrics is None:
        return "", ()
    return f" WHERE metric IN ({', '.join('?' * len(metrics))})", tuple(metrics)


def _parse_reasons(text: str) -> tuple[Reason, ...]:
    """Former versions kept pairs of a code and a sentence."""
    kept = [dict(zip(("code", "text"), one, strict=True)) if isinstance(one, list) else one for one in json.loads(text)]
    return decode(tuple[Reason, ...], kept)


def _load_measurements(
    connection: sqlite3.Connection, wanted: str, names: tuple[str, ...]
) -> dict[int, list[Measurement]]:
    found: dict[int, list[Measurement]] = {}
    query = f"SELECT run, metric, value FROM measurement{wanted} ORDER BY run, position"
    for run, metric, value in connection.execute(query, names):
        # SQLite keeps a number that is none as NULL: such a measurement is none.
        if value is not None and math.isfinite(value):
            found.setdefault(run, []).append(Measurement(metric=metric, value=value))
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
