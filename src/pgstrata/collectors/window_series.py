"""Samples that were due each second as series over the seconds of a run that was alone, and what they missed. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, Protocol, TypeVar

from pgstrata.model.courses import COURSES
from pgstrata.model.metrics import Series
from pgstrata.model.reasons import Reason
from pgstrata.ports.collector import Window

_LATE: Final = 2.5
"""Seconds between two samples, one of which was due after each: what lies between is not known second by second."""
_AFTER: Final = 0.5
_SHORT: Final = 0.1
"""Seconds that are too short for a rate: moments are known to a hundredth."""

MOST_UNSEEN: Final = 0.2
"""Share of a window that may go unseen without a word."""

Values = Mapping[str, float]


class Timed(Protocol):
    """What was seen at one moment, in seconds of any clock."""

    @property
    def moment(self) -> float: ...


Sample = TypeVar("Sample", bound=Timed)


def _nothing(_name: str) -> float:
    return math.nan


def make_series(
    samples: Sequence[Sample],
    window: Window,
    rates: Callable[[Sample, Sample], Values],
    missing: Callable[[str], float] = _nothing,
    subject: str = "",
) -> tuple[Series, ...]:
    """A series for each kind that was seen and was not zero throughout; none in slices, whose seconds mix environments.

    Sampling begins with the measured window: times are seconds since the first sample.

    Args:
        samples: in order of time.
        window: the measured one.
        rates: values by name of what happened between two samples; NaN, or nothing, where that is not known.
        missing: the value of a kind in a stretch of which nothing is told.
        subject: what was looked at, where it is one of several.
    """
    if window.turns or not samples:
        return ()
    origin = samples[0].moment
    times: list[float] = []
    rows: list[Values] = []
    for before, after in _stretches(samples, origin + window.seconds):
        found = rates(before, after)
        rows.append(dict.fromkeys(found, math.nan) if after.moment - before.moment > _LATE else found)
        times.append(after.moment - origin)
    return tuple(replace(one, subject=subject) for one in _series(times, rows, missing))


def unseen_seconds(samples: Sequence[Timed], window: Window, late: float = 0.0) -> float:
    """The share of the measured time, in slices of the time between the first turn and the last, that was not seen.

    Not seen is what lies between two samples that are too far apart, but for the second that one stands for, and what
    comes after the last one. `late` are seconds by which the last one may come before the end of the time.
    """
    length = window.turns[-1][1] - window.turns[0][0] if window.turns else window.seconds
    if length <= 0:
        return 0.0
    moments = sorted(sample.moment for sample in samples)
    if not moments:
        return 1.0
    end = moments[0] + length
    steps = (min(after, end) - before for before, after in pairwise(moments) if before < end)
    seen = sum(step if step <= _LATE else 1.0 for step in steps)
    return max(0.0, 1 - (seen + _AFTER + late) / length)


def doubt_unseen(share: float, sampler: str) -> tuple[Reason, ...]:
    """A remark where more than `MOST_UNSEEN` of the measured time was not seen; `share` is 0 to 1."""
    if share <= MOST_UNSEEN:
        return ()
    return (Reason(code="samples_missing", how=sampler, value=share),)


def _stretches(samples: Sequence[Sample], end: float) -> Iterator[tuple[Sample, Sample]]:
    """Neighbouring samples in the window, of which the last one may come a little after its end."""
    kept = [samples[0]]
    for sample in samples[1:]:
        if sample.moment <= end + _AFTER and sample.moment - kept[-1].moment >= _SHORT:
            kept.append(sample)
    yield from pairwise(kept)


def _series(times: Sequence[float], rows: Sequence[Values], missing: Callable[[str], float]) -> Iterator[Series]:
    for name in COURSES:
        if not any(name in row for row in rows):
            continue
        values = tuple(row.get(name, missing(name)) for row in rows)
        if any(value > 0 for value in values):
            yield Series(metric=name, times=tuple(times), values=values)
