"""Samples of pg_stat_activity as counts. Pure.

A line is a row: time (seconds, the server's clock), pid, kind of process, whether it is the driver's, state, type and
name of the wait event, query id, pids that block it, query without constants.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import ParseError
from pgstrata.model.activity import SessionCount, SessionState
from pgstrata.ports.collector import Sampled, Window

SAMPLES: Final = "sessions.samples"
"""Evidence name of what the sampler wrote."""
_IN_STATEMENT: Final = frozenset({"active", "fastpath function call"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSample:
    """One process of the server at one moment; `time` in seconds of the server's wall clock."""

    time: float
    pid: int
    kind: str
    ours: bool
    state: str
    wait_type: str
    event: str
    query_id: str
    blockers: tuple[int, ...]
    query: str


def parse_sessions(text: bytes, window: Window) -> Sampled:
    """What the driver's sessions were seen doing in the window, counted.

    Raises:
        ParseError: a row has an unknown shape.
    """
    ours = within((sample for sample in parse_samples(text) if sample.ours), window)
    counted = Counter(map(_class_of, ours))
    return Sampled(
        sessions=tuple(
            SessionCount(state=state, wait_type=wait_type, event=event, query=query, samples=samples)
            for (state, wait_type, event, query), samples in counted.most_common()
        )
    )


def parse_samples(text: bytes) -> Iterator[SessionSample]:
    """Row by row; a last one without its end is left out.

    Raises:
        ParseError: a row has an unknown shape.
    """
    for line in text[: text.rfind(b"\n") + 1].decode("utf-8", "replace").split("\n"):
        if line:
            yield _read(line)


def within(samples: Iterable[SessionSample], window: Window) -> Iterator[SessionSample]:
    """Those in the turns of a run that took turns; all of one that was alone."""
    if not window.turns:
        yield from samples
        return
    starts = [begin for begin, _ in window.turns]
    for sample in samples:
        place = bisect_right(starts, sample.time) - 1
        if place >= 0 and sample.time <= window.turns[place][1]:
            yield sample


def _read(line: str) -> SessionSample:
    words = line.split("\t")
    try:
        time, pid, kind, ours, state, wait_type, event, query_id, blockers, query = words
        return SessionSample(
            time=float(time), pid=int(pid), kind=kind, ours=ours == "1", state=state, wait_type=wait_type, event=event,
            query_id=query_id, blockers=tuple(map(int, blockers.split())), query=query.strip(),
        )  # fmt: skip
    except ValueError:
        raise ParseError(f"unknown shape of a sample: {line[:200]!r}", where=SAMPLES) from None


def _class_of(sample: SessionSample) -> tuple[SessionState, str, str, str]:
    if sample.state not in _IN_STATEMENT or sample.wait_type == "Client":
        return SessionState.CLIENT, "", "", ""
    if sample.wait_type:
        return SessionState.WAITING, sample.wait_type, sample.event, sample.query
    return SessionState.RUNNING, "", "", sample.query
