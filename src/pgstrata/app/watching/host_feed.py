"""The server's host while it is recorded: its counters each second, and what comes to the server's log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from threading import Event, Lock, Thread
from typing import Final, Protocol

from pgstrata.app.site import open_site
from pgstrata.app.watching.log_tail import LogTail, find_contained_log, find_log
from pgstrata.collectors.live.group import MOUNTS, find_group
from pgstrata.collectors.live.host import FILES, STATUSES, HostReader, find_contained
from pgstrata.collectors.live.log import LogPlace
from pgstrata.collectors.live.logged_plans import LoggedPlan
from pgstrata.errors import HostLostError, HostNotFitError, PgstrataError
from pgstrata.model.archive import ArchiveEvent, EventKind
from pgstrata.ports.host import Host
from pgstrata.units import printable, shorten

_LONGEST_WAIT: Final = 60.0
"""Seconds between two attempts to reach the host again."""
_GRACE: Final = 5.0
"""Seconds that the end of a connection may take."""
_MOST_PLANS: Final = 200
_LONGEST_WORDS: Final = 200
_FRESH: Final = 3
"""Seconds for which what another machine said may stand for the present second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSecond:
    """What was seen of the host: rates over the `seconds` before, and events and plans of the server's log."""

    rates: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 1.0
    events: tuple[ArchiveEvent, ...] = ()
    plans: tuple[LoggedPlan, ...] = ()


class HostFeed(Protocol):
    """The server's host; `name` is for messages."""

    @property
    def name(self) -> str: ...

    @property
    def log_limit(self) -> str:
        """The code for why the server's log cannot be read; empty if it can be, or was not looked for yet."""
        ...

    def runs(self, backend: int) -> bool:
        """Whether a process of that id there is one of a PostgreSQL server."""
        ...

    def aim(self, place: LogPlace) -> None:
        """The server says again where its log is."""
        ...

    def read(self, moment: int) -> HostSecond:
        """What there is at a second; PgstrataError where nothing can be read."""
        ...

    def close(self) -> None: ...


@dataclass(slots=True)
class OpenedHostFeed:
    """A host that can be asked at once; implements `HostFeed`.

    Args:
        host: this machine, or another one behind a connection.
        passed: seconds of a clock that never jumps.
        contained: whether the server may run in a container there, where its processes have other ids.
        here: whether the host is this machine.
    """

    host: Host
    passed: Callable[[], float]
    contained: bool = False
    here: bool = False
    _process: tuple[int, int | None] = (0, None)
    _counters: HostReader = field(default_factory=HostReader)
    _group: tuple[str, ...] = ()
    _place: LogPlace | None = None
    _log: LogTail | None = None
    _is_aimed: bool = False

    @property
    def name(self) -> str:
        return self.host.name

    @property
    def log_limit(self) -> str:
        if self._log is not None or not self._is_aimed:
            return ""
        backend, process = self._process
        return "no_log" if process in {None, backend} else "no_container_log"

    def runs(self, backend: int) -> bool:
        return self._find_process(backend) is not None

    def _find_process(self, backend: int) -> int | None:
        """The id there of a process of a server's."""
        if self._process[0] != backend or self._process[1] is None:
            path = f"/proc/{backend}/cmdline"
            found = backend if b"postgres" in self.host.read_files((path,)).get(path, b"") else None
            if found is None and self.contained:
                found = find_contained(self.host.read_matching(STATUSES), backend)
            self._process = (backend, found)
        return self._process[1]

    def aim(self, place: LogPlace) -> None:
        process = self._find_process(place.backend)
        self._group = () if process is None else self._find_group(process)
        if place == self._place and self._log is not None:
            return
        log = None
        with suppress(PgstrataError):
            if process == place.backend or not self.contained:
                log = find_log(self.host, place)
            elif process is not None:
                log = find_contained_log(self.host, place, process, here=self.here)
        # `_log` comes first: another thread may read `log_limit` in between
        self._log, self._place, self._is_aimed = log, place, True

    def read(self, moment: int) -> HostSecond:
        rates = self._counters.read(self.host.read_files((*FILES, *self._group)), self.passed()) or {}
        events = (*(replace(each, moment=moment) for each in self._counters.events), *self._read_log(moment))
        plans = self._log.take_plans() if self._log is not None else ()
        return HostSecond(rates=rates, seconds=self._counters.seconds, events=events, plans=plans)

    def _find_group(self, backend: int) -> tuple[str, ...]:
        """Files of the control group that can be read: a limit may be set, and a server be moved, at any time."""
        membership = f"/proc/{backend}/cgroup"
        said = self.host.read_files((membership, MOUNTS))
        memberships, mounts = (said.get(path, b"").decode("utf-8", "replace") for path in (membership, MOUNTS))
        return tuple(self.host.read_files(find_group(memberships, mounts).files))

    def _read_log(self, moment: int) -> tuple[ArchiveEvent, ...]:
        if self._log is None:
            return ()
        try:
            return self._log.read(moment)
        except (PgstrataError, OSError, ValueError, IndexError):
            # it was removed or may not be read any more; the server is asked again where it is
            self._log = self._place = None
            return ()

    def close(self) -> None:
        """The host is closed by whoever opened it."""


