"""The recorder at work: a look each second, statements each ten, whatever becomes of connection and server."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from pgstrata.app.watching.followers import Followers
from pgstrata.app.watching.server import LiveServer, observe_server
from pgstrata.app.watching.ticker import Ticker
from pgstrata.collectors.live.counters import (
    counters_period,
    counters_statement,
    read_counters,
    reset_views,
    server_rates,
)
from pgstrata.collectors.live.host import FILES, HostReader
from pgstrata.collectors.live.sessions import SessionsReader, sessions_statement
from pgstrata.collectors.live.statements import (
    IDENTITIES_SINCE,
    OWN,
    REST,
    StatementsReader,
    counts_statement,
    keep_largest,
    key_of,
    read_texts,
    resets_statement,
    running_statement,
    texts_statement,
)
from pgstrata.errors import ArchiveError, DiskFullError, ParseError, PgstrataError, SessionLostError, SqlError
from pgstrata.model.archive import ArchiveEvent, EventKind, SessionsLook
from pgstrata.model.incidents import Incident
from pgstrata.ports.host import Host
from pgstrata.ports.recording import Counted, Follower, RecordedSecond
from pgstrata.ports.session import ServerSession
from pgstrata.store.archives.writer import ArchiveWriter

STATEMENTS: Final = 10
"""Seconds between two looks at pg_stat_statements."""
_FLUSH: Final = 5
"""Seconds of which a kill loses the last at most."""
_TIDY: Final = 60
_PATIENCE: Final = 5.0
"""Seconds after which a server that does not answer is given up; its own statement_timeout is shorter."""
_LONGEST_WAIT: Final = 30
"""Seconds between two attempts to connect."""
_MOST_TEXTS: Final = 200
_COMMITS: Final = "commits"

Connect = Callable[[], ServerSession]
Tell = Callable[[str], None]


@dataclass(slots=True)
class Connected:
    """A connection, what is asked by it, and the last answers."""

    session: ServerSession
    server: LiveServer
    host: bool
    asked: int = 0
    counters: Mapping[str, float] | None = None
    moment: float = 0.0
    statements: StatementsReader = field(default_factory=StatementsReader)
    counted: float = 0.0

    prepared: dict[str, str] = field(default_factory=dict)

    def look(self, statement: str) -> bytes:
        """Ask what is asked again and again: the server prepares it once."""
        name = self.prepared.get(statement)
        if name is None:
            name = f"look_{len(self.prepared) + 1}"
            self.rows(f"PREPARE {name} AS\n{statement}")
            self.prepared[statement] = name
        return self.rows(f"EXECUTE {name}")

    def rows(self, statement: str) -> bytes:
        """Ask once; each statement is a transaction of the recorder's own, and counted as such."""
        self.asked += 1
        return self.session.rows(statement, timeout=_PATIENCE)


