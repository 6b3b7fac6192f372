"""Shifts of a series as it comes: cumulative sums, their threshold for a rate of false alarms, where a shift began.

A sum of what exceeds a reference value, never below zero, alarms at a threshold (Page, Biometrika 41, 1954). Of all
rules with the same rate of false alarms it is the fastest for a shift of twice the reference value (Moustakides, Annals
of Statistics 14, 1986). Values are logarithms against what is usual, so that 0 is usual.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.tails import find_point

_OVERSHOOT: Final = 1.166
"""Twice the mean overshoot of a standard normal random walk, which a threshold is raised by in the approximation."""
_TO_SIGMA: Final = 1.4826
"""Median absolute deviation of a normal distribution to its standard deviation."""
_LEAST_SCALE: Final = 0.01
_BATCHES: Final = (1, 6)
"""Steps of batches of which the scatter is looked at."""
_STRETCH: Final = 30
"""Steps within which the level of a series is taken for the same."""
_FEW: Final = 3.0
"""By how much the scatter of few batches is raised: by this many batches' share."""
_GRID: Final = 1.12 ** np.arange(24)
_SET: Final = -math.log(1 - math.sqrt(0.95))
"""Logarithms of the likelihood within which beginnings are in a set of 95 %."""
_LONGEST: Final = 2.0
"""Values beyond so many shifts count as that many."""
_ONE_SIDED: Final = 1.645


def run_length(reference: float, threshold: float) -> float:
    """Mean steps until a false alarm of a cumulative sum of standard normal values.

    The corrected diffusion approximation (Siegmund, Sequential Analysis, 1985, section 2.6).
    """
    scaled = 2 * reference * (threshold + _OVERSHOOT)
    return (math.exp(min(700.0, scaled)) - 1 - scaled) / (2 * reference**2)


@lru_cache(maxsize=4096)
def standard_threshold(reference: float, length: float) -> float:
    """The threshold for that mean number of steps until a false alarm, in standard deviations; at least 0."""
    return find_point(lambda threshold: 1 / run_length(reference, threshold), 1 / length) if length > 0 else 0.0


def without_level(values: FloatArray) -> FloatArray:
    """Values against the median of their stretch of `_STRETCH`: a level that changed now and then is no scatter.

    Of fewer than two stretches, against the median of all. Shape (n,); what is more than whole stretches is left out at
    the beginning.
    """
    number = values.size // _STRETCH
    if number < 2:  # noqa: PLR2004 - one stretch has no other level
        return values - np.median(values) if values.size else values
    stretches = values[values.size - number * _STRETCH :].reshape(number, _STRETCH)
    return np.asarray((stretches - np.median(stretches, axis=1, keepdims=True)).ravel())


def scale_of(values: FloatArray) -> float:
    """The standard deviation that single steps would need for sums to scatter as they do, robustly.

    That of batch means times the root of their length, from median absolute deviations; the larger one of steps and of
    batches, so that neighbours that are alike count.

    Args:
        values: without their level, in order of time, shape (n,).
    """
    found = _LEAST_SCALE
    whole = values.size >= 2 * _STRETCH
    for length in _BATCHES:
        number = values.size // length
        if number < 2 * _FEW:
            continue
        means = values[values.size - number * length :].reshape(number, length).mean(axis=1)
        spread = float(np.median(np.abs(means - np.median(means)))) * _TO_SIGMA
        # a level of its own takes a part of the scatter of each stretch
        held = 1 - length / _STRETCH if whole else 1.0
        found = max(found, spread * math.sqrt(length / held) * (1 + _FEW / number))
    return found


def tail_threshold(values: FloatArray, reference: float, length: float, least: float, clip: float) -> float:
    """The smallest threshold, from `least` on, that what was usual is unlikely to reach, tails and all.

    A sum of independent steps exceeds h with a probability of about exp(-c h), where the mean of exp(c x step) is 1
    (Cramér's exponent: Asmussen, Ruin Probabilities, section II.3). Here c is given, and h is searched.

    Args:
        values: what was usual, shape (n,).
        reference: of the cumulative sum.
        length: mean steps until a false alarm.
        least: in the unit of the values.
        clip: what one step can add is this part of the threshold.
    """
    thresholds = least * _GRID
    steps = (values - reference)[np.newaxis, :]
    limits = (thresholds / clip)[:, np.newaxis]
    exponent = max(1.0, math.log(length))
    means = np.exp(exponent / thresholds[:, np.newaxis] * np.clip(steps, -limits, limits)).mean(axis=1)
    fit = np.nonzero(means <= 1)[0]
    return float(thresholds[fit[0]] if fit.size else thresholds[-1])


@dataclass(slots=True)
class CumulativeSum:
    """One-sided: `value` grows by what a step exceeds `reference`, and `since` counts the steps since it was zero."""

    reference: float
    value: float = 0.0
    since: int = 0

    def add(self, value: float, weight: float, most: float) -> None:
        """A step.

        Args:
            value: against what is usual.
            weight: at most 1, less where the step tells less.
            most: what one step can add or take at most, so that outliers alone do not alarm.
        """
        gain = weight * max(-most, min(most, value - self.reference))
        self.value = max(0.0, self.value + gain)
        self.since = self.since + 1 if self.value > 0 else 0

    def clear(self) -> None:
        """As at the beginning."""
        self.value, self.since = 0.0, 0


def smallest_found(scale: float, reference: float, threshold: float, steps: int) -> float:
    """The shift that 95 % of stretches of so many steps alarm at: the sum's normal approximation at their end."""
    return reference + (threshold + _ONE_SIDED * scale * math.sqrt(steps)) / steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Where a shift begins: the first place after it, and the set of 95 % of such places."""

    place: int
    low: int
    high: int


def find_beginning(values: FloatArray, shift: float, variance: float) -> Beginning:
    """Where a shift from 0 to `shift` most likely began; it lasts to the end of the values.

    The set is that of all places with a likelihood that is not much smaller (Siegmund, Annals of Statistics 16, 1988).

    Args:
        values: shape (n,), n > 0; NaN where nothing is known.
        shift: above or below zero.
        variance: of a value, raised for neighbours that are alike.
    """
    bound = _LONGEST * abs(shift)
    gains = np.clip(np.nan_to_num(values, nan=shift / 2), -bound, bound) - shift / 2
    sums = np.cumsum(gains[::-1])[::-1] * shift
    place = int(np.argmax(sums))
    near = np.nonzero(sums >= sums[place] - _SET * max(variance, 1e-12))[0]
    return Beginning(place=place, low=int(near[0]), high=int(near[-1]))