class RemoteHostFeed:
    """A host that ssh reaches, asked by a thread of its own, so that a slow network never holds up the recorder.

    Implements `HostFeed`. What it says is at most a second older than the moment for which it is taken.

    Args:
        destination: as for the user's own ssh.
        passed: seconds of a clock that never jumps.
        tell: says when the connection is lost and when it is there again.

    Raises:
        UsageError: that is no destination.
        HostNotFitError, HostLostError: it cannot be reached.
    """

    def __init__(self, destination: str, passed: Callable[[], float], tell: Callable[[str], None]) -> None:
        self._destination, self._passed, self._tell = destination, passed, tell
        self._lock, self._ended = Lock(), Event()
        self._newest: HostSecond | None = None
        self._taken_at = 0.0
        self._events: list[ArchiveEvent] = []
        self._plans: list[LoggedPlan] = []
        self._place: LogPlace | None = None
        self._is_aimed = False
        self._thread: Thread | None = None
        self._stack = ExitStack()
        self._feed: OpenedHostFeed | None = self._open()

    @property
    def name(self) -> str:
        return f"ssh:{self._destination}"

    @property
    def log_limit(self) -> str:
        feed = self._feed
        return "" if self._thread is None or feed is None else feed.log_limit

    def runs(self, backend: int) -> bool:
        """Asked before the first second only: after that the connection is the thread's."""
        return self._thread is not None or self._feed is None or self._feed.runs(backend)

    def aim(self, place: LogPlace) -> None:
        with self._lock:
            self._place, self._is_aimed = place, False

    def read(self, moment: int) -> HostSecond:
        if self._thread is None:
            self._thread = Thread(target=self._run, name="pgstrata-host", daemon=True)
            self._thread.start()
        with self._lock:
            newest, self._newest = self._newest, None
            events, self._events = tuple(replace(event, moment=moment) for event in self._events), []
            plans, self._plans = tuple(self._plans), []
            fresh = self._passed() - self._taken_at <= _FRESH
        if newest is None or not fresh:
            return HostSecond(events=events, plans=plans)
        return replace(newest, events=events, plans=plans)

    def close(self) -> None:
        self._ended.set()
        if self._thread is None:
            self._stack.close()
        else:
            self._thread.join(timeout=_GRACE)

    def _open(self) -> OpenedHostFeed:
        site = self._stack.enter_context(open_site(self._destination))
        return OpenedHostFeed(site.transport, self._passed, contained=True)

    def _run(self) -> None:
        wait = 1.0
        while not self._ended.wait(1.0 if self._feed is not None else wait):
            try:
                if self._feed is None:
                    self._feed, self._is_aimed = self._open(), False
                    self._tell(f"connected to {self.name} again")
                self._look(self._feed)
                wait = 1.0
            except Exception as error:  # noqa: BLE001 - an error that ended the thread would never be told
                if self._feed is not None:
                    self._note_loss(_say_why(error))
                wait = min(_LONGEST_WAIT, 2 * wait)
        self._stack.close()

    def _look(self, feed: OpenedHostFeed) -> None:
        with self._lock:
            place, self._is_aimed = None if self._is_aimed else self._place, True
        if place is not None:
            feed.aim(place)
        found = feed.read(int(self._passed()))
        with self._lock:
            self._newest, self._taken_at = found, self._passed()
            self._events += found.events
            # a recorder that waits for its server takes none
            self._plans = [*self._plans, *found.plans][-_MOST_PLANS:]

    def _note_loss(self, why: str) -> None:
        self._feed = None
        with self._lock:
            self._events.append(ArchiveEvent(moment=0, kind=EventKind.MISSED, detail=f"host: {why}"))
        with suppress(PgstrataError, OSError):
            self._stack.close()
        self._tell(f"the connection to {self.name} was lost: {why}; its counters are missing until it is back")


def _say_why(error: Exception) -> str:
    """Why the host could not be read: for a lost connection, the last line that ssh printed, if any."""
    if isinstance(error, HostLostError) and error.details:
        return shorten(printable(error.details[-1]), _LONGEST_WORDS).rstrip(".")
    return error.what if isinstance(error, PgstrataError) else str(error)


def require_host(feed: HostFeed, backend: int) -> None:
    """HostNotFitError where no process of that id there is one of a PostgreSQL server."""
    if not feed.runs(backend):
        name = "this machine" if feed.name == "local" else feed.name
        raise HostNotFitError(
            f"the server does not run on {name}: its process {backend} is not there",
            where="--host",
            remedy="name the machine on which the server runs; if servers in several containers there cannot be told "
            "apart, leave --host out",
        )
