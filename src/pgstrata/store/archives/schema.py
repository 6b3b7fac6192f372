"""The tables of an archive, and opening one. `docs/reference/archive.md` describes them for users' own tools."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pgstrata.errors import ArchiveError, DiskFullError, ExitCode
from pgstrata.model.archive import GROUP_RATES, HOST_RATES, RELATION_FIELDS, SERVER_RATES
from pgstrata.store.database import connect, reading
from pgstrata.store.failures import is_damage, is_disk_full
from pgstrata.system.files import is_full

ARCHIVE: Final = "archive.sqlite"
FORMAT: Final = 2
DETAILED: Final = "second"
COARSE: Final = "minute"
UNKNOWN: Final = 0
"""Stands for a statement that is not known, and for a head of a chain that was not seen."""


_LONGEST_ROW: Final = 1 << 20
_STEPS: Final = 100_000
_LEAST_WORK: Final = 200
"""Times `_STEPS` steps of SQLite's machine, which take less than a second."""
_WORK_PER_BYTE: Final = 100
"""Steps; a row has at least 8 bytes, takes about 30 steps, and is read a few times."""
_ENDLESS: Final = "reading it takes far longer than its size explains"
_WRITING: Final = ("journal_mode = WAL", "synchronous = NORMAL", "journal_size_limit = 4194304", "busy_timeout = 500")
"""Looks are more important than waiting for another program that writes: the next flush writes all the same."""


def _rates_table(name: str, columns: tuple[str, ...]) -> str:
    listed = ",\n".join(f"    {column} REAL" for column in columns)
    return f"CREATE TABLE {name} (\n    moment INTEGER PRIMARY KEY,\n    seconds REAL NOT NULL,\n{listed}\n) STRICT;\n"


def _sessions_tables(size: str) -> str:
    return f"""\
CREATE TABLE look_{size} (
    moment INTEGER PRIMARY KEY,
    looks INTEGER NOT NULL,
    load INTEGER NOT NULL
) STRICT;
CREATE TABLE session_{size} (
    moment INTEGER NOT NULL,
    class INTEGER NOT NULL,
    sessions INTEGER NOT NULL,
    PRIMARY KEY (moment, class)
) STRICT, WITHOUT ROWID;
CREATE TABLE blocked_{size} (
    moment INTEGER NOT NULL,
    class INTEGER NOT NULL,
    root INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    held INTEGER NOT NULL,
    sessions INTEGER NOT NULL,
    PRIMARY KEY (moment, class, root, pid)
) STRICT, WITHOUT ROWID;
{_rates_table(f"server_{size}", SERVER_RATES)}{_rates_table(f"host_{size}", HOST_RATES)}"""


