"""What causes of a slowdown are judged by: the extra load by event and statement, and what transactions did. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.diagnosis.live.changes import may_miss_statements
from pgstrata.model.archive import REST, ArchiveWindow
from pgstrata.model.causes import Cause, CauseKind, Evidence, EvidenceCode
from pgstrata.model.explanation import Explanation, Outcome

RUNNING: Final = ""
"""The event of sessions that wait for nothing."""
LOCK: Final = "Lock/"
READ_EVENTS: Final = (
    "IO/DataFileRead", "IO/DataFilePrefetch", "IO/Aio", "IPC/BufferIo", "LWLock/BufferMapping",
)  # fmt: skip
WRITE_EVENTS: Final = (
    "IO/DataFileWrite", "IO/DataFileExtend", "IO/DataFileFlush", "IO/DataFileSync", "IO/DataFileImmediateSync",
    "IO/DataFileTruncate",
)  # fmt: skip
WAL_EVENTS: Final = ("IO/Wal", "LWLock/WAL")
TEMPORARY_EVENTS: Final = ("IO/Buffile",)
_DRIVING: Final = (*READ_EVENTS, *WRITE_EVENTS, *WAL_EVENTS, "IPC/SyncRep")
_DRIVES: Final = 2.0
"""Times as much of an event per transaction from which on those behind a session in it wait because of it."""
_DRIVES_PART: Final = 0.05
_SELDOM: Final = 0.1
"""Load and calls per transaction before, as shares of those of the window, up to which a statement is new."""
_TENTH_MORE: Final = 1.1
_RUNNING_PART: Final = 0.2
"""Least share of the extra load that the event itself has for that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A figure of the window and of the comparison window."""

    value: float
    reference: float

    @property
    def ratio(self) -> float:
        """Window / comparison; 1 where both are 0."""
        if self.reference > 0:
            return self.value / self.reference
        return math.inf if self.value > 0 else 1.0

    @property
    def difference(self) -> float:
        return self.value - self.reference


_Row = tuple[str, str]
"""Event and statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Two windows of which the first was slower.

    `growth` is the throughput as a multiple of that of the comparison window, 0 of a window without a transaction.
    `extra` is the load beyond `growth` times that of the comparison window: the time per transaction that came to it,
    in average active sessions, summed over the wait events that took more. `rows` are loads by event and statement.
    `driven` are sessions that waited for a lock behind a working session in that event, where it became slow. `new` are
    statements that were not there before, or seldom: their load is theirs, and no sign that others became slow.
    """

    value: ArchiveWindow
    reference: ArchiveWindow
    found: Explanation
    growth: float
    extra: float
    rows: Mapping[_Row, Pair]
    driven: Mapping[str, float]
    new: frozenset[str]

    @property
    def has_more_demand(self) -> bool:
        """Whether more transactions came: then what they wait for is not slow, but asked for too often."""
        return self.found.outcome is Outcome.SATURATED

    def extra_of(self, pair: Pair) -> float:
        """What a load is beyond that of as many transactions before."""
        return pair.value - self.growth * pair.reference

    def load(self, wanted: Callable[[str, str], bool]) -> Pair:
        """The load of some rows, by event and statement."""
        return _sum(pair for (event, statement), pair in self.rows.items() if wanted(event, statement))

    def load_by_statement(self, *without: str) -> Mapping[str, Pair]:
        """The load of each statement, without events that begin so."""
        return sum_statements({row: pair for row, pair in self.rows.items() if not is_one_of(row[0], without)})

    def load_on(self, *events: str) -> Pair:
        """The load of events that begin so."""
        return self.load(lambda event, _: is_one_of(event, events))

    def extra_on(self, *events: str) -> float:
        """The extra load of events that begin so, without new statements, with what was blocked behind them."""
        behind = math.fsum(load for event, load in self.driven.items() if is_one_of(event, events))
        known = self.load(lambda event, statement: is_one_of(event, events) and statement not in self.new)
        return self.extra_of(known) + behind

    def events(self, *beginnings: str) -> list[str]:
        """Events that begin so, the one with most extra load first."""
        sums: defaultdict[str, float] = defaultdict(float)
        for (event, _), pair in self.rows.items():
            if is_one_of(event, beginnings):
                sums[event] += self.extra_of(pair)
        return sorted(sums, key=lambda name: -sums[name])

    def rate(self, name: str) -> Pair | None:
        """Means of a figure of server or host; None where one is not known."""
        return _means(self.value, self.reference, name)

    def each(self, name: str) -> Pair | None:
        """A rate per transaction; per second where no transaction ended."""
        rate, throughput = self.rate(name), self.found.throughput
        if rate is None or not self.growth:
            return rate
        return Pair(value=rate.value / throughput.value, reference=rate.reference / throughput.reference)

    def cause(
        self, kind: CauseKind, load: float, *told: Evidence | None, statements: tuple[str, ...] = (), event: str = ""
    ) -> Cause:
        """A cause that explains so much of the extra load."""
        share = min(1.0, max(0.0, load / self.extra))
        return Cause(kind=kind, share=share, evidence=tuple(filter(None, told)), statements=statements, event=event)


def make_case(value: ArchiveWindow, reference: ArchiveWindow, found: Explanation) -> Case | None:
    """Both windows as causes see them; None where there is no extra load."""
    growth = 0.0 if found.outcome is Outcome.STALLED else found.throughput.value / found.throughput.reference
    extra = found.load.value - growth * found.load.reference
    if not (math.isfinite(extra) and extra > 0):
        return None
    rows = _rows(value, reference)
    events: defaultdict[str, float] = defaultdict(float)
    for (event, _), pair in rows.items():
        events[event] += pair.value - growth * pair.reference
    extra = max(extra, math.fsum(load for load in events.values() if load > 0))
    driven = _drive(value, rows, growth, extra)
    new = _new(value, reference, rows, growth)
    return Case(
        value=value, reference=reference, found=found, growth=growth, extra=extra, rows=rows, driven=driven, new=new
    )  # fmt: skip


def _sum(pairs: Iterable[Pair]) -> Pair:
    chosen = list(pairs)
    return Pair(value=math.fsum(pair.value for pair in chosen), reference=math.fsum(pair.reference for pair in chosen))


def is_one_of(event: str, beginnings: tuple[str, ...]) -> bool:
    """Whether an event begins like one of them; `RUNNING` is one alone."""
    return any(event.startswith(each) if each else not event for each in beginnings)


def event_of(wait_type: str, event: str) -> str:
    """TYPE/EVENT, `RUNNING` without one."""
    return f"{wait_type}/{event}" if wait_type else RUNNING


def _rows(value: ArchiveWindow, reference: ArchiveWindow) -> Mapping[_Row, Pair]:
    sides: list[dict[_Row, float]] = []
    for window in (value, reference):
        sums: defaultdict[_Row, float] = defaultdict(float)
        for session, counts in window.sessions.items():
            if session.is_load:
                sums[event_of(session.wait_type, session.event), session.statement] += sum(counts)
        looks = max(1, sum(window.looks))
        sides.append({row: samples / looks for row, samples in sums.items()})
    ours, theirs = sides
    names = dict.fromkeys((*ours, *theirs))
    return {name: Pair(value=ours.get(name, 0.0), reference=theirs.get(name, 0.0)) for name in names}


def _drive(value: ArchiveWindow, rows: Mapping[_Row, Pair], growth: float, extra: float) -> Mapping[str, float]:
    """Sessions behind working heads, by the head's event, where that event took much longer per transaction."""
    locked = sum(pair.value for (event, _), pair in rows.items() if event.startswith(LOCK))
    behind = sum(value.blocked.values())
    if not growth or not behind:
        return {}
    found: defaultdict[str, float] = defaultdict(float)
    for blocking, sessions in value.blocked.items():
        if blocking.root is not None and blocking.root.kind and not blocking.root.is_idle_in_transaction:
            event = event_of(blocking.root.wait_type, blocking.root.event)
            if is_one_of(event, _DRIVING) or event == RUNNING:
                found[event] += locked * sessions / behind
    return {event: load for event, load in found.items() if load > 0 and _drives(event, rows, growth, extra)}


