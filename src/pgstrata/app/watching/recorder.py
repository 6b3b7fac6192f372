"""The recorder at work: a look each second, statements each ten, whatever becomes of connection and server."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Final

from pgstrata.app.watching.connection import Absence, Connected, find_feed
from pgstrata.app.watching.followers import Followers
from pgstrata.app.watching.host_feed import HostFeed
from pgstrata.app.watching.parts import Part, Parts
from pgstrata.app.watching.plans import EVERY, PlansAsker
from pgstrata.app.watching.server import LiveServer, compare_servers, observe_server
from pgstrata.app.watching.ticker import Dues, Ticker
from pgstrata.collectors.live.counters import counters_period, reset_views, server_rates
from pgstrata.collectors.live.horizon import horizon_statement, read_horizon
from pgstrata.collectors.live.log import LOG_RIGHT, log_statement, read_log_place
from pgstrata.collectors.live.relations import keep_busiest, relations_statement
from pgstrata.collectors.live.sessions import SessionsReader, sessions_statement
from pgstrata.collectors.live.statements import (
    IDENTITIES_SINCE,
    by_key,
    counts_statement,
    is_own,
    is_own_use,
    keep_largest,
    key_of,
    read_texts,
    resets_statement,
    running_statement,
    texts_statement,
)
from pgstrata.errors import ArchiveError, DiskFullError, HostNotFitError, PgstrataError, SessionLostError
from pgstrata.model.archive import COUNTING, REST, ArchiveEvent, EventKind, SessionsLook, StatementUse
from pgstrata.model.incidents import Incident
from pgstrata.ports.recording import Counted, Follower, RecordedSecond
from pgstrata.ports.session import ServerSession
from pgstrata.report.live.limits import say_limits
from pgstrata.store.archives.schema import ArchiveBusyError
from pgstrata.store.archives.writer import ArchiveWriter

STATEMENTS: Final = 10
"""Seconds between two looks at pg_stat_statements."""
_FLUSH: Final = 5
"""Seconds of which a kill loses the last at most."""
_TIDY: Final = 60
_MOST_TEXTS: Final = 200
_MOST_KNOWN: Final = 20_000
"""Statements whose texts are remembered."""

Connect = Callable[[], ServerSession]
Tell = Callable[[str], None]


@dataclass(slots=True)
class Recorder:
    """Records into an archive until its time is over or it is interrupted.

    Args:
        connect: opens a connection; SqlError where that fails.
        here: this machine, whose counters and log are read where the server runs on it.
        archive: written to by nobody else.
        ticker: its seconds.
        tell: says what happens, to whoever watches the recorder.
        query_text: whether texts of statements are kept.
        followers: are told what is recorded.
        there: the machine on which the server runs, where it is another one.
        plans: asks for plans of statements; None: nobody does.
        unsaved_since: Unix seconds from which on records are in memory alone; None: all are written.
    """

    connect: Connect
    here: HostFeed
    archive: ArchiveWriter
    ticker: Ticker
    tell: Tell
    query_text: bool = True
    followers: tuple[Follower, ...] = ()
    there: HostFeed | None = None
    plans: PlansAsker | None = None
    looks: int = 0
    unsaved_since: int | None = None
    _connected: Connected | None = None
    _absence: Absence = field(default_factory=Absence)
    _server: LiveServer | None = None
    _sessions: SessionsReader = field(default_factory=SessionsReader)
    _identities: dict[str, str] = field(default_factory=dict)
    _wanted: set[str] = field(default_factory=set)
    _feed: HostFeed | None = None
    _second: RecordedSecond = field(default_factory=lambda: RecordedSecond(moment=0))
    _dues: Dues = field(default_factory=Dues)
    _parts: Parts = field(init=False)
    _followers: Followers = field(init=False)

    def __post_init__(self) -> None:
        self._followers = Followers(self.followers, self.tell)
        self._parts = Parts(self.ticker.passed, self._miss)

    def begin(self) -> LiveServer:
        """Connect for the first time; PgstrataError where that is not possible."""
        connected = self._open()
        self._event(EventKind.STARTED, connected.server.said["version"])
        return connected.server

    @property
    def limits(self) -> tuple[str, ...]:
        """Codes of what is not seen by the present connection."""
        return self._connected.limits if self._connected else ()

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
        end = None if seconds is None else self.ticker.passed() + seconds
        try:
            while end is None or self.ticker.passed() < end:
                self.step(self.ticker.wait())
        finally:
            with ExitStack() as ending:
                ending.callback(self._followers.close)
                if self._connected is not None:
                    ending.callback(self._connected.session.close)
                now = int(self.ticker.now())
                self._event(EventKind.STOPPED)
                self._save(now)
                self._tidy(now)

    def step(self, moment: int) -> None:
        """What is due at a second."""
        if step := self.ticker.stepped():
            self._event(EventKind.CLOCK, f"{step:+.0f} s")
            if step > 0 and self._connected is not None:
                self._connected.forget()
        begun = self.ticker.passed()
        self._second = RecordedSecond(moment=moment)
        self._parts.attempt(Part.HOST, lambda: self._look_at_host(moment))
        try:
            if self._connected is None:
                self._try_again()
            else:
                self._look(self._connected, moment)
        except SessionLostError as error:
            self._lose(error)
        self._followers.follow(replace(self._second, took=self.ticker.passed() - begun))
        if self._dues.come("save", _FLUSH, moment):
            self._save(moment)
        if self._dues.come("tidy", _TIDY, moment):
            self._tidy(moment)

    def _miss(self, part: Part, why: str, remedy: str) -> None:
        if not self.query_text:
            why = why.partition(": ")[0]  # an answer of an unknown shape is quoted
        self._event(EventKind.MISSED, f"{part}: {why}")
        self.tell(f"{part} could not be read: {why}; this is tried again{f' ({remedy})' if remedy else ''}")

    def _open(self) -> Connected:
        session = self.connect()
        try:
            server = observe_server(session)
            self.archive.claim(server.system)
            self._feed = find_feed(server, self.here, self.there)
        except BaseException:
            session.close()
            raise
        self._connected = Connected(session=session, server=server, feed=self._feed)
        self._parts.attempt(Part.LOG, lambda: self._aim(self._connected))
        self._followers.begin(self._add_facts(self._connected), self.limits)
        self._server = server
        return self._connected

    def _aim(self, connected: Connected | None) -> None:
        """Ask the server where its log is; it may have begun another one."""
        if connected is not None and self._feed is not None:
            named = connected.look(LOG_RIGHT).strip() == b"t"
            self._feed.aim(read_log_place(connected.look(log_statement(named=named))))

    def _add_facts(self, connected: Connected) -> Mapping[str, str]:
        connected.told = connected.limits
        facts = {**connected.server.facts(connected.told), "query_text": str(int(self.query_text))}
        self.archive.add_facts(facts)
        return facts

    def _lose(self, error: PgstrataError) -> None:
        assert self._connected is not None
        self._connected.session.close()
        self._connected = None
        self._absence = Absence.begin(self.ticker.passed(), error.what)
        self._event(EventKind.LOST, error.what)
        self.tell(f"connection lost: {error.what}; trying again")

    def _try_again(self) -> None:
        """ArchiveError, HostNotFitError: what answers now is not what was recorded, or must not be."""
        if self.ticker.passed() < self._absence.again:
            return
        before = self._server
        try:
            connected = self._open()
        except PgstrataError as error:
            if isinstance(error, (ArchiveError, HostNotFitError)) and not isinstance(error, DiskFullError):
                raise
            if said := self._absence.last(self.ticker.passed(), error):
                self.tell(said)
            return
        away = self.ticker.passed() - self._absence.since
        restarted, said = compare_servers(before, connected.server)
        self._event(EventKind.RESTARTED if restarted else EventKind.CONNECTED, connected.server.said["version"])
        self.tell(f"{said}connected again after {away:.0f} s")

    # ------------------------------------------------------------------------------------------------- looks

    def _look(self, connected: Connected, moment: int) -> None:
        attempt = self._parts.attempt
        if self._dues.come("server", _TIDY, moment):
            attempt(Part.SERVER, lambda: self._observe_again(connected))
        server = connected.server
        attempt(Part.SESSIONS, lambda: self._look_at_sessions(connected, moment))
        if self._dues.come("counters", counters_period(server.version, int(server.said["catalogue"])), moment):
            attempt(Part.COUNTERS, lambda: self._count(connected, moment))
        if self._dues.come("statements", STATEMENTS, moment):
            if server.counts_statements:
                attempt(Part.STATEMENTS, lambda: self._count_statements(connected, moment))
            attempt(Part.TEXTS, lambda: self._ask_texts(connected, set()))
            attempt(Part.HORIZON, lambda: self._look_at_horizon(connected, moment))
        if connected.wants_relations(self._dues, STATEMENTS, moment):
            attempt(Part.RELATIONS, lambda: self._count_relations(connected, moment))
        if self.plans is not None and self._dues.come("plans", EVERY, moment):
            attempt(Part.PLANS, partial(self.plans.ask, connected, moment))

    def _observe_again(self, connected: Connected) -> None:
        """Rights, extensions and the role of a server change while it is recorded."""
        before = connected.told
        self._parts.attempt(Part.LOG, lambda: self._aim(connected))
        connected.observe_again()
        self._server = connected.server
        if connected.limits != before:
            self._followers.begin(self._add_facts(connected), connected.told)
            for text in say_limits(code for code in connected.told if code not in before):
                self.tell(f"note: {text}")

    def _look_at_sessions(self, connected: Connected, moment: int) -> None:
        look = self._sessions.read(connected.look(sessions_statement(connected.server.version)))
        self.archive.add_look(moment, look)
        self._second = replace(self._second, look=look)
        self.looks += 1
        self._note_texts(look)

    def _look_at_horizon(self, connected: Connected, moment: int) -> None:
        if (horizon := read_horizon(connected.look(horizon_statement()))) is not None:
            self.archive.add_horizon(moment, horizon)

    def _count_relations(self, connected: Connected, moment: int) -> None:
        found = connected.relations.read(connected.look(relations_statement()))
        taken, before = self.ticker.passed(), connected.related
        connected.related = taken
        if found is not None:
            self.archive.add_relations(moment, taken - before, keep_busiest(found))

    def _note_texts(self, look: SessionsLook) -> None:
        """Texts that sessions told themselves are kept at once, others are asked for later."""
        if not self.query_text:
            self._sessions.texts.clear()
            return
        if self._sessions.texts:
            self._add_texts(dict(self._sessions.texts))
            self._identities |= dict.fromkeys(self._sessions.texts, "")
            self._sessions.texts.clear()
        if len(self._wanted) < _MOST_KNOWN:
            self._wanted.update(
                session.statement
                for session in look.counts
                if session.statement and session.statement not in self._identities
            )

    def _count(self, connected: Connected, moment: int) -> None:
        now = connected.count()
        taken, before = self.ticker.passed(), connected.counters
        seconds = taken - connected.moment
        connected.counters, connected.moment = now, taken
        if before is None or seconds <= 0:
            connected.asked = 0
            return
        if views := reset_views(before, now):
            self._event(EventKind.RESET, ", ".join(views))
        rates = connected.without_own(server_rates(before, now, seconds), seconds)
        self.archive.add_server(moment, seconds, rates)
        self._second = replace(self._second, server=rates, server_seconds=seconds)

    def _count_statements(self, connected: Connected, moment: int) -> None:
        server, schema = connected.server, connected.server.said["counting"]
        counts = connected.look(counts_statement(server.version, schema))
        found = connected.statements.read(counts, connected.look(resets_statement(server.version, schema)))
        taken, before = self.ticker.passed(), connected.counted
        connected.counted = taken
        if found is None:
            return
        others = {identity: use for identity, use in found.uses.items() if not self._is_own(identity, use)}
        kept = keep_largest(others)
        named = {identity for identity in kept if identity != REST}
        self._parts.attempt(Part.TEXTS, lambda: self._ask_texts(connected, named))
        kept = {identity: use for identity, use in kept.items() if not self._is_own(identity, use)}
        keyed = by_key(kept, self._identities, server.version)
        if not found.complete:
            kind, detail = (EventKind.RESET, COUNTING) if found.reset else (EventKind.EVICTED, "")
            self._event(kind, detail)
        spent = math.fsum(use.seconds for use in kept.values())
        if self.plans is not None:
            self.plans.rank(kept)
        counted = Counted(seconds=taken - before, spent=spent, uses=keyed, complete=found.complete)
        self.archive.add_counted(moment, counted)
        self._second = replace(self._second, counted=counted)

    def _is_own(self, identity: str, use: StatementUse) -> bool:
        return is_own_use(self._identities.get(identity, ""), use)

    def _ask_texts(self, connected: Connected, identities: set[str]) -> None:
        """Texts of statements that have none yet; asked for once, whether the server has them or not."""
        if len(self._identities) > _MOST_KNOWN:
            self._identities.clear()
        wanted = (*sorted(identities), *sorted(self._wanted - identities))
        self._wanted.clear()
        unknown = (each for each in wanted if each not in self._identities and each.lstrip("-").isdecimal())
        asked = list(islice(unknown, _MOST_TEXTS))
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
                key_of(identity, text, server.version): text for identity, text in found.items() if not is_own(text)
            }
            self._add_texts(texts)

    def _add_texts(self, texts: Mapping[str, str]) -> None:
        self.archive.add_texts(texts)
        self._followers.learn(texts)

    def _look_at_host(self, moment: int) -> None:
        if self._feed is None:
            return
        found = self._feed.read(moment)
        for event in found.events:
            self.archive.add_event(event)
            self._followers.note(event)
        if self.plans is not None:
            self.plans.keep_logged(moment, found.plans)
        if found.rates:
            self.archive.add_host(moment, found.seconds, found.rates)
            self._second = replace(self._second, host=found.rates, host_seconds=found.seconds)

    # ----------------------------------------------------------------------------------------------- archive

    def _event(self, kind: EventKind, detail: str = "") -> None:
        event = ArchiveEvent(moment=int(self.ticker.now()), kind=kind, detail=detail)
        self.archive.add_event(event)
        self._followers.note(event)

    def _save(self, moment: int) -> None:
        try:
            self.archive.flush(moment)
        except (DiskFullError, ArchiveBusyError) as error:
            if self.unsaved_since is None:
                self.tell(f"{error.what}: new records are kept in memory for a while; {error.remedy}")
                self.unsaved_since = moment - _FLUSH
        else:
            self.unsaved_since = None
            self._followers.saved(moment)

    def _tidy(self, moment: int) -> None:
        with suppress(DiskFullError, ArchiveBusyError):
            found = self.archive.tidy(moment)
            if found is not None and found.forgot:
                # texts that are gone from the archive have to be learnt again
                self._identities.clear()
                self._sessions.forget()
            if found is not None and found.by_size:
                self._event(EventKind.THINNED)
                self.tell("the archive has reached its size limit: its oldest records were thinned")