_RELATION_COLUMNS: Final = ",\n".join(f"    {name} REAL NOT NULL" for name in RELATION_FIELDS)
_SCHEMA: Final = f"""\
CREATE TABLE fact (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE event (
    moment INTEGER NOT NULL,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL,
    times INTEGER NOT NULL
) STRICT;
CREATE INDEX event_moment ON event (moment);
CREATE TABLE statement (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL
) STRICT;
CREATE TABLE session_class (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    database TEXT NOT NULL,
    role TEXT NOT NULL,
    application TEXT NOT NULL,
    state TEXT NOT NULL,
    wait_type TEXT NOT NULL,
    event TEXT NOT NULL,
    statement INTEGER NOT NULL,
    is_load INTEGER NOT NULL,
    UNIQUE (kind, database, role, application, state, wait_type, event, statement)
) STRICT;
{_sessions_tables(DETAILED)}{_sessions_tables(COARSE)}CREATE TABLE statement_interval (
    moment INTEGER PRIMARY KEY,
    seconds REAL NOT NULL,
    spent REAL NOT NULL,
    complete INTEGER NOT NULL
) STRICT;
CREATE TABLE statement_use (
    moment INTEGER NOT NULL,
    statement INTEGER NOT NULL,
    calls REAL NOT NULL,
    seconds REAL NOT NULL,
    rows REAL NOT NULL,
    blocks_hit REAL NOT NULL,
    blocks_read REAL NOT NULL,
    wal_bytes REAL NOT NULL,
    PRIMARY KEY (moment, statement)
) STRICT, WITHOUT ROWID;
CREATE TABLE relation (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    on_table TEXT NOT NULL,
    UNIQUE (name, on_table)
) STRICT;
CREATE TABLE relation_interval (
    moment INTEGER PRIMARY KEY,
    seconds REAL NOT NULL
) STRICT;
CREATE TABLE relation_use (
    moment INTEGER NOT NULL,
    relation INTEGER NOT NULL,
{_RELATION_COLUMNS},
    PRIMARY KEY (moment, relation)
) STRICT, WITHOUT ROWID;
CREATE TABLE horizon (
    moment INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    pid INTEGER NOT NULL,
    state TEXT NOT NULL,
    age INTEGER NOT NULL,
    held INTEGER NOT NULL
) STRICT;
"""
_PLANS: Final = """\
CREATE TABLE plan (
    moment INTEGER NOT NULL,
    statement INTEGER NOT NULL,
    source TEXT NOT NULL,
    shape TEXT NOT NULL,
    until INTEGER NOT NULL,
    times INTEGER NOT NULL,
    outline TEXT NOT NULL,
    problem TEXT NOT NULL,
    PRIMARY KEY (moment, statement, source, shape)
) STRICT, WITHOUT ROWID"""
_PLANS_INDEX: Final = "CREATE INDEX plan_statement ON plan (statement, moment)"
_LATER: Final = {
    "plan": (_PLANS, _PLANS_INDEX),
    **{name: (_rates_table(name, GROUP_RATES).rstrip(";\n"),) for name in ("group_second", "group_minute")},
}
"""Tables that were added after the format, with their indexes; older archives get them when a recorder continues."""


def _unfit(path: Path) -> ArchiveError:
    return ArchiveError("this is not an ordinary file", where=str(path), remedy="give the folder of an archive")


def _missing(path: Path) -> ArchiveError:
    remedy = "give one that `pgstrata list` finds, or record one: pgstrata watch DSN --archive DIR"
    return ArchiveError("there is no archive in this folder", where=str(path.parent), remedy=remedy)


