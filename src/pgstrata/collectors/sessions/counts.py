"""What was seen in a window, counted: the driver's sessions, who blocked them, and the processes beside them. Pure.

Alone, samples count from the first with all of the driver's sessions to the last with all of them, so that neither what
the driver does before (it counts its branches, it vacuums) nor the end of the first session counts. A driver that
connects anew for each transaction has no such sessions: then all looks count between the first and
the last that saw one of them: these themselves were chosen by what they saw.

In turns: those in the turns. What a turn begins with is no sample of it: sessions stand where the end of the last turn
left them (most of them wait for their client), and a sampler whose timer ran out during the pause looks at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, Protocol, TypeVar

from pgstrata.collectors.sessions.parse import (
    LOOK,
    SESSION,
    Clocks,
    SessionSample,
    parse_clocks,
    parse_samples,
    split_moments,
)
from pgstrata.collectors.window_series import doubt_unseen
from pgstrata.model.activity import ProcessCount, SessionCount, SessionState
from pgstrata.ports.collector import Sampled, Window

WAKING: Final = 0.02
"""Seconds from the beginning of a turn that are not looked at.

Measured with select-only and 2 clients in slices of 0.25 s at 10 Hz: of 160 samples in the first 5 ms 80 % saw a
session that waited for its client, of 496 after 20 ms 62 %; the 32 between were like the later ones.
"""
_LATE: Final = 2.0
"""Periods between two samples from which on the time between them was not seen."""
GRACE: Final = 0.5
"""Seconds of a run in which the driver connects and ends."""

Moment = tuple[SessionSample, ...]


class Sighting(Protocol):
    """A process that was seen at a moment, a session of the driver or not."""

    @property
    def pid(self) -> int: ...

    @property
    def ours(self) -> bool: ...


_Sighting = TypeVar("_Sighting", bound=Sighting)


def within(moments: Iterable[Moment], window: Window, clocks: Clocks) -> list[Moment]:
    """The moments of the window in which the driver was at work, in order of time."""
    known = list(moments)
    at_work = [place for place, moment in enumerate(known) if any(sample.ours for sample in moment)]
    reconnects = any(count_reconnecting(known[place]) for place in at_work)
    found = known[at_work[0] + 1 : at_work[-1]] if reconnects else [known[place] for place in at_work]
    if window.turns:
        found = [moment for moment in found if _in_turn(moment[0].time - clocks.offset, window.turns)]
    return found if reconnects else while_complete(found)


def count_reconnecting(moment: Moment) -> int:
    """How many clients connect anew for each transaction; 0 where their sessions last."""
    return next((sample.pid for sample in moment if sample.kind == LOOK), 0)


def unseen(moments: Sequence[Moment], window: Window, clocks: Clocks) -> float:
    """The share of the window that was not seen: before, after and between samples that are too far apart."""
    times = [moment[0].time - clocks.offset for moment in moments]
    if not window.turns:
        steps = (after - before for before, after in pairwise(times))
        late = _LATE * clocks.period
        seen = sum(step if 0 <= step <= late else clocks.period for step in steps) + GRACE if times else 0.0
        return max(0.0, 1 - seen / window.seconds) if window.seconds > 0 else 0.0
    times.sort()
    total = lost = 0.0
    for begin, end in window.turns:
        start = min(end, begin + WAKING)
        inside = times[bisect_right(times, start) : bisect_right(times, end)]
        total += end - start
        lost += _lost([start, *inside, end], clocks.period)
    return lost / total if total > 0 else 0.0


def _in_turn(time: float, turns: Sequence[tuple[float, float]]) -> bool:
    place = bisect_right(turns, (time, float("inf"))) - 1
    return place >= 0 and turns[place][0] + WAKING <= time <= turns[place][1]


def _lost(times: Sequence[float], period: float) -> float:
    gaps = (after - before for before, after in pairwise(times))
    return sum(gap - period for gap in gaps if gap > _LATE * period)


def while_complete(moments: list[tuple[_Sighting, ...]]) -> list[tuple[_Sighting, ...]]:
    """From the first to the last moment with the sessions that are mostly there, if there are such."""
    sets = [frozenset(sample.pid for sample in moment if sample.ours) for moment in moments]
    if not sets:
        return []
    ((usual, often),) = Counter(sets).most_common(1)
    if 2 * often < len(sets):
        return moments
    first, last = sets.index(usual), len(sets) - 1 - sets[::-1].index(usual)
    return moments[first : last + 1]


_IN_STATEMENT: Final = frozenset({"active", "fastpath function call"})
_DISABLED: Final = "disabled"
_UNKNOWN: Final = frozenset({"", _DISABLED, "starting"})
_PREPARED: Final = 0
_CLIENT_EVENTS_SINCE: Final = 100000
_ASKED: Final = {"": SessionState.RUNNING, "0": SessionState.AWAKE, "?": SessionState.PASSING}
_Class = tuple[SessionState, str, str, str]


def parse_sessions(text: bytes, window: Window) -> Sampled:
    """What the driver's sessions were seen doing in the window, counted; the rest of the server beside them.

    Raises:
        ParseError: a row has an unknown shape.
    """
    clocks = parse_clocks(text)
    moments = within(split_moments(parse_samples(text)), window, clocks)
    sessions: Counter[tuple[_Class, str]] = Counter()
    processes: Counter[tuple[str, _Class]] = Counter()
    for moment in moments:
        together = {sample.pid: sample for sample in moment if sample.kind != LOOK}
        for sample in together.values():
            seen = _class_of(sample, says_idle=window.server_version >= _CLIENT_EVENTS_SINCE)
            if seen is not None and sample.ours:
                sessions[seen, _root_query(sample, together)] += 1
            elif seen is not None and sample.kind not in {SESSION, ""}:
                processes[sample.kind, seen] += 1
        if connecting := _count_connecting(moment):
            sessions[(SessionState.CONNECTING, "", "", ""), ""] += connecting
    return Sampled(
        sessions=tuple(
            SessionCount(state=state, wait_type=wait_type, event=event, query=query, samples=samples, blocker=blocker)
            for ((state, wait_type, event, query), blocker), samples in sessions.most_common()
        ),
        processes=tuple(
            ProcessCount(kind=kind, state=state, wait_type=wait_type, event=event, query=query, samples=samples)
            for (kind, (state, wait_type, event, query)), samples in processes.most_common()
        ),
        remarks=doubt_unseen(unseen(moments, window, clocks), "sessions"),
    )


def _class_of(sample: SessionSample, *, says_idle: bool) -> _Class | None:
    """What a process was doing; None where it does not say. Processes without a client have no state.

    The server reads events after states: who was idle and by then waits for something else is in its next statement,
    which nobody knows, and who waits for nothing has a CPU. `says_idle`: waiting for a client has an event.
    """
    query = sample.query
    if sample.kind in {SESSION, ""}:
        if sample.state in _UNKNOWN:
            return None
        idle = sample.state not in _IN_STATEMENT
        if sample.wait_type == "Client" or (idle and not says_idle):
            return SessionState.CLIENT, "", "", ""
        query = "" if idle else query
    if sample.wait_type:
        return SessionState.WAITING, sample.wait_type, sample.event, query
    if sample.place in _ASKED:
        return _ASKED[sample.place], "", "", query
    return SessionState.ASLEEP, "", sample.place, query


def _count_connecting(moment: Moment) -> int:
    """Clients without a session that has said what it does, of those that connect anew for each transaction.

    Nobody where sessions never say it (`track_activities` is off).
    """
    if any(sample.ours and sample.state == _DISABLED for sample in moment):
        return 0
    ready = sum(sample.ours and sample.state not in _UNKNOWN for sample in moment)
    return max(0, count_reconnecting(moment) - ready)


def _root_query(sample: SessionSample, together: Mapping[int, SessionSample]) -> str:
    """The query of the session at the end of the chain of those that block, where a session waits for a lock.

    Its last one if it is idle in its transaction; empty where the chain leads out of what was seen. In a circle, the
    one that was come to last.
    """
    if not sample.blockers:
        return ""
    passed = {sample.pid}
    while True:
        further = [pid for pid in sample.blockers if pid not in passed]
        if not further:
            break
        if further == [_PREPARED]:
            return "prepared transaction"
        found = next((together[pid] for pid in further if pid in together), None)
        if found is None:
            return ""
        passed.add(found.pid)
        sample = found
    return sample.query or sample.kind
