"""Means of series whose neighbours are alike, as the seconds of a server are, with errors that respect it.

A series is cut into batches that are long against its memory; their means are nearly independent (method of batch
means: Law, Simulation Modeling and Analysis, section 9.5.3). The memory is the integrated autocorrelation time by
Geyer's initial positive sequence (Statistical Science 7, 1992), that of the most persistent of several series.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.student import two_sided_point, two_sided_tail

FEWEST_BATCHES: Final = 5
"""Batches of a window below which its scatter is not known."""
MOST_BATCHES: Final = 40
_FEWEST_MEMORIES: Final = 2.0
"""Memories in a window below which nothing is known of its mean."""
_MOST_ALIKE: Final = 0.99
_MEMORIES: Final = 3.0
"""Memories that a batch is long, where the window is long enough."""
LEVEL: Final = 0.05
_WIDE: Final = 1.0
"""Half-width of an interval of a logarithm beyond which the logarithm is far from linear."""
_MOST_LOGARITHM: Final = 100.0
_LEAST: Final = 1e-100
_MOST: Final = 1e100
POWER_POINT: Final = 0.842
"""Normal deviate of a power of 80 %."""


def memory_of(values: FloatArray) -> float:
    """1 + 2 x the sum of autocorrelations, in steps of the series; at least 1. Shape (n,)."""
    away = values - values.mean() if values.size else values
    spread = float(away @ away)
    if values.size < 2 * FEWEST_BATCHES or spread <= 0:
        return 1.0
    total, lag = 1.0, 1
    while lag + 1 < values.size // 2:
        pair = float(away[lag:] @ away[:-lag] + away[lag + 1 :] @ away[: -lag - 1]) / spread
        if pair <= 0:
            break
        total += 2 * pair
        lag += 2
    return max(1.0, total)


def shared_memory(windows: Sequence[Sequence[FloatArray]]) -> float:
    """The memory of the most persistent series, in steps, all windows together.

    Of short windows correlations come out too small: that of neighbours, summed over the windows, is corrected by
    (1 + 3 r) / n (Marriott & Pope, Biometrika 41, 1954), and the memory is at least that of a process of first order
    with it.

    Args:
        windows: of each window the same series, all in the same steps, shape (n,).
    """
    most = max((memory_of(series) for window in windows for series in window), default=1.0)
    for together in zip(*windows, strict=True):
        away = [series - series.mean() for series in together if series.size]
        spread = sum(float(each @ each) for each in away)
        number = sum(each.size for each in away)
        if spread > 0 and number > 2 * FEWEST_BATCHES:
            neighbours = sum(float(each[1:] @ each[:-1]) for each in away) / spread
            corrected = min(_MOST_ALIKE, neighbours + len(away) * (1 + 3 * max(0.0, neighbours)) / number)
            most = max(most, (1 + corrected) / (1 - corrected))
    return most


def batch_length(memory: float, sizes: Sequence[int]) -> int:
    """Steps of a batch for windows of these sizes."""
    wanted = max(math.ceil(_MEMORIES * memory), math.ceil(max(sizes) / MOST_BATCHES))
    return max(1, min(wanted, min(sizes) // FEWEST_BATCHES))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMean:
    """The mean of several series over a window, with the covariance of what its batches show.

    `mean` has shape (series,), `covariance` of that mean (series, series), `freedom` its degrees of freedom; 0 where
    there are too few batches.
    """

    mean: FloatArray
    covariance: FloatArray
    freedom: int


def batch_mean(values: FloatArray, weights: FloatArray, length: int, memory: float) -> BatchMean:
    """Weighted means of the series over all steps, and their errors.

    Batches that are too short against the memory scatter too little: their variance is raised by the share of the
    memory that they do not hold, and freedoms are at most as many as there are memories in the window.

    Args:
        values: shape (series, steps); where a weight is 0 they do not count.
        weights: shape (steps,), such as looks.
        length: steps of a batch; a rest at the end joins the last batch.
        memory: of the series, in steps.
    """
    total = float(weights.sum())
    safe = np.where(weights > 0, values, 0.0)
    mean = safe @ weights / total if total > 0 else np.full(values.shape[0], np.nan)
    unknown = BatchMean(mean=mean, covariance=np.full((mean.size, mean.size), np.nan), freedom=0)
    steps = int((weights > 0).sum())
    number = values.shape[1] // length if length else 0
    if number < FEWEST_BATCHES or total <= 0 or steps < _FEWEST_MEMORIES * memory:
        return unknown
    places = np.minimum(np.arange(values.shape[1]) // length, number - 1)
    shares = np.bincount(places, weights, minlength=number)
    away = (safe - mean[:, np.newaxis]) * weights / total
    sums = np.stack([np.bincount(places, row, minlength=number) for row in away])
    batches = int((shares > 0).sum())
    if batches < FEWEST_BATCHES:
        return unknown
    freedom = max(1, min(batches - 1, math.floor(steps / memory) - 1))
    held = 1 - min(0.5, memory / (2 * length) * (1 - math.exp(-2 * length / memory)))
    lost = 1 - min(0.5, memory / steps)
    covariance = sums @ sums.T * batches / (batches - 1) / held / lost
    return BatchMean(mean=mean, covariance=covariance, freedom=freedom)


def as_relative(found: BatchMean) -> BatchMean:
    """The same means with relative errors, NaN where a mean is not above zero."""
    safe = np.where(found.mean > 0, found.mean, np.nan)
    return BatchMean(mean=found.mean, covariance=found.covariance / safe[:, np.newaxis] / safe, freedom=found.freedom)


def paired_means(
    sides: tuple[FloatArray, FloatArray], weights: tuple[FloatArray, FloatArray], *, relative: bool
) -> tuple[BatchMean, BatchMean]:
    """Weighted means of two sides whose steps are pairs, such as blocks; what both have in common is no error.

    The variance of the mean difference (Student, of pairs) is handed on in halves, one to each side, with half of its
    degrees of freedom, so that `estimate` puts them together again.

    Args:
        sides: series of both, shape (series, steps); steps in which one is not finite do not count.
        weights: of both, shape (steps,).
        relative: whether differences are those of values relative to the mean of their side; else as they are.
    """
    known = np.isfinite(sides[0]).all(axis=0) & np.isfinite(sides[1]).all(axis=0) & (weights[0] > 0) & (weights[1] > 0)
    number = int(known.sum())
    ours, theirs = (side[:, known] for side in sides)
    if not number:
        unknown = np.full(ours.shape[0], np.nan)
        return (BatchMean(mean=unknown, covariance=np.full((unknown.size,) * 2, np.nan), freedom=0),) * 2
    means = [
        np.average(side, axis=1, weights=weight[known]) for side, weight in zip((ours, theirs), weights, strict=True)
    ]
    scales = [np.where(mean > 0, mean, np.nan) if relative else np.ones_like(mean) for mean in means]
    apart = ours / scales[0][:, np.newaxis] - theirs / scales[1][:, np.newaxis]
    away = apart - apart.mean(axis=1, keepdims=True)
    half = away @ away.T / max(1, number - 1) / number / 2
    freedom = (number - 1) // 2 if number >= FEWEST_BATCHES else 0
    first, second = (BatchMean(mean=mean, covariance=half, freedom=freedom) for mean in means)
    return first, second


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """A value with its interval of 95 %, its two-sided p against zero, and the change that would be found in 80 %."""

    value: float
    low: float
    high: float
    p: float
    limit: float


def estimate(
    value: float, variances: tuple[float, float], freedoms: tuple[int, int], *, small: bool = False
) -> Estimated | None:
    """A difference of two means by Welch's t; None where one side's scatter is not known.

    Args:
        value: the difference.
        variances: of both means.
        freedoms: degrees of freedom of both.
        small: the means are logarithms, and nearly all of the error is the relative one of a figure that is smaller on
            its side than on the other.
    """
    if 0 in freedoms or not all(map(math.isfinite, variances)):
        return None
    # of series that move together, rounding may leave less than nothing
    both = [max(0.0, part) for part in variances]
    variance = sum(both)
    # far from 1 the square of a variance is too large for a number, or nothing
    unit = 1.0 if not variance or _LEAST < variance < _MOST else variance
    parts = sum((part / unit) ** 2 / freedom for part, freedom in zip(both, freedoms, strict=True))
    freedom = max(1, min(sum(freedoms), math.floor((variance / unit) ** 2 / parts))) if parts > 0 else sum(freedoms)
    error = math.sqrt(variance)
    half = two_sided_point(LEVEL, freedom) * error
    if small and half > _WIDE:
        return _estimate_wide(value, error, freedom)
    return Estimated(
        value=value,
        low=value - half,
        high=value + half,
        p=_tail(value, error, freedom),
        limit=half + POWER_POINT * error,
    )


def _estimate_wide(value: float, error: float, freedom: int) -> Estimated:
    """The difference of two logarithms if one figure has a large relative error, such as a throughput near zero.

    An error as large as the smaller figure is small compared with the larger one. So the end of the interval that is
    nearer to no change is computed from the smaller figure itself, relative to the larger one, and not from its
    logarithm (Fieller, JRSS B 16, 1954, for a larger figure that is known well).
    """
    half = two_sided_point(LEVEL, freedom) * error
    near = math.log1p(half)
    sides = (half, near) if value < 0 else (near, half)
    return Estimated(
        value=value,
        low=value - sides[0],
        high=value + sides[1],
        p=_tail(math.expm1(min(_MOST_LOGARITHM, abs(value))), error, freedom),
        limit=half + POWER_POINT * error,
    )


def _tail(value: float, error: float, freedom: int) -> float:
    if error <= 0:
        return 1.0 if value == 0 else 0.0
    return two_sided_tail(abs(value) / error, freedom)
