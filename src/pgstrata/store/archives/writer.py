"""What a recorder writes: looks, rates, statements, events; kept in memory for seconds, then written at once."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from pgstrata.errors import ArchiveError
from pgstrata.model.archive import (
    GROUP_RATES,
    HOST_RATES,
    RELATION_FIELDS,
    SERVER_RATES,
    ArchiveEvent,
    Blocking,
    EventKind,
    Horizon,
    Relation,
    RelationUse,
    SessionClass,
    SessionsLook,
    StatementUse,
)
from pgstrata.model.query_plans import LivePlan, PlanSource, SeenPlan
from pgstrata.ports.recording import Counted
from pgstrata.store.archives.plans import write_plan
from pgstrata.store.archives.schema import ARCHIVE, UNKNOWN, ArchiveInUseError, archive_errors, open_archive
from pgstrata.store.archives.thinning import Keep, Thinning, count_free, roll_up, sum_up_again, thin
from pgstrata.store.database import transaction
from pgstrata.store.failures import is_disk_full
from pgstrata.store.lock import HeldLock
from pgstrata.system.files import make_folders, open_appending, remove_file, write_beside

LOCK: Final = "archive.lock"
RESERVE: Final = "reserve"
RESERVED: Final = 4 << 20
"""Bytes that are given back to a full disk, so that there is room to thin the archive."""
_MOST_WAITING: Final = 3600
"""Looks in memory for which there was no room on disk, and rows for each; older ones are dropped."""
_MOST_WAITING_USES: Final = 360
_MOST_WAITING_ROWS: Final = 4 * _MOST_WAITING
_MOST_KNOWN: Final = 50_000
"""Ids of statements and of classes that are kept in memory; others are looked up."""
_ENOUGH: Final = 1 << 20
"""Bytes that are free in the database, with which there is no need to thin it however full the disk is."""
_FINE: Final = 1000.0
_DIGITS: Final = 3


_Key = TypeVar("_Key")


@dataclass(slots=True)
class ArchiveWriter:
    """The archive in a folder, which it alone writes to until it is closed; `now` is in Unix seconds throughout."""

    folder: Path
    keep: Keep
    _lock: HeldLock
    _connection: sqlite3.Connection
    _statements: dict[str, int] = field(default_factory=dict)
    _classes: dict[SessionClass, int] = field(default_factory=dict)
    _waiting: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    _looks: list[tuple[int, SessionsLook]] = field(default_factory=list)
    _uses: list[tuple[int, Mapping[str, StatementUse]]] = field(default_factory=list)
    _texts: dict[str, str] = field(default_factory=dict)
    _plans: list[SeenPlan] = field(default_factory=list)
    _full: bool = False

    @classmethod
    def open(cls, folder: Path, keep: Keep) -> ArchiveWriter:
        """The archive of a folder, which is made if it is not there.

        Raises:
            ArchiveInUseError: another recorder is at work on it.
            ArchiveError: it is damaged, of a newer pgstrata, cannot be written, or others could write to its folder.
        """
        with archive_errors(folder):
            make_folders(folder, mode=0o700)
            _require_own(folder)
            lock = HeldLock(folder / LOCK, _taken, private=True)
            try:
                # SQLite gives the files beside it the same mode
                os.close(open_appending(folder / ARCHIVE, mode=0o600))
                connection = open_archive(folder / ARCHIVE)
                writer = cls(folder, keep, lock, connection)
                writer._keep_reserve()
            except BaseException:
                lock.release()
                raise
        return writer

    def _forget_ids(self) -> None:
        self._statements.clear()
        self._classes.clear()

    def claim(self, system: str) -> None:
        """ArchiveError where the archive is of another server than that with this system identifier."""
        known = dict(self._connection.execute("SELECT name, value FROM fact")).get("system", "")
        if system and known and system != known:
            raise ArchiveError(
                "the archive is of another server",
                where=str(self.folder),
                remedy="record each server into a folder of its own",
            )

    # ------------------------------------------------------------------------------------------- what is written

    def add_facts(self, facts: Mapping[str, str]) -> None:
        """Facts of the server and the recorder; they replace those of the same names."""
        for name, value in facts.items():
            self._put("INSERT OR REPLACE INTO fact VALUES (?, ?)", name, value)

    def add_event(self, event: ArchiveEvent) -> None:
        """Something that happened."""
        row = (event.moment, event.kind.value, event.detail, event.times)
        self._put("INSERT INTO event VALUES (?, ?, ?, ?)", *row)

    def add_look(self, moment: int, look: SessionsLook) -> None:
        """What sessions did at that second."""
        self._looks.append((moment, look))

    def add_server(self, moment: int, seconds: float, rates: Mapping[str, float]) -> None:
        """Rates of the server in the seconds before `moment`."""
        self._put_rates("server_second", SERVER_RATES, moment, seconds, rates)

    def add_host(self, moment: int, seconds: float, rates: Mapping[str, float]) -> None:
        """Rates of the server's host, and of the control group that it runs in."""
        self._put_rates("host_second", HOST_RATES, moment, seconds, rates)
        if not rates.keys().isdisjoint(GROUP_RATES):
            self._put_rates("group_second", GROUP_RATES, moment, seconds, rates)

    def add_counted(self, moment: int, counted: Counted) -> None:
        """What was counted of statements in the seconds before `moment`."""
        row = (moment, counted.seconds, _exact(counted.spent), int(counted.complete))
        self._put("INSERT OR REPLACE INTO statement_interval VALUES (?, ?, ?, ?)", *row)
        self._uses.append((moment, counted.uses))

    def add_relations(self, moment: int, seconds: float, uses: Mapping[Relation, RelationUse]) -> None:
        """What was counted of tables and indexes in the seconds before `moment`."""
        self._put("INSERT OR REPLACE INTO relation_interval VALUES (?, ?)", moment, round(seconds, _DIGITS))
        self._put("DELETE FROM relation_use WHERE moment = ?", moment)
        insert = (
            "INSERT OR REPLACE INTO relation_use SELECT ?, id"
            f"{', ?' * len(RELATION_FIELDS)} FROM relation WHERE name = ? AND on_table = ?"
        )
        for relation, use in uses.items():
            name = (relation.name, relation.table)
            self._put("INSERT OR IGNORE INTO relation (name, on_table) VALUES (?, ?)", *name)
            self._put(insert, moment, *(getattr(use, field) for field in RELATION_FIELDS), *name)

    def add_horizon(self, moment: int, horizon: Horizon) -> None:
        """What held back vacuum at that moment."""
        holder = horizon.holder
        row = (moment, holder.kind.value, holder.name, holder.pid, holder.state, horizon.age, horizon.held)
        self._put("INSERT OR REPLACE INTO horizon VALUES (?, ?, ?, ?, ?, ?, ?)", *row)

    def add_plan(
        self, moment: int, key: str, plan: LivePlan, source: PlanSource = PlanSource.GENERIC, times: int = 1
    ) -> None:
        """What the plan of a statement was at that moment; of executions in the second before, so many times."""
        self._plans.append(SeenPlan(statement=key, first=moment, last=moment, plan=plan, source=source, times=times))

    def add_texts(self, texts: Mapping[str, str]) -> None:
        """Normalised texts of statements by key."""
        self._texts |= texts

    def _put(self, statement: str, *values: Any) -> None:
        self._waiting.append((statement, values))

    def _put_rates(
        self, table: str, columns: tuple[str, ...], moment: int, seconds: float, rates: Mapping[str, float]
    ) -> None:
        places = ", ".join("?" * (len(columns) + 2))
        values = (_rounded(rates.get(column)) for column in columns)
        self._put(f"INSERT OR REPLACE INTO {table} VALUES ({places})", moment, round(seconds, _DIGITS), *values)

    # -------------------------------------------------------------------------------------------------- commits

    def flush(self, now: int) -> None:
        """Commit what was added; on a full disk the oldest is thinned first.

        Raises:
            DiskFullError: there is no room even then; what was added is kept in memory for the next time.
            ArchiveBusyError: another program writes to the database; the same.
        """
        with archive_errors(self.folder):
            try:
                self._commit()
            except sqlite3.Error as error:
                if not is_disk_full(error, self.folder):
                    raise
                self._make_room(now)
                self._commit()
                self._keep_reserve()
            else:
                self._full = False

    def _commit(self) -> None:
        try:
            with transaction(self._connection):
                if self._looks:
                    sum_up_again(self._connection, min(moment for moment, _ in self._looks))
                for statement, values in self._waiting:
                    self._connection.execute(statement, values)
                for moment, look in self._looks:
                    self._write_look(moment, look)
                for moment, uses in self._uses:
                    self._write_uses(moment, uses)
                for plan in self._plans:
                    write_plan(self._connection, self._number_statement(plan.statement), plan)
                for key, text in self._texts.items():
                    number = self._number_statement(key)
                    self._connection.execute("UPDATE statement SET text = ? WHERE id = ?", (text, number))
        except BaseException:
            # ids that were given in it are taken back
            self._forget_ids()
            del self._waiting[:-_MOST_WAITING_ROWS], self._looks[:-_MOST_WAITING], self._uses[:-_MOST_WAITING_USES]
            del self._plans[:-_MOST_WAITING]
            self._texts = dict(list(self._texts.items())[-_MOST_WAITING:])
            raise
        self._waiting, self._looks, self._uses, self._plans, self._texts = [], [], [], [], {}

    def _write_look(self, moment: int, look: SessionsLook) -> None:
        execute = self._connection.execute
        load = sum(number for session, number in look.counts.items() if session.is_load)
        # a second comes again where the clock was set back
        for table in ("session_second", "blocked_second"):
            execute(f"DELETE FROM {table} WHERE moment = ?", (moment,))
        execute("INSERT OR REPLACE INTO look_second VALUES (?, 1, ?)", (moment, load))
        for session, number in look.counts.items():
            row = (moment, self._number_class(session), number)
            execute("INSERT OR REPLACE INTO session_second VALUES (?, ?, ?)", row)
        for blocking, number in look.blocked.items():
            self._write_blocking(moment, blocking, number)

    def _write_blocking(self, moment: int, blocking: Blocking, number: int) -> None:
        root = UNKNOWN if blocking.root is None else self._number_class(blocking.root)
        row = (moment, self._number_class(blocking.waiting), root, blocking.pid, blocking.held, number)
        self._connection.execute("INSERT OR REPLACE INTO blocked_second VALUES (?, ?, ?, ?, ?, ?)", row)

    def _write_uses(self, moment: int, uses: Mapping[str, StatementUse]) -> None:
        self._connection.execute("DELETE FROM statement_use WHERE moment = ?", (moment,))
        for key, use in uses.items():
            row = (
                moment, self._number_statement(key), use.calls, _exact(use.seconds), use.rows, use.blocks_hit,
                use.blocks_read, use.wal_bytes,
            )  # fmt: skip
            self._connection.execute("INSERT OR REPLACE INTO statement_use VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def _number_statement(self, key: str) -> int:
        number = self._statements.get(key) if key else UNKNOWN
        if number is None:
            found = self._connection.execute("SELECT id FROM statement WHERE key = ?", (key,)).fetchone()
            if found is None:
                inserted = self._connection.execute("INSERT INTO statement (key, text) VALUES (?, '')", (key,))
                found = (inserted.lastrowid,)
            number = int(found[0])
            _remember(self._statements, key, number)
        return number

    def _number_class(self, session: SessionClass) -> int:
        number = self._classes.get(session)
        if number is not None:
            return number
        row = (
            session.kind, session.database, session.role, session.application, session.state, session.wait_type,
            session.event, self._number_statement(session.statement),
        )  # fmt: skip
        columns = "kind, database, role, application, state, wait_type, event, statement"
        places = " AND ".join(f"{column} = ?" for column in columns.split(", "))
        found = self._connection.execute(f"SELECT id FROM session_class WHERE {places}", row).fetchone()
        if found is None:
            insert = f"INSERT INTO session_class ({columns}, is_load) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            found = (self._connection.execute(insert, (*row, int(session.is_load))).lastrowid,)
        number = int(found[0])
        _remember(self._classes, session, number)
        return number

    # -------------------------------------------------------------------------------------------------- upkeep

    def tidy(self, now: int) -> Thinning | None:
        """Sum up minutes that have ended, and thin what is too old or too much; None where nothing was thinned."""
        with archive_errors(self.folder):
            if not self._full:
                self._keep_reserve()
            roll_up(self._connection, now)
            found = thin(self._connection, self.keep, now)
            if found is not None and found.forgot:
                self._forget_ids()
            return found

    def _make_room(self, now: int) -> None:
        """Give back the reserve, then thin at least a tenth, unless there is room in the database already."""
        if not self._full:
            self.add_event(ArchiveEvent(moment=now, kind=EventKind.FULL))
        self._full = True
        remove_file(self.folder / RESERVE)
        if count_free(self._connection) < _ENOUGH:
            roll_up(self._connection, now)
            thin(self._connection, self.keep, now, share=0.9)
        self._forget_ids()

    def _keep_reserve(self) -> None:
        path = self.folder / RESERVE
        if not path.exists() or path.stat().st_size < RESERVED:
            try:
                write_beside(path, bytes(RESERVED), mode=0o600)
            except OSError:
                return  # without room for a reserve there is none

    def close(self) -> None:
        """Let the archive go; what was not flushed is lost."""
        try:
            self._connection.close()
        finally:
            self._lock.release()


def _taken(path: Path, who: str) -> ArchiveInUseError:
    return ArchiveInUseError(
        f"another recorder writes to this archive ({who})",
        where=str(path.parent),
        remedy="stop it first, or record into another folder; `pgstrata explain` works meanwhile",
    )


def _require_own(folder: Path) -> None:
    """Whoever else may write there could put another file in the place of one of these."""
    facts = folder.stat()
    remedy = "give a folder that is not there yet: it is made for you alone"
    if facts.st_mode & stat.S_IWOTH:
        raise ArchiveError("other users may write to the folder of the archive", where=str(folder), remedy=remedy)
    if os.geteuid() and facts.st_uid not in {0, os.geteuid()}:
        raise ArchiveError("the folder of the archive belongs to another user", where=str(folder), remedy=remedy)


def _remember(known: dict[_Key, int], key: _Key, number: int) -> None:
    if len(known) >= _MOST_KNOWN:
        known.clear()
    known[key] = number


def _rounded(value: float | None) -> float | None:
    """Large rates as whole numbers, which take less room; small ones to a thousandth."""
    if value is None:
        return None
    return float(round(value)) if abs(value) >= _FINE else round(value, _DIGITS)


def _exact(seconds: float) -> float:
    return round(seconds, 6)
