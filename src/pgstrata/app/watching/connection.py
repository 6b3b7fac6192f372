"""A recorder's connection: what is asked by it, and the last answers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pgstrata.app.watching.host_feed import HostFeed, require_host
from pgstrata.app.watching.server import LiveServer, observe_server
from pgstrata.app.watching.ticker import Dues
from pgstrata.collectors.live.counters import VIEWS, counted_views, counters_statement, read_counters
from pgstrata.collectors.live.relations import RelationsReader, relations_period
from pgstrata.collectors.live.statements import StatementsReader
from pgstrata.errors import PgstrataError, SessionLostError, SqlError
from pgstrata.model.archive import COMMITS
from pgstrata.ports.session import ServerSession

_PATIENCE: Final = 5.0
"""Seconds after which a server that does not answer is given up; its own statement_timeout is shorter."""
_LONGEST_WAIT: Final = 30
"""Seconds between two attempts to connect."""
_REFUSED_WAIT: Final = 300
"""Seconds between attempts if the server refuses the recorder, so that failed logins do not lock its role."""
_REFUSED: Final = ("authentication failed", "pg_hba.conf", "does not exist", "not permitted to log in")
_MOST_OWED: Final = 50.0
"""The recorder's own transactions that may still be missing from what the server has counted: those of ten seconds."""
_NOT_PREPARED: Final = frozenset({"26000", "42P05", "0A000"})
"""SQLSTATEs of a prepared statement that is not there, is there already, or does not fit any more.

Behind a pooler that gives each transaction another session, all of them happen.
"""
_NOT_SHOWN: Final = ("0A", "42", "55000")
"""Beginnings of SQLSTATEs for views that a server never shows: a missing or refused function or column, no right."""
_LITTLE_TIME: Final = (
    "SELECT set_config('statement_timeout', '500ms', true) AS pgstrata, "
    "set_config('lock_timeout', '100ms', true) AS patience, "
    "EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolsuper "
    "AND pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER'))"
)
"""For a plan: nobody waits longer for its locks, and hardly any statement takes longer to be planned.

Also whether the role is a superuser or could become one: it may have been made one since it connected.
"""
_SUPERUSER: Final = b"\tt\n"


