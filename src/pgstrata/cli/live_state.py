"""What the live screen of `watch` knows: the last minutes of what a recorder told it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pgstrata.model.archive import COMMITS, REST, ArchiveEvent, EventKind, SessionClass, SessionsLook, StatementUse
from pgstrata.model.incidents import Incident
from pgstrata.ports.recording import Counted, RecordedSecond
from pgstrata.report.live.events import event_lines
from pgstrata.report.live.words import local
from pgstrata.report.sentences.causes import readable

STEPS: Final = (1, 5, 15, 60)
"""Seconds of a column of the charts, to choose from."""
MOST_COLUMNS: Final = 240
RECENT: Final = 60
"""Seconds over which statements are summed up."""
NOW: Final = 10
"""Seconds over which present values are means."""
_LONGEST_PERIOD: Final = 10
"""Seconds between two looks at the server's statistics at most."""
_MOST_TEXTS: Final = 5_000
_LONGEST_TEXT: Final = 400


@dataclass(slots=True, kw_only=True)
class Column:
    """The seconds of one column of the charts, from `start` on: sums, and over how many looks or seconds they go."""

    start: int
    looks: int = 0
    sessions: Counter[str] = field(default_factory=Counter)
    seconds: int = 0
    commits: float = 0.0

    @property
    def load(self) -> float:
        """Sessions in a statement on average; NaN where nobody looked."""
        return self.sessions.total() / self.looks if self.looks else math.nan

    @property
    def throughput(self) -> float:
        """Transactions per second; NaN where it is not known."""
        return self.commits / self.seconds if self.seconds else math.nan

    @property
    def time(self) -> float:
        """Seconds per transaction: load ÷ throughput; NaN where that is not known."""
        return self.load / self.throughput if self.seconds and self.commits > 0 else math.nan

    def share(self, wait_type: str) -> float:
        """The part of the load that is in waits of a type, or in none."""
        return self.sessions[wait_type] / self.looks if self.looks else 0.0


@dataclass(slots=True)
class History:
    """The last columns of so many seconds each, without holes."""

    step: int
    columns: deque[Column] = field(default_factory=lambda: deque(maxlen=MOST_COLUMNS))

    def reach(self, moment: int) -> None:
        """Columns up to a moment."""
        start = moment - moment % self.step
        last = self.columns[-1].start if self.columns else start - self.step
        first = max(last + self.step, start - (MOST_COLUMNS - 1) * self.step)
        self.columns.extend(Column(start=each) for each in range(first, start + 1, self.step))

    def at(self, moment: int) -> Column | None:
        """The column of a moment that was reached, None where it is gone."""
        back = (self.columns[-1].start + self.step - 1 - moment) // self.step
        return self.columns[-1 - back] if 0 <= back < len(self.columns) else None

    def last(self, number: int) -> Sequence[Column]:
        """At most so many columns, the newest last."""
        return list(self.columns)[-number:] if number > 0 else []


@dataclass(frozen=True, slots=True, kw_only=True)
class TopStatement:
    """A statement of the last minute.

    Its sessions were seen most in `event`, empty for no wait event, None where none was seen. `use` is what was counted
    of it in `counted` seconds, None where it was not counted.
    """

    key: str
    load: float
    event: str | None
    use: StatementUse | None
    counted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """The head of a chain at the last look, and how many sessions were behind it."""

    root: SessionClass | None
    pid: int
    held: int
    behind: int