def _drives(event: str, rows: Mapping[_Row, Pair], growth: float, extra: float) -> bool:
    pairs = [pair for (name, _), pair in rows.items() if name == event]
    ours, before = sum(pair.value for pair in pairs), growth * sum(pair.reference for pair in pairs)
    least = _DRIVES_PART if event else _RUNNING_PART
    return ours >= _DRIVES * before and ours - before >= least * extra


def _new(value: ArchiveWindow, reference: ArchiveWindow, rows: Mapping[_Row, Pair], growth: float) -> frozenset[str]:
    """Statements that the comparison window neither saw nor counted, or hardly.

    Counts are of ten seconds, so that the last of those before the window may already have some of its calls. Where
    nothing was counted before and little was seen, all may have been there.
    """
    if may_miss_statements(reference):
        return frozenset()
    idle = {session.statement for session, counts in reference.sessions.items() if any(counts) and not session.is_load}
    return frozenset(
        key
        for key, pair in sum_statements(rows).items()
        if key not in idle | {"", REST}
        and pair.value > 0
        and pair.reference <= _SELDOM * pair.value
        and _is_called_seldom(key, value, reference, growth)
    )


def sum_statements(rows: Mapping[_Row, Pair]) -> Mapping[str, Pair]:
    """The load of each statement."""
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for (_, statement), pair in rows.items():
        sums[statement][0] += pair.value
        sums[statement][1] += pair.reference
    return {statement: Pair(value=value, reference=before) for statement, (value, before) in sums.items()}