@dataclass(slots=True)
class Recorder:
    """Records into an archive until its time is over or it is interrupted.

    Args:
        connect: opens a connection; SqlError where that fails.
        here: this machine, whose counters are read where the server runs on it.
        archive: written to by nobody else.
        ticker: its seconds.
        tell: says what happens, to whoever watches the recorder.
        query_text: whether texts of statements are kept.
        followers: are told what is recorded.
    """

    connect: Connect
    here: Host
    archive: ArchiveWriter
    ticker: Ticker
    tell: Tell
    query_text: bool = True
    followers: tuple[Follower, ...] = ()
    looks: int = 0
    _connected: Connected | None = None
    _lost_since: float = 0.0
    _next_try: float = 0.0
    _wait: int = 1
    _started: float = 0.0
    _sessions: SessionsReader = field(default_factory=SessionsReader)
    _host: HostReader = field(default_factory=HostReader)
    _identities: dict[str, str] = field(default_factory=dict)
    _wanted: set[str] = field(default_factory=set)
    _here: bool = False
    _full: bool = False
    _failing: bool = False
    _second: RecordedSecond = field(default_factory=lambda: RecordedSecond(moment=0))
    _followers: Followers = field(init=False)

    def __post_init__(self) -> None:
        self._followers = Followers(self.followers, self.tell)

    def begin(self) -> LiveServer:
        """Connect for the first time; PgstrataError where that is not possible."""
        connected = self._open()
        self._event(EventKind.STARTED, connected.server.said["version"])
        return connected.server

    @property
    def limits(self) -> tuple[str, ...]:
        """Codes of what is not seen by the present connection."""
        return self._connected.server.limits(host=self._connected.host) if self._connected else ()

    def alarm(self, incident: Incident | None) -> None:
        """Tell all followers of an incident, as `Follower.alarm`; for the one that looks for them."""
        self._followers.alarm(incident)

    @property
    def psql(self) -> int | None:
        """The process that holds the present connection; other threads may ask."""
        connected = self._connected
        return connected.session.pid if connected else None

    def run(self, seconds: float | None) -> None:
        """Record for so long; None is for ever. The archive has everything at the end."""
        end = None if seconds is None else self.ticker.now() + seconds
        try:
            while end is None or self.ticker.now() < end:
                self.step(self.ticker.wait())
        finally:
            now = int(self.ticker.now())
            self._event(EventKind.STOPPED)
            self._save(now)
            self._tidy(now)
            if self._connected is not None:
                self._connected.session.close()
            self._followers.close()

    def step(self, moment: int) -> None:
        """What is due at a second."""
        if step := self.ticker.stepped():
            self._event(EventKind.CLOCK, f"{step:+.0f} s")
        begun = self.ticker.now()
        self._second = RecordedSecond(moment=moment)
        self._look_at_host(moment)
        try:
            if self._connected is None:
                self._try_again(moment)
            else:
                self._look(self._connected, moment)
        except SessionLostError as error:
            self._lose(error)
        except (SqlError, ParseError) as error:
            if not self._failing:
                self._event(EventKind.MISSED, error.what)
                self.tell(f"the server did not answer as expected: {error.what}")
            self._failing = True
        self._followers.follow(replace(self._second, took=self.ticker.now() - begun))
        if moment % _FLUSH == 0:
            self._save(moment)
        if moment % _TIDY == 0:
            self._tidy(moment)

    # -------------------------------------------------------------------------------------------- connection

    def _open(self) -> Connected:
        session = self.connect()
        try:
            server = observe_server(session)
            self.archive.claim(server.system)
        except BaseException:
            session.close()
            raise
        host = self._here = server.may_be_here and self._runs_here(server.said["backend"])
        facts = {**server.facts(host=host), "query_text": str(int(self.query_text))}
        self.archive.add_facts(facts)
        self._connected = Connected(session=session, server=server, host=host)
        self._followers.begin(facts, self.limits)
        self._started = server.started
        self._failing = False
        return self._connected

    def _runs_here(self, backend: str) -> bool:
        path = f"/proc/{int(backend)}/cmdline"
        return b"postgres" in self.here.read_files((path,)).get(path, b"")

    def _lose(self, error: PgstrataError) -> None:
        assert self._connected is not None
        self._connected.session.close()
        self._connected = None
        self._lost_since, self._wait = self.ticker.now(), 1
        self._next_try = self._lost_since + self._wait
        self._event(EventKind.LOST, error.what)
        self.tell(f"connection lost: {error.what}; trying again")

    def _try_again(self, moment: int) -> None:
        if moment < self._next_try:
            return
        before = self._started
        try:
            connected = self._open()
        except PgstrataError as error:
            if isinstance(error, ArchiveError):
                raise
            self._wait = min(_LONGEST_WAIT, 2 * self._wait)
            self._next_try = self.ticker.now() + self._wait
            return
        away = self.ticker.now() - self._lost_since
        restarted = abs(connected.server.started - before) > 1
        self._event(EventKind.RESTARTED if restarted else EventKind.CONNECTED, connected.server.said["version"])
        self.tell(f"{'the server was restarted; ' if restarted else ''}connected again after {away:.0f} s")

    # ------------------------------------------------------------------------------------------------- looks

    def _look(self, connected: Connected, moment: int) -> None:
        server = connected.server
        look = self._sessions.read(connected.look(sessions_statement(server.version)))
        self.archive.add_look(moment, look)
        self._second = replace(self._second, look=look)
        self.looks += 1
        self._failing = False
        self._note_texts(look)
        if moment % counters_period(server.version, int(server.said["catalogue"])) == 0:
            self._count(connected, moment)
        if moment % STATEMENTS == 0:
            if server.counts_statements:
                self._count_statements(connected, moment)
            self._ask_texts(connected, set())

    def _note_texts(self, look: SessionsLook) -> None:
        """Texts that sessions told themselves are kept at once, others are asked for later."""
        if not self.query_text:
            self._sessions.texts.clear()
            return
        if self._sessions.texts:
            self._add_texts(dict(self._sessions.texts))
            self._identities |= dict.fromkeys(self._sessions.texts, "")
            self._sessions.texts.clear()
        self._wanted.update(
            session.statement
            for session in look.counts
            if session.statement and session.statement not in self._identities
        )

    def _count(self, connected: Connected, moment: int) -> None:
        now = read_counters(connected.look(counters_statement(connected.server.version)))
        taken, before = self.ticker.now(), connected.counters
        seconds, own = taken - connected.moment, connected.asked
        connected.counters, connected.moment, connected.asked = now, taken, 0
        if before is None or seconds <= 0:
            return
        if views := reset_views(before, now):
            self._event(EventKind.RESET, ", ".join(views))
        rates = dict(server_rates(before, now, seconds))
        if _COMMITS in rates:
            rates[_COMMITS] = max(0.0, rates[_COMMITS] - own / seconds)
        self.archive.add_server(moment, seconds, rates)
        self._second = replace(self._second, server=rates, server_seconds=seconds)

    def _count_statements(self, connected: Connected, moment: int) -> None:
        server, schema = connected.server, connected.server.said["counting"]
        counts = connected.look(counts_statement(server.version, schema))
        found = connected.statements.read(counts, connected.look(resets_statement(server.version, schema)))
        taken, before = self.ticker.now(), connected.counted
        connected.counted = taken
        if found is None:
            return
        others = {identity: use for identity, use in found.uses.items() if not self._is_own(identity)}
        kept = keep_largest(others)
        self._ask_texts(connected, {identity for identity in kept if identity != REST})
        kept = {identity: use for identity, use in kept.items() if not self._is_own(identity)}
        keyed = {
            key_of(identity, self._identities.get(identity, ""), server.version): use for identity, use in kept.items()
        }
        if not found.complete:
            self._event(EventKind.EVICTED)
        spent = math.fsum(use.seconds for use in kept.values())
        counted = Counted(seconds=taken - before, spent=spent, uses=keyed, complete=found.complete)
        self.archive.add_counted(moment, counted)
        self._second = replace(self._second, counted=counted)

    def _is_own(self, identity: str) -> bool:
        return OWN in self._identities.get(identity, "")

    def _ask_texts(self, connected: Connected, identities: set[str]) -> None:
        """Texts of statements that have none yet; asked for once, whether the server has them or not."""
        self._wanted |= identities
        unknown = sorted(identity for identity in self._wanted if identity not in self._identities)[:_MOST_TEXTS]
        self._wanted.clear()
        asked = [identity for identity in unknown if identity.lstrip("-").isdecimal()]
        if not asked:
            return
        server = connected.server
        found: dict[str, str] = {}
        if server.counts_statements:
            found |= read_texts(connected.rows(texts_statement(asked, server.said["counting"])))
        running = [identity for identity in asked if identity not in found]
        if running and server.version >= IDENTITIES_SINCE:
            found |= read_texts(connected.rows(running_statement(running)))
        self._identities |= {identity: found.get(identity, "") for identity in asked}
        if self.query_text:
            texts = {
                key_of(identity, text, server.version): text for identity, text in found.items() if OWN not in text
            }
            self._add_texts(texts)

    def _add_texts(self, texts: Mapping[str, str]) -> None:
        self.archive.add_texts(texts)
        self._followers.learn(texts)

    def _look_at_host(self, moment: int) -> None:
        if not self._here:
            return
        before = self.ticker.clock.monotonic()
        rates = self._host.read(self.here.read_files(FILES), before)
        if rates:
            self.archive.add_host(moment, 1.0, rates)
            self._second = replace(self._second, host=rates)

    # ----------------------------------------------------------------------------------------------- archive

    def _event(self, kind: EventKind, detail: str = "") -> None:
        event = ArchiveEvent(moment=int(self.ticker.now()), kind=kind, detail=detail)
        self.archive.add_event(event)
        self._followers.note(event)

    def _save(self, moment: int) -> None:
        try:
            self.archive.flush(moment)
        except DiskFullError as error:
            if not self._full:
                self.tell(f"{error.what}: new records are kept in memory for a while; free some space")
            self._full = True
        else:
            self._full = False
            self._followers.saved(moment)

    def _tidy(self, moment: int) -> None:
        with suppress(DiskFullError):
            found = self.archive.tidy(moment)
            if found is not None and found.by_size:
                self._event(EventKind.THINNED)
                self.tell("the archive has reached its size limit: its oldest records were thinned")
