"""Follows a recorder and keeps what metrics need: sums since its start, and means of the last seconds."""

from __future__ import annotations

import math
import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pgstrata.model.archive import COMMITS, ArchiveEvent, EventKind, SessionsLook
from pgstrata.model.incidents import Incident
from pgstrata.ports.recording import Counted, RecordedSecond

WINDOW: Final = 15
"""Seconds over which means are taken."""
ANSWERED: Final = 5
"""Seconds for which a server counts as up after a look at it."""
RUNNING: Final = "running"
OTHER: Final = "other"
WAIT_CLASSES: Final = (
    RUNNING, "BufferPin", "Client", "Extension", "IO", "IPC", "LWLock", "Lock", "Timeout", OTHER,
)  # fmt: skip
"""Types of wait events as pg_stat_activity has them; RUNNING: no wait event, OTHER: a type that is new to pgstrata."""
HOST_CPU: Final = {
    "user": "host_user_cpu",
    "system": "host_system_cpu",
    "interrupt": "host_interrupt_cpu",
    "iowait": "host_iowait_cpu",
    "steal": "host_steal_cpu",
}
"""Kinds of CPU time, and the rates that tell them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lately:
    """Means over the looks of the last `WINDOW` seconds; None where there was no look, or nothing was counted.

    `load` are active sessions by wait class. `time` is load / throughput in seconds, as in an explanation. `blocked`
    and `held`: the most sessions that waited for others in one look, and the longest that a head of theirs has had its
    transaction open, in seconds.
    """

    up: bool
    load: Mapping[str, float] | None = None
    time: float | None = None
    idle: float | None = None
    blocked: int | None = None
    held: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What has come together since the recorder began; None where it was never counted.

    `sessions` are seconds of active sessions by wait class, a look counting as one second; `gap` the seconds without a
    look; `took` the seconds that looks took. `spent` are seconds of execution. `host` are seconds of CPU by kind.
    """

    looks: int = 0
    took: float = 0.0
    gap: int = 0
    sessions: Mapping[str, float] = field(default_factory=dict)
    commits: float | None = None
    rollbacks: float | None = None
    calls: float | None = None
    spent: float | None = None
    host: Mapping[str, float] = field(default_factory=dict)
    events: Mapping[EventKind, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What is known at a moment; `connections` are the last ones that were counted.

    `incident` is when the one that lasts began, None where there is none; it and `saved` are in Unix seconds.
    """

    lately: Lately
    sums: Sums
    connections: float | None
    incident: int | None
    saved: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What is left of a second."""

    moment: int
    load: Mapping[str, int] | None
    idle: int
    blocked: int
    held: int
    commits: float
    counted: float


class Recent:
    """A follower (`ports.recording`) that any thread may ask."""

    name = "the metrics endpoint"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: deque[_Seen] = deque()
        self._last: int | None = None
        self._looks, self._took, self._gap = 0, 0.0, 0
        self._sessions: Counter[str] = Counter()
        self._commits: float | None = None
        self._rollbacks: float | None = None
        self._calls: float | None = None
        self._spent: float | None = None
        self._host: dict[str, float] = {}
        self._events: Counter[EventKind] = Counter()
        self._connections: float | None = None
        self._incident: int | None = None
        self._saved: int | None = None

    # ------------------------------------------------------------------------------------------- what is told

    def begin(self, facts: Mapping[str, str], limits: Sequence[str]) -> None:
        """Nothing of it is a metric."""

    def follow(self, second: RecordedSecond) -> None:
        """Add a second."""
        seen = _reduce(second)
        with self._lock:
            if self._last is not None and second.moment <= self._last:
                self._seen.clear()  # the clock was set back
            while self._seen and self._seen[0].moment <= second.moment - WINDOW:
                self._seen.popleft()
            self._seen.append(seen)
            self._add(second, seen)

    def learn(self, texts: Mapping[str, str]) -> None:
        """No text of a statement is a metric."""

    def note(self, event: ArchiveEvent) -> None:
        """Count an event."""
        with self._lock:
            self._events[event.kind] += 1

    def alarm(self, incident: Incident | None) -> None:
        """Keep when it began."""
        with self._lock:
            self._incident = None if incident is None else incident.begin

    def saved(self, moment: int) -> None:
        """Keep the moment."""
        with self._lock:
            self._saved = moment

    def close(self) -> None:
        """What is known stays."""

    # ------------------------------------------------------------------------------------------- what is asked

    def read(self, now: float) -> Present:
        """What is known at a moment of the recorder's clock, in Unix seconds."""
        with self._lock:
            return Present(
                lately=_average([seen for seen in self._seen if seen.moment > now - WINDOW], now),
                sums=Sums(
                    looks=self._looks,
                    took=self._took,
                    gap=self._gap,
                    sessions={name: float(self._sessions[name]) for name in WAIT_CLASSES},
                    commits=self._commits,
                    rollbacks=self._rollbacks,
                    calls=self._calls,
                    spent=self._spent,
                    host=dict(self._host),
                    events=dict(self._events),
                ),
                connections=self._connections,
                incident=self._incident,
                saved=self._saved,
            )

    def _add(self, second: RecordedSecond, seen: _Seen) -> None:
        # where the clock was set back, nobody knows how long that took
        since = 1 if self._last is None else max(1, second.moment - self._last)
        self._last = second.moment
        self._gap += since - (seen.load is not None)
        if seen.load is not None:
            self._looks += 1
            self._took += second.took
            self._sessions.update(seen.load)
        self._add_server(second)
        if second.counted is not None:
            self._add_counted(second.counted)
        self._add_host(second.host, second.host_seconds)

    def _add_server(self, second: RecordedSecond) -> None:
        self._commits = _plus(self._commits, second.server.get(COMMITS), second.server_seconds)
        self._rollbacks = _plus(self._rollbacks, second.server.get("rollbacks"), second.server_seconds)
        self._connections = second.server.get("connections", self._connections)

    def _add_counted(self, counted: Counted) -> None:
        self._calls = (self._calls or 0.0) + math.fsum(use.calls for use in counted.uses.values())
        self._spent = (self._spent or 0.0) + counted.spent

    def _add_host(self, rates: Mapping[str, float], seconds: float) -> None:
        for kind, rate in HOST_CPU.items():
            if rate in rates:
                self._host[kind] = self._host.get(kind, 0.0) + rates[rate] * seconds


def _plus(total: float | None, rate: float | None, seconds: float) -> float | None:
    return total if rate is None else (total or 0.0) + rate * seconds


def _reduce(second: RecordedSecond) -> _Seen:
    look, commits = second.look, second.server.get(COMMITS)
    return _Seen(
        moment=second.moment,
        load=None if look is None else count_classes(look),
        idle=0 if look is None else sum(n for session, n in look.counts.items() if session.is_idle_in_transaction),
        blocked=0 if look is None else sum(look.blocked.values()),
        held=0 if look is None else max((blocking.held for blocking in look.blocked), default=0),
        commits=0.0 if commits is None else commits * second.server_seconds,
        counted=0.0 if commits is None else second.server_seconds,
    )


def count_classes(look: SessionsLook) -> Mapping[str, int]:
    """Active sessions by wait class."""
    found: Counter[str] = Counter()
    for session, number in look.counts.items():
        if session.is_load:
            name = session.wait_type or RUNNING
            found[name if name in WAIT_CLASSES else OTHER] += number
    return found


def _average(window: Iterable[_Seen], now: float) -> Lately:
    seconds = list(window)
    looks = [(seen, seen.load) for seen in seconds if seen.load is not None]
    if not looks:
        return Lately(up=False)
    load = {name: sum(classes.get(name, 0) for _, classes in looks) / len(looks) for name in WAIT_CLASSES}
    commits = math.fsum(seen.commits for seen in seconds)
    counted = math.fsum(seen.counted for seen in seconds)
    return Lately(
        up=looks[-1][0].moment > now - ANSWERED,
        load=load,
        time=math.fsum(load.values()) * counted / commits if commits > 0 else None,
        idle=sum(seen.idle for seen, _ in looks) / len(looks),
        blocked=max(seen.blocked for seen, _ in looks),
        held=max(seen.held for seen, _ in looks),
    )