def open_archive(path: Path) -> sqlite3.Connection:
    """A connection for writing; the tables are made in a file that is new."""
    connection = connect(path, _unfit)
    try:
        if not connection.execute("PRAGMA user_version").fetchone()[0] and not _tables(connection):
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(f"BEGIN;{_SCHEMA}PRAGMA user_version = {FORMAT};COMMIT")
        if missing := _check(connection, path):
            made = ";".join(text for name in missing for text in _LATER[name])
            connection.executescript(f"BEGIN;{made};COMMIT")
        for pragma in _WRITING:
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def read_archive(folder: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection, also beside the recorder; what is read is of one moment."""
    path = folder / ARCHIVE
    with archive_errors(folder), reading(path.absolute(), _unfit, _missing) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_ROW)
        _limit_work(connection, path)
        for name in _check(connection, path):
            connection.execute(_LATER[name][0].replace("TABLE", "TEMP TABLE", 1))
        connection.execute("BEGIN")
        yield connection


def _limit_work(connection: sqlite3.Connection, path: Path) -> None:
    """A damaged tree may lead to the same pages again and again, for ever."""
    files = (path, path.with_name(f"{path.name}-wal"))
    size = sum(file.stat().st_size for file in files if file.exists())
    left = iter(range(_LEAST_WORK + size * _WORK_PER_BYTE // _STEPS))
    connection.set_progress_handler(lambda: next(left, None) is None, _STEPS)


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {text for (text,) in connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'table'")}


def _check(connection: sqlite3.Connection, path: Path) -> tuple[str, ...]:
    """Which of `_LATER` are missing; ArchiveError where another table is missing, or one differs."""
    (number,) = connection.execute("PRAGMA user_version").fetchone()
    if number > FORMAT:
        raise ArchiveError(
            f"the archive has format {number}, and this pgstrata knows formats up to {FORMAT}",
            where=str(path),
            remedy="use a newer pgstrata, or give another folder",
        )
    if 0 < number < FORMAT:
        raise ArchiveError(
            f"the archive has format {number} of an unreleased pgstrata, and this one knows format {FORMAT}",
            where=str(path),
            remedy="record into another folder; read this one with the pgstrata that recorded it",
        )
    indexes = (text for _, *texts in _LATER.values() for text in texts)
    wanted = {*filter(None, map(str.strip, _SCHEMA.split(";"))), *indexes}
    # a view in the place of a table might never end
    sound = _tables(connection).issuperset(each for each in wanted if each.startswith("CREATE TABLE"))
    query = "SELECT sql FROM sqlite_schema WHERE lower(name) = ?"
    later = {name: [text for (text,) in connection.execute(query, (name,))] for name in _LATER}
    if number < 1 or not sound or any(texts not in ([], [_LATER[name][0]]) for name, texts in later.items()):
        raise _damaged(path.parent, "a table is missing or has other columns")
    query = "SELECT type, name, sql FROM sqlite_schema WHERE type <> 'table' AND sql IS NOT NULL"
    for kind, name, text in connection.execute(query):
        if text not in wanted:
            raise ArchiveError(
                f"the archive has a {kind} that no recorder has made: {name!r}",
                where=str(path),
                remedy="drop it; what you add belongs into a database of your own, to which you attach this one",
            )
    return tuple(name for name, texts in later.items() if not texts)


@contextmanager
def archive_errors(folder: Path) -> Iterator[None]:
    """Turn errors of the file system and of SQLite into errors that a user can act on."""
    try:
        yield
    except ImplausibleError as error:
        raise _damaged(folder, str(error)) from error
    except sqlite3.Error as error:
        if is_disk_full(error, folder):
            raise full(folder) from error
        if is_damage(error) or _is_forged(error):
            why = _ENDLESS if str(error) == "interrupted" else str(error)
            raise _damaged(folder, why) from error
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            what, remedy = "another program writes to the archive", "close it; programs that only read may stay open"
            raise ArchiveBusyError(what, where=str(folder / ARCHIVE), remedy=remedy) from error
        remedy = f"check owner and permissions of {folder}, and whether another program has the database open"
        raise ArchiveError(f"the archive cannot be used: {error}", where=str(folder), remedy=remedy) from error
    except OSError as error:
        if is_full(error):
            raise full(folder) from error
        what = f"the archive cannot be used: {error.strerror or error}"
        raise ArchiveError(what, where=str(error.filename or folder), remedy="check the path and its owner") from error


class ImplausibleError(Exception):
    """What no recorder has written, such as a negative number of sessions."""


def _is_forged(error: sqlite3.Error) -> bool:
    """A row that is too long, a sum that overflows, a text that is none, or a scan without an end."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
    words = ("integer overflow", "Could not decode", "string or blob too big")
    return code in {sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_TOOBIG} or str(error).startswith(words)


def full(folder: Path) -> DiskFullError:
    """The error for a full disk."""
    return DiskFullError("the file system of the archive is full", where=str(folder), remedy="free some space")


def _damaged(folder: Path, why: str) -> ArchiveError:
    return ArchiveError(
        f"the archive is damaged ({why})",
        where=str(folder / ARCHIVE),
        remedy="move it away and record a new one; `sqlite3 archive.sqlite .recover` may save its rows",
    )


class ArchiveBusyError(ArchiveError):
    """Another program holds the database, such as a client of SQLite in a transaction."""


class ArchiveInUseError(ArchiveError):
    """Another recorder writes to the archive."""

    exit_code = ExitCode.HOST_NOT_FIT