@dataclass(slots=True)
class Connected:
    """A connection, what is asked by it, and the last answers.

    `refused` are views of counters that the server does not show; `told` are the limits that were reported already.
    """

    session: ServerSession
    server: LiveServer
    feed: HostFeed | None
    refused: frozenset[str] = frozenset()
    told: tuple[str, ...] = ()
    asked: int = 0
    counters: Mapping[str, float] | None = None
    moment: float = 0.0
    statements: StatementsReader = field(default_factory=StatementsReader)
    counted: float = 0.0
    relations: RelationsReader = field(default_factory=RelationsReader)
    related: float = 0.0
    _owed: float = 0.0
    _prepared: set[str] = field(default_factory=set)
    _plain: bool = False

    @property
    def limits(self) -> tuple[str, ...]:
        """Codes of what is not seen by it."""
        log = "" if self.feed is None else self.feed.log_limit
        return self.server.limits(host=self.feed is not None, log=log, refused=sorted(self.refused))

    def observe_again(self) -> None:
        """Ask the server again what it is: rights, extensions and the role of a server change while it is recorded."""
        server = observe_server(self.session)
        self.asked += 2
        if server.said["sees_all"] != self.server.said["sees_all"]:
            self.refused = frozenset()
        self.server = server

    def count(self) -> Mapping[str, float]:
        """What the server has counted; views that it does not show are left out from then on.

        Managed servers refuse some functions, and a server that is newer than this pgstrata may lack a column.
        """
        version, was_plain = self.server.version, self._plain
        views = tuple(view for view in VIEWS if view not in self.refused)
        try:
            return read_counters(self.look(counters_statement(version, views)))
        except SqlError as error:
            if not error.sqlstate.startswith(_NOT_SHOWN):
                raise
            shown = tuple(view for view in counted_views(version) if view in views and self._shows(view))
            if not shown or set(shown) == set(views) & set(counted_views(version)):
                raise
        self._plain, self.refused = was_plain, frozenset(counted_views(version)) - frozenset(shown)
        return read_counters(self.look(counters_statement(version, shown)))

    def _shows(self, view: str) -> bool:
        try:
            self.rows(counters_statement(self.server.version, (view,)))
        except SqlError as error:
            if not error.sqlstate.startswith(_NOT_SHOWN):
                raise
            return False
        return True

    def without_own(self, rates: Mapping[str, float], seconds: float) -> Mapping[str, float]:
        """Rates of the server over some seconds, of transactions those that are not the recorder's own.

        Servers count a session's transactions up to some seconds late: what is missing of the recorder's own is
        taken from what is counted next.
        """
        own, self.asked, self._owed = self._owed + self.asked, 0, 0.0
        if (rate := rates.get(COMMITS)) is None:
            return rates
        self._owed = min(_MOST_OWED, max(0.0, own - rate * seconds))
        return {**rates, COMMITS: max(0.0, rate - own / seconds)}

    def forget(self) -> None:
        """Time has passed that nobody knows the length of: the next looks are the first."""
        self.counters = None
        self.statements.forget()
        self.relations.forget()

    def wants_relations(self, dues: Dues, soon: int, moment: int) -> bool:
        """Whether tables are due; the first two looks come soon, so that a short recording has an interval, too."""
        period = relations_period(int(self.server.said["catalogue"]))
        if period is None:
            return False
        early = dues.come("relations soon", soon, moment) and self.relations.looks < 2  # noqa: PLR2004
        return dues.come("relations", period, moment) or early

    def look(self, statement: str) -> bytes:
        """Ask what is asked again and again: the server prepares it once, where the connection allows it."""
        if self._plain:
            return self.rows(statement)
        # another recorder behind the same pooler prepares the same text by the same name
        name = f"pgstrata_{hashlib.sha256(statement.encode()).hexdigest()[:12]}"
        try:
            if name not in self._prepared:
                self.rows(f"PREPARE {name} AS\n{statement}")
                self._prepared.add(name)
            return self.rows(f"EXECUTE {name}")
        except SqlError as error:
            if error.sqlstate not in _NOT_PREPARED:
                raise
            self._plain = True
        return self.rows(statement)

    def explain(self, statement: str) -> bytes | None:
        """What a server says of a plan, in a transaction of its own with little time, for locks, too.

        None: the role is a superuser or could become one, so nothing was asked.
        """
        self.session.rows("BEGIN READ ONLY", timeout=_PATIENCE)
        said = None
        try:
            if not self.session.rows(_LITTLE_TIME, timeout=_PATIENCE).endswith(_SUPERUSER):
                self.session.rows("SAVEPOINT pgstrata", timeout=_PATIENCE)
                said = self.session.rows_of_text(statement, timeout=_PATIENCE)
                # settings that a function has changed while the statement was planned
                self.session.rows("ROLLBACK TO SAVEPOINT pgstrata", timeout=_PATIENCE)
        except SessionLostError:
            raise
        except PgstrataError:
            self.session.rows("ROLLBACK", timeout=_PATIENCE)
            raise
        self.session.rows("COMMIT", timeout=_PATIENCE)
        self.asked += 1
        return said

    def rows(self, statement: str) -> bytes:
        """Ask once; each statement is a transaction of the recorder's own, and counted as such."""
        self.asked += 1
        return self.session.rows(statement, timeout=_PATIENCE)


def find_feed(server: LiveServer, here: HostFeed, there: HostFeed | None) -> HostFeed | None:
    """The server's host; None where it is not seen.

    Args:
        server: that has answered.
        here: this machine.
        there: the machine that the user names; HostNotFitError where the server does not run on it.
    """
    backend = int(server.said["backend"])
    if there is not None:
        require_host(there, backend)
        return there
    return here if server.may_be_here and here.runs(backend) else None


@dataclass(slots=True)
class Absence:
    """The time without a connection: since when, when to try again, and what was told; by a clock that never jumps."""

    since: float = 0.0
    again: float = 0.0
    _wait: int = 1
    _told: str = ""

    @classmethod
    def begin(cls, now: float, why: str) -> Absence:
        """The connection was lost, which is told."""
        return cls(since=now, again=now + 1, _told=why)

    def last(self, now: float, error: PgstrataError) -> str:
        """It could not be opened again; what to say of it, empty where that was told or may soon be over."""
        refused = any(words in error.what for words in _REFUSED)
        self._wait = _REFUSED_WAIT if refused else min(_LONGEST_WAIT, 2 * self._wait)
        self.again = now + self._wait
        if self._wait < _LONGEST_WAIT or error.what == self._told:
            return ""
        self._told = error.what
        remedy = f" ({error.remedy})" if error.remedy else ""
        return f"still no connection: {error.what}; trying again every {self._wait} s{remedy}"
