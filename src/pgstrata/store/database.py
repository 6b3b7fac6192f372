"""SQLite databases on this machine: opened to be written, or read beside a writer and where nothing can be written."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

from pgstrata.errors import PgstrataError
from pgstrata.system.files import save_for_all
from pgstrata.system.reading import open_regular
from pgstrata.system.users import UserIds, acting_as
from pgstrata.system.ways import as_owner, find_owner

_BUSY_SECONDS: Final = 5.0

Refuse = Callable[[Path], PgstrataError]
"""Makes the error for a file that cannot be used."""


class _Connection(sqlite3.Connection):
    """Root uses it as the user who could replace the files beside the database, which SQLite opens and removes."""

    owner: UserIds | None = None

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        with acting_as(self.owner):
            return super().execute(*arguments)

    def close(self) -> None:
        with acting_as(self.owner):
            super().close()


def connect(path: Path, refuse: Refuse) -> sqlite3.Connection:
    """A connection in autocommit mode; waits some seconds where another program holds the database."""
    _refuse_endless(path, refuse)
    owner = find_owner(path)
    with acting_as(owner):
        # lanes use it in turn, each in a thread of its own
        connection = sqlite3.connect(
            path, isolation_level=None, timeout=_BUSY_SECONDS, factory=_Connection, check_same_thread=False
        )
    connection.owner = owner
    return connection


@contextmanager
def reading(path: Path, refuse: Refuse, missing: Refuse) -> Iterator[sqlite3.Connection]:
    """A read-only connection that also works beside a writer, and in a folder that cannot be written.

    `missing` makes the error for a database that is not there.
    """
    connection = _connect_read_only(path, refuse, missing)
    with ExitStack() as stack:
        if connection is None:
            scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="pgstrata-"))
            connection = _connect_copy(path, Path(scratch))
        yield stack.enter_context(closing(connection))


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


def _refuse_endless(path: Path, refuse: Refuse) -> None:
    """SQLite would wait for ever for the other end of a pipe."""
    for file in (path, _log_of(path), path.with_name(f"{path.name}-shm")):
        if file.exists() and not file.is_file():
            raise refuse(file)


@as_owner
def _connect_read_only(path: Path, refuse: Refuse, missing: Refuse) -> sqlite3.Connection | None:
    """None: a writer was killed, and its log can only be replayed elsewhere."""
    if not path.exists():
        raise missing(path)
    _refuse_endless(path, refuse)
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_BUSY_SECONDS)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
            raise
        return _connect_immutable(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_immutable(path: Path) -> sqlite3.Connection | None:
    """SQLite needs a file beside a WAL database; without the right to make one, nobody else writes here either."""
    log = _log_of(path)
    if log.exists() and log.stat().st_size:
        return None
    return sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)


def _connect_copy(path: Path, scratch: Path) -> sqlite3.Connection:
    """The log of a killed writer, replayed in `scratch`: whoever may read the study need not be able to write there."""
    for file in (path, _log_of(path)):
        with open_regular(file) as stream:
            save_for_all(stream, scratch / file.name, executable=False)
    return sqlite3.connect(scratch / path.name)


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")
