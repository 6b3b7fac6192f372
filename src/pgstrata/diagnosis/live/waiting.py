"""Which statements of a window waited for an event, and for how long. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from pgstrata.diagnosis.live.explain import window_facts
from pgstrata.model.archive import ArchiveWindow, SessionClass
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.waiting import EventWaits, WaitingStatement
from pgstrata.stats.counts import count_interval

LOOK_SECONDS: Final = 1.0
"""Seconds that a sample stands for: those between two looks."""
_Found = Sequence[tuple[SessionClass, int]]
"""Sessions with their samples."""


def seen_events(window: ArchiveWindow, *, load: bool = True) -> tuple[tuple[str, int], ...]:
    """Wait events as `TYPE/EVENT` with their samples in active sessions, or in all others; the most frequent first."""
    found: Counter[str] = Counter()
    for session, samples in _samples(window):
        if session.wait_type and session.is_load is load:
            found[_event(session)] += samples
    return tuple((event, samples) for event, samples in found.most_common() if samples)


def match_events(asked: str, events: Iterable[str]) -> frozenset[str]:
    """The events that a text means, without regard to case: `TYPE/EVENT`, a TYPE for all of its events, or an EVENT."""
    wanted = asked.strip().casefold()
    known = [(event, *event.casefold().partition("/")) for event in events]
    exact = frozenset(event for event, kind, _, name in known if wanted in {f"{kind}/{name}", kind})
    return exact or frozenset(event for event, _, _, name in known if name == wanted)


def find_waits(window: ArchiveWindow, events: Collection[str], at_least: int) -> EventWaits:
    """The statements that waited for any of these events, the most frequent first.

    A sample stands for a second, so many samples are about as many seconds of waiting (Horvitz-Thompson). Their number
    has the error of a Poisson count where looks meet waits independently of each other.

    Args:
        window: it has looks.
        events: as `TYPE/EVENT`; at least one of them was seen in the load.
        at_least: samples from which on a statement has a row of its own.
    """
    groups: defaultdict[str, list[tuple[SessionClass, int]]] = defaultdict(list)
    load = elsewhere = 0
    for session, samples in _samples(window):
        load += samples if session.is_load else 0
        if session.wait_type and _event(session) in events:
            if session.is_load:
                groups[session.statement].append((session, samples))
            else:
                elsewhere += samples
    every = [each for members in groups.values() for each in members]
    whole = sum(samples for _, samples in every)
    rows = [_row(key, members, whole, load, window, 1) for key, members in groups.items()]
    rows.sort(key=lambda row: -row.samples)
    often = [row for row in rows if row.samples >= at_least]
    seldom = [row for row in rows if row.samples < at_least]
    rest = [each for row in seldom for each in groups[row.statement or ""]]
    return EventWaits(
        window=window_facts(window),
        events=tuple((event, samples) for event, samples in seen_events(window) if event in events),
        at_least=at_least,
        load=load,
        whole=_row(None, every, whole, load, window, len(rows)),
        rows=tuple(often),
        remainder=_row(None, rest, whole, load, window, len(seldom)) if seldom else None,
        elsewhere=elsewhere,
    )


def _samples(window: ArchiveWindow) -> Iterable[tuple[SessionClass, int]]:
    return ((session, sum(counts)) for session, counts in window.sessions.items())


def _event(session: SessionClass) -> str:
    return f"{session.wait_type}/{session.event}"


def _row(
    key: str | None, found: _Found, whole: int, load: int, window: ArchiveWindow, members: int
) -> WaitingStatement:
    samples = sum(each for _, each in found)
    low, high = count_interval(samples)
    use = window.statements.get(key) if key else None
    return WaitingStatement(
        statement=key,
        samples=samples,
        interval=ValueInterval(low=low, high=high),
        seconds=samples * LOOK_SECONDS,
        of_event=samples / whole if whole else 0.0,
        of_load=samples / load if load else 0.0,
        calls=use.calls / window.counted if use and window.counted else None,
        latency=use.seconds / use.calls if use and use.calls and window.counted else None,
        applications=_ranked((session.application, samples) for session, samples in found),
        databases=_ranked((session.database, samples) for session, samples in found),
        members=members,
    )


def _ranked(names: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    found: Counter[str] = Counter()
    for name, samples in names:
        found[name] += samples
    return tuple(name for name, samples in found.most_common() if samples)
