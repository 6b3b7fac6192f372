"""How the time per transaction goes through a day, by former days of the same weekday, or by all.

Days are those of UTC, so that a change to summer time is a change of what is usual.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from pgstrata.model.incidents import LoadStep
from pgstrata.stats.ranks import FloatArray

DAY: Final = 86_400
_MINUTE: Final = 60
_MINUTES: Final = DAY // _MINUTE
_NEAR: Final = 10
"""Minutes to either side that tell of a minute."""
FEWEST: Final = 3
"""Former days, or weeks, from which on they are compared with: one day that was unlike the others is outvoted."""
_MOST_DAYS: Final = 7
_MOST_WEEKS: Final = 4
_WEEK: Final = 7
_MOSTLY: Final = 0.5
KEPT: Final = _MOST_WEEKS * _WEEK * DAY
"""Seconds of former days that are compared with at most."""


class Memory:
    """Minutes of former days; what is usual on a day is made of the days before it alone."""

    def __init__(self) -> None:
        self._days: dict[int, FloatArray] = {}
        self._smooth: dict[int, FloatArray] = {}
        self._usual: tuple[int, FloatArray | None, int] = (-1, None, 0)

    def add(self, begin: int, load: float, looks: int, commits: float) -> None:
        """A minute from `begin` on: sessions over the looks, transactions per second; NaN where not known."""
        if not (looks > 0 and load > 0 and commits > 0):
            return
        day, second = divmod(begin, DAY)
        minutes = self._days.setdefault(day, np.full(_MINUTES, np.nan))
        minutes[second // _MINUTE] = np.log(load / looks / commits)
        for old in [each for each in self._days if each < day - _MOST_WEEKS * _WEEK]:
            del self._days[old]
            self._smooth.pop(old, None)

    def add_steps(self, steps: Sequence[LoadStep]) -> None:
        """A minute by its steps."""
        commits = [step.commits for step in steps if math.isfinite(step.commits)]
        if commits:
            begin = (steps[0].end - 1) // _MINUTE * _MINUTE
            load, looks = math.fsum(step.load for step in steps), sum(step.looks for step in steps)
            self.add(begin, load, looks, math.fsum(commits) / len(commits))

    def take(self, other: Memory) -> None:
        """What another one knows, instead of what this one knows."""
        self._days, self._smooth, self._usual = other._days, {}, (-1, None, 0)

    def usual(self, moment: int) -> FloatArray | None:
        """Logarithms of the time per transaction by minute of the day, for the day of a moment; None if not known."""
        day = moment // DAY
        if self._usual[0] != day:
            self._usual = (day, *self._make(day))
        return self._usual[1]

    @property
    def days(self) -> int:
        """Former days that the last asked day is compared with."""
        return self._usual[2]

    def _make(self, day: int) -> tuple[FloatArray | None, int]:
        weeks = [day - _WEEK * number for number in range(1, _MOST_WEEKS + 1)]
        before = [day - number for number in range(1, _MOST_DAYS + 1)]
        for chosen in (weeks, before):
            curves = [curve for curve in map(self._curve, chosen) if curve is not None]
            if len(curves) >= FEWEST:
                found = np.nanmedian(_aligned(curves), axis=0)
                return found, len(curves)
        return None, 0

    def _curve(self, day: int) -> FloatArray | None:
        """A day's course, smooth and without holes; None of one that is hardly known."""
        minutes = self._days.get(day)
        if minutes is None or np.isfinite(minutes).mean() < _MOSTLY:
            return None
        if day not in self._smooth:
            self._smooth[day] = _smooth(minutes)
        return self._smooth[day]


def _smooth(minutes: FloatArray) -> FloatArray:
    """Running medians, with the ends of the day as they are; holes are filled in straight lines."""
    known = np.isfinite(minutes)
    places = np.arange(minutes.size)
    whole = np.interp(places, places[known], minutes[known])
    padded = np.pad(whole, _NEAR, mode="edge")
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEAR + 1), axis=1))


def _aligned(curves: list[FloatArray]) -> FloatArray:
    """Each day against its own median: days that were slower as a whole have the same course."""
    return np.stack([curve - np.median(curve) for curve in curves])


def at_minutes(curve: FloatArray | None, moments: FloatArray) -> FloatArray:
    """The course at moments, shape (n,), Unix seconds; 0 without one."""
    if curve is None:
        return np.zeros(moments.size)
    return np.asarray(curve[(moments.astype(np.int64) % DAY) // _MINUTE])