@dataclass(slots=True, kw_only=True)
class LiveState:
    """Takes in what a recorder says.

    Args:
        archive: where it records to.
    """

    archive: str
    version: str = ""
    limits: tuple[str, ...] = ()
    since: int | None = None
    moment: int = 0
    looks: int = 0
    lost: int | None = None
    message: str = ""
    incident: Incident | None = None
    texts: dict[str, str] = field(default_factory=dict)
    histories: Mapping[int, History] = field(default_factory=lambda: {step: History(step) for step in STEPS})
    _blocked: SessionsLook | None = None
    _recent: deque[tuple[int, Counter[tuple[str, str]]]] = field(default_factory=deque)
    _sums: Counter[tuple[str, str]] = field(default_factory=Counter)
    _counted: deque[tuple[int, Counted]] = field(default_factory=deque)
    _rated: int | None = None

    # -------------------------------------------------------------------------------------------- what is told

    def begin(self, facts: Mapping[str, str], limits: Sequence[str]) -> None:
        """The server has answered."""
        self.version = readable(facts.get("server_version", "")).partition(" ")[0]
        self.limits = tuple(limits)
        self.lost = self._rated = None

    def follow(self, second: RecordedSecond) -> None:
        """A second was recorded."""
        if second.moment <= self.moment:
            self._begin_anew()
        self.moment = second.moment
        self.since = self.since or second.moment
        for history in self.histories.values():
            history.reach(second.moment)
        self._forget(second.moment - RECENT)
        self._blocked = second.look
        if second.look is not None:
            self._look(second.moment, second.look)
        if COMMITS in second.server:
            self._rate(second.moment, second.server[COMMITS])
        if second.counted is not None:
            self._counted.append((second.moment, second.counted))

    def learn(self, texts: Mapping[str, str]) -> None:
        """Texts of statements by key."""
        self.texts |= {key: readable(text[:_LONGEST_TEXT]) for key, text in texts.items()}
        while len(self.texts) > _MOST_TEXTS:
            del self.texts[next(iter(self.texts))]

    def note(self, event: ArchiveEvent) -> None:
        """Something happened; statements may be evicted all the time, and do not replace a message."""
        if event.kind is EventKind.LOST:
            self.lost = event.moment
        if event.kind is not EventKind.EVICTED or not self.message:
            self.message = next(event_lines((event,)))

    def alarm(self, incident: Incident | None) -> None:
        """An incident goes on, or the last one has ended."""
        self.incident = incident

    def tell(self, moment: float, text: str) -> None:
        """A message."""
        self.message = f"{local(moment):%H:%M:%S} {readable(text)}"

    # -------------------------------------------------------------------------------------------- what is known

    @property
    def now(self) -> Column:
        """The last ten seconds as one column."""
        columns = self.histories[STEPS[0]].last(NOW)
        found = Column(start=self.moment - NOW)
        for column in columns:
            found.looks += column.looks
            found.sessions += column.sessions
            found.seconds += column.seconds
            found.commits += column.commits
        return found

    def statements(self, number: int) -> list[TopStatement]:
        """Statements with most load in the last minute, then those that were not seen, with most counted time."""
        loads: Counter[str] = Counter()
        events: dict[str, tuple[int, str]] = {}
        for (key, event), sessions in self._sums.items():
            loads[key] += sessions
            events[key] = max(events.get(key, (0, "")), (sessions, event))
        spent: defaultdict[str, float] = defaultdict(float)
        for _, counted in self._counted:
            for key, use in counted.uses.items():
                spent[key] += use.seconds
        spent.pop(REST, None)
        looks = len(self._recent)
        seconds = math.fsum(counted.seconds for _, counted in self._counted)
        keys = sorted(loads.keys() | spent.keys(), key=lambda key: (-loads[key], -spent[key], key))
        return [
            TopStatement(
                key=key,
                load=loads[key] / looks if looks else 0.0,
                event=events[key][1] if key in events else None,
                use=self._use(key) if key else None,
                counted=seconds,
            )
            for key in keys[:number]
        ]

    @property
    def blockers(self) -> list[Blocker]:
        """Heads of chains at the last look, those with most sessions behind them first."""
        found: dict[tuple[int, SessionClass | None], Blocker] = {}
        for blocking, sessions in (self._blocked.blocked if self._blocked else {}).items():
            name = blocking.pid, blocking.root
            before = found.get(name)
            found[name] = Blocker(
                root=blocking.root,
                pid=blocking.pid,
                held=max(blocking.held, before.held if before else 0),
                behind=sessions + (before.behind if before else 0),
            )
        return sorted(found.values(), key=lambda each: (-each.behind, each.pid))

    # ------------------------------------------------------------------------------------------------- within

    def _begin_anew(self) -> None:
        """The clock was set back: what is shown follows each other in time."""
        for history in self.histories.values():
            history.columns.clear()
        self._recent.clear()
        self._sums.clear()
        self._counted.clear()
        self._rated = None

    def _forget(self, before: int) -> None:
        while self._recent and self._recent[0][0] <= before:
            self._sums -= self._recent.popleft()[1]
        while self._counted and self._counted[0][0] <= before:
            self._counted.popleft()

    def _look(self, moment: int, look: SessionsLook) -> None:
        self.looks += 1
        waits: Counter[str] = Counter()
        seen: Counter[tuple[str, str]] = Counter()
        for session, number in look.counts.items():
            if session.is_load:
                waits[session.wait_type] += number
                event = f"{session.wait_type}/{session.event}" if session.wait_type else ""
                seen[session.statement, event] += number
        self._recent.append((moment, seen))
        self._sums += seen
        for column in self._columns(moment):
            column.looks += 1
            column.sessions += waits

    def _rate(self, moment: int, rate: float) -> None:
        """A rate holds for the seconds since the one before."""
        first = moment if self._rated is None else max(self._rated + 1, moment - _LONGEST_PERIOD + 1)
        self._rated = moment
        for second in range(first, moment + 1):
            for column in self._columns(second):
                column.commits += rate
                column.seconds += 1

    def _columns(self, moment: int) -> Iterator[Column]:
        for history in self.histories.values():
            column = history.at(moment)
            if column is not None:
                yield column

    def _use(self, key: str) -> StatementUse | None:
        found: StatementUse | None = None
        for _, counted in self._counted:
            use = counted.uses.get(key)
            if use is not None:
                found = use if found is None else found.plus(use)
        return found
