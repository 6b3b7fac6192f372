"""What the processes of the driver's sessions used per transaction. Pure.

A process is looked at between its first and its last sample. In a run that was alone that is the most of the window:
what it used in that time stands for the whole. In slices the first sample lies before all turns and the last one after
them, and clients stand still outside of turns: what was used in between is what the slices' transactions used. Those
before the first turn (`Window.outside`) were over when sampling began.

With a session for each transaction no process is there twice. Then CPU time is that of the children that the postmaster
has waited for between the captures around the window; parallel workers and autovacuum's are among them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

from pgstrata.collectors.procfs.samples import ProcessSample, Seconds
from pgstrata.collectors.procfs.snapshot import Snapshot
from pgstrata.collectors.sessions.parse import SessionSample
from pgstrata.model.metrics import (
    BACKEND_CPU,
    BACKEND_FAULTS,
    BACKEND_SYSTEM_CPU,
    INVOLUNTARY,
    RUN_QUEUE,
    VOLUNTARY,
    Measurement,
)
from pgstrata.ports.collector import Window

_LASTING: Final = 0.9
"""Share of the sampled sessions that must be there in two samples of their processes for these to tell of all."""
_KINDS: Final = frozenset({"client backend", ""})
"""Not parallel workers, which call themselves as their session does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Life:
    """A process between its first and its last sample."""

    pid: int
    begin: float
    end: float
    first: ProcessSample
    last: ProcessSample


def measure_own_sessions(
    seconds: Seconds, sessions: Iterable[SessionSample], window: Window, captures: Sequence[Snapshot]
) -> Iterator[Measurement]:
    """Means over the window, per transaction; nothing of what the host does not tell, or was not seen throughout.

    Args:
        seconds: samples of the server's processes.
        sessions: samples of what sessions did, to know the driver's.
        window: what was measured.
        captures: of the server's host, before and after; empty where there are none.
    """
    if window.transactions <= 0 or not _seen_throughout(seconds, window):
        return
    ours = [sample for sample in sessions if sample.ours and sample.kind in _KINDS]
    seen = Counter(sample.pid for sample in ours)
    lives = [life for life in _lives(seconds) if life.pid in seen]
    lasting = sum(seen[pid] for pid in {life.pid for life in lives})
    together = max(len(seen.keys() & sample.processes.keys()) for sample in seconds.samples)
    if seen and lasting >= _LASTING * seen.total():
        for name, used in _uses(lives):
            value = used if window.turns else used * _stands_for(lives, together, window)
            yield Measurement(metric=name, value=value / window.transactions)
    elif len(seen) > 2 * max(1, together):
        yield from _waited(captures, window)


def _seen_throughout(seconds: Seconds, window: Window) -> bool:
    """Whether there are samples on both sides of all turns; the clocks of two hosts differ, but not their seconds."""
    if len(seconds.samples) <= 1 or not window.turns:
        return len(seconds.samples) > 1
    return seconds.samples[-1].moment - seconds.samples[0].moment >= window.turns[-1][1] - window.turns[0][0]


def _stands_for(lives: Sequence[_Life], together: int, window: Window) -> float:
    """How much longer all sessions were at work than was looked at."""
    return together * window.seconds / sum(life.end - life.begin for life in lives)


def _lives(seconds: Seconds) -> Iterator[_Life]:
    """Processes with two samples; a process id that was given to another one, or whose counters fell, begins anew."""
    rows: dict[int, list[tuple[float, ProcessSample]]] = defaultdict(list)
    for sample in seconds.samples:
        for process in sample.processes.values():
            known = rows[process.pid]
            if known and _told(process) != _told(known[0][1]):
                continue  # it ended while it was looked at
            if known and not _goes_on(known[-1][1], process):
                yield from _life(known)
                known.clear()
            known.append((sample.moment, process))
    for known in rows.values():
        yield from _life(known)


def _told(process: ProcessSample) -> tuple[bool, ...]:
    return tuple(getattr(process, each.name) is not None for each in fields(process))


def _goes_on(before: ProcessSample, after: ProcessSample) -> bool:
    return before.start == after.start and (after.cpu or 0.0) >= (before.cpu or 0.0)


def _life(rows: Sequence[tuple[float, ProcessSample]]) -> Iterator[_Life]:
    (begin, first), (end, last) = rows[0], rows[-1]
    if end > begin:
        yield _Life(pid=first.pid, begin=begin, end=end, first=first, last=last)


def _uses(lives: Sequence[_Life]) -> Iterator[tuple[str, float]]:
    """What all of them used together between their samples, by metric; what one of them does not tell is left out."""
    grown = {name: _growth(lives, attribute) for name, attribute in _COUNTERS.items()}
    user, system = _growth(lives, "user"), _growth(lives, "system")
    cpu = grown[BACKEND_CPU.name]
    if not cpu:
        # a kernel without such statistics says 0 of all
        grown |= {BACKEND_CPU.name: None, RUN_QUEUE.name: None}
    elif user is not None and system is not None and user + system > 0:
        grown[BACKEND_SYSTEM_CPU] = cpu * system / (user + system)
    yield from ((name, value) for name, value in grown.items() if value is not None)


def _growth(lives: Sequence[_Life], attribute: str) -> float | None:
    total = 0.0
    for life in lives:
        begin, end = getattr(life.first, attribute), getattr(life.last, attribute)
        if begin is None or end is None or end < begin:
            return None
        total += end - begin
    return total


def _waited(captures: Sequence[Snapshot], window: Window) -> Iterator[Measurement]:
    """CPU time of the postmaster's children that ended between the captures."""
    if window.postmaster_pid is None or len(captures) <= 1:
        return
    first, last = (capture.processes.get(window.postmaster_pid) for capture in captures)
    if first is None or last is None or first.start != last.start or last.waited <= first.waited:
        return
    used = (last.waited - first.waited) / captures[-1].ticks
    yield Measurement(metric=BACKEND_CPU.name, value=used / window.transactions)


_COUNTERS: Final[Mapping[str, str]] = {
    BACKEND_CPU.name: "cpu",
    RUN_QUEUE.name: "queue",
    VOLUNTARY: "voluntary",
    INVOLUNTARY: "involuntary",
    BACKEND_FAULTS: "faults",
}