def _is_called_seldom(key: str, value: ArchiveWindow, reference: ArchiveWindow, growth: float) -> bool:
    before = reference.statements.get(key)
    if before is None or not before.calls or not reference.counted:
        return True
    use = value.statements.get(key)
    calls = use.calls / value.counted if use is not None and value.counted else 0.0
    # without a transaction there is no mix to compare with
    return (growth or 1.0) * before.calls / reference.counted <= _SELDOM * calls


def _means(value: ArchiveWindow, reference: ArchiveWindow, name: str) -> Pair | None:
    found = []
    for window in (value, reference):
        series = np.asarray(window.rates.get(name, ()), dtype=np.float64)
        known = series[np.isfinite(series)]
        if not known.size:
            return None
        found.append(float(known.mean()))
    return Pair(value=found[0], reference=found[1])


# --------------------------------------------------------------------------------------------- evidence


def evidence(code: EvidenceCode, pair: Pair | None, name: str = "") -> Evidence | None:
    """Both figures as evidence; None where they are not known."""
    return None if pair is None else Evidence(code=code, value=pair.value, reference=pair.reference, name=name)


def wait_evidence(case: Case, *events: str) -> tuple[Evidence | None, ...]:
    """The two largest of some events."""
    told = [name for name in case.events(*events)[:2] if case.extra_of(case.load_on(name)) > 0]
    return tuple(evidence(EvidenceCode.WAIT, case.load_on(name), name) for name in told)


def rate_evidence(case: Case, *names: str) -> tuple[Evidence | None, ...]:
    """Figures of server or host that are known."""
    return tuple(evidence(EvidenceCode.RATE, case.rate(name), name) for name in names)


def changed_evidence(case: Case, *names: str) -> tuple[Evidence | None, ...]:
    """Figures of server or host that changed by a tenth at least."""
    known = ((name, case.rate(name)) for name in names)
    return rate_evidence(
        case, *(name for name, pair in known if pair is not None and not 1 / _TENTH_MORE < pair.ratio < _TENTH_MORE)
    )
