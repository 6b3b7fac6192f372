"""Samples of a run that was alone as series over its seconds. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from pgstrata.collectors.procfs.host_series import rates, read_counters
from pgstrata.collectors.procfs.process_series import process_rates, tell_kinds
from pgstrata.collectors.procfs.samples import HostSample, Seconds
from pgstrata.collectors.sessions.parse import SessionSample
from pgstrata.model.courses import COURSES
from pgstrata.model.metrics import Series
from pgstrata.ports.collector import Window

_LATE: Final = 2.5
"""Seconds between two samples, one of which was due after each: what lies between is not known second by second."""
_AFTER: Final = 0.5
_SHORT: Final = 0.1
"""Seconds that are too short for a rate: moments are known to a hundredth."""


def make_courses(seconds: Seconds, sessions: Iterable[SessionSample], window: Window, ticks: int) -> tuple[Series, ...]:
    """A series for each kind that was seen and was not zero throughout; none in slices, whose seconds mix environments.

    Sampling begins with the measured window: times are seconds since the first sample.

    Raises:
        ParseError: a line has an unknown shape.
    """
    if window.turns or not seconds.samples:
        return ()
    kinds = tell_kinds(seconds.titles, sessions, window)
    origin = seconds.samples[0].moment
    times: list[float] = []
    rows: list[Mapping[str, float]] = []
    for before, after in _stretches(seconds.samples, origin + window.seconds):
        passed = after.moment - before.moment
        found = {
            **rates(read_counters(before), read_counters(after), passed, ticks),
            **process_rates(before, after, kinds, ticks),
        }
        rows.append(dict.fromkeys(found, math.nan) if passed > _LATE else found)
        times.append(after.moment - origin)
    return tuple(_series(times, rows))


def unseen_seconds(seconds: Seconds, window: Window) -> float:
    """The share of the measured time, in slices of the time between the first turn and the last, that was not seen.

    Not seen is what lies between two samples that are too far apart, but for the second that one stands for, and what
    comes after the last one.
    """
    length = window.turns[-1][1] - window.turns[0][0] if window.turns else window.seconds
    if length <= 0:
        return 0.0
    moments = sorted(sample.moment for sample in seconds.samples)
    if not moments:
        return 1.0
    end = moments[0] + length
    steps = (min(after, end) - before for before, after in pairwise(moments) if before < end)
    seen = sum(step if step <= _LATE else 1.0 for step in steps)
    return max(0.0, 1 - (seen + _AFTER) / length)


def _stretches(samples: Sequence[HostSample], end: float) -> Iterator[tuple[HostSample, HostSample]]:
    """Neighbouring samples in the window, of which the last one may come a little after its end."""
    kept = [samples[0]]
    for sample in samples[1:]:
        if sample.moment <= end + _AFTER and sample.moment - kept[-1].moment >= _SHORT:
            kept.append(sample)
    yield from pairwise(kept)


def _series(times: Sequence[float], rows: Sequence[Mapping[str, float]]) -> Iterator[Series]:
    for name in COURSES:
        if not any(name in row for row in rows):
            continue
        values = tuple(row.get(name, _nothing(name)) for row in rows)
        if any(value > 0 for value in values):
            yield Series(metric=name, times=tuple(times), values=values)


def _nothing(name: str) -> float:
    """A kind of process that was not there used nothing; what a host did not tell is not known."""
    return 0.0 if name.endswith(("_cpu", "_course")) and not name.startswith("host_") else math.nan
