"""What was seen in a window, counted: the driver's sessions, who blocked them, and the processes beside them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from pgstrata.collectors.sessions.parse import LOOK, SESSION, SessionSample, parse_clocks, parse_samples, split_moments
from pgstrata.collectors.sessions.window import Moment, count_reconnecting, unseen, within
from pgstrata.collectors.window_series import doubt_unseen
from pgstrata.model.activity import ProcessCount, SessionCount, SessionState
from pgstrata.ports.collector import Sampled, Window

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
