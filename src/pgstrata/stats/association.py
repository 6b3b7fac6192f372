"""Whether two series of a server move together, and which one leads: what neighbouring steps share counts once.

Each series is replaced by normal scores of its ranks. Its shape over the day is taken out, and what another series (the
demand) tells of it. An autoregressive model leaves only what is new in each step (prewhitening); those residuals are
correlated at several lags. Of independent series such correlations are independent, with variance 1 / n (Haugh, Journal
of the American Statistical Association 71, 1976; Box, Jenkins & Reinsel, Time Series Analysis, chapter 12), more where
both are restless at the same times (Dalla, Giraitis & Phillips, Econometric Theory 38, 2022). Without prewhitening, two
series that merely drift seem to go together.

NaN is a step of which nothing is known: nothing is put in its place. Arrays are (series, steps).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.stats.batches import LEVEL, POWER_POINT
from pgstrata.stats.ranks import FloatArray

FEWEST_STEPS: Final = 60
"""Steps below which nothing is said: models and lags would use up too many of them."""
_STEPS_PER_ORDER: Final = 8
_MOST_ORDERS: Final = 24
_PIECE: Final = 200_000
"""Multiplications of one product of matrices, at most."""
_STEPS_PER_LAG: Final = 40
_EXACT: Final = 1e-12
_DIFFER: Final = 1.96 * math.sqrt(2)
_NORMAL: Final = NormalDist()


@cache
def _quantiles() -> tuple[FloatArray, FloatArray]:
    """The normal distribution's quantiles by the logit of probabilities, so close that a line between two is exact."""
    logits = np.linspace(-20, 20, 8001)
    return logits, np.array([_NORMAL.inv_cdf(1 / (1 + math.exp(-each))) for each in logits])


def normal_scores(values: FloatArray) -> FloatArray:
    """Van der Waerden's scores of the ranks of each series, midranks for equal values; NaN stays."""
    found = np.full(values.shape, np.nan)
    for row, scores in zip(values, found, strict=True):
        known = np.isfinite(row)
        if known.any():
            _, places, counts = np.unique(row[known], return_inverse=True, return_counts=True)
            ranks = np.cumsum(counts) - (counts - 1) / 2
            scores[known] = np.interp(np.log(ranks / (known.sum() + 1 - ranks)), *_quantiles())[places]
    return found


def remove_shape(values: FloatArray, bins: npt.NDArray[np.intp]) -> FloatArray:
    """The series without the mean of each bin, such as a quarter of an hour of the day; `bins` has shape (steps,)."""
    known = np.isfinite(values)
    found = np.empty_like(values)
    for row, mask, rest in zip(values, known, found, strict=True):
        size = int(bins.max()) + 1
        counts = np.bincount(bins[mask], minlength=size)
        sums = np.bincount(bins[mask], row[mask], minlength=size)
        rest[:] = row - (sums / np.maximum(counts, 1))[bins]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """What is new in each step of some series and not told by a driver; `fitted`: figures by which it was told."""

    values: FloatArray
    fitted: int


def clear(values: FloatArray, driver: FloatArray | None, lags: int) -> Cleared:
    """Residuals of each series: without its own past, and without what a driver, shape (steps,), tells of it.

    Series and driver go through the same filter, the autoregressive model of the series, before the one is regressed on
    the other, and residuals are prewhitened again (generalised least squares: Cochrane & Orcutt, Journal of the
    American Statistical Association 44, 1949). If they were regressed as they are, two series that drift like the
    driver by chance would both keep its steps, and so go together. The driver counts up to `lags` steps earlier and
    later, and with its second and third power, as far as the number of steps allows.
    """
    if driver is None:
        return Cleared(values=prewhiten(values), fitted=0)
    centred = values - _means(values)
    reach = min(lags, int(np.isfinite(driver).sum()) // _STEPS_PER_LAG)
    powers = np.stack([driver, driver**2, driver**3])
    found = np.full(values.shape, np.nan)
    fitted = 2 * reach + 4
    for row, rest in zip(centred, found, strict=True):
        weights = fit_autoregression(row)
        target, linear, square, cube = (_filter(each, weights) for each in (row, *powers))
        columns = [_shift(linear, lag) for lag in range(-reach, reach + 1)]
        every = np.stack([np.ones_like(driver), *columns, square, cube, target])
        known = np.isfinite(every).all(axis=0)
        inside = every[:, known]
        products = _products(inside, inside)
        told = np.linalg.lstsq(products[:-1, :-1], products[:-1, -1], rcond=None)[0]
        rest[known] = inside[-1] - np.einsum("i,ij->j", told, inside[:-1])
    return Cleared(values=prewhiten(found), fitted=fitted)


def _shift(values: FloatArray, lag: int) -> FloatArray:
    """The series so many steps later, NaN where there is none."""
    found = np.full_like(values, np.nan)
    size = values.size
    found[max(0, lag) : size + min(0, lag)] = values[max(0, -lag) : size - max(0, lag)]
    return found


def _filter(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Each value plus weighted ones before it, shape (steps,); NaN where one of them is not known."""
    found = np.convolve(values, weights)[: values.size]
    found[: weights.size - 1] = np.nan
    return found


def prewhiten(values: FloatArray) -> FloatArray:
    """What is new in each step: residuals of an autoregressive model of each series, NaN where it lacks a past."""
    return np.stack([_filter(row, fit_autoregression(row)) for row in values - _means(values)])


def fit_autoregression(centred: FloatArray) -> FloatArray:
    """The prediction error filter (1, a1, … ap) of a series without its mean, shape (steps,).

    It is fitted by Burg's method over all stretches without a gap (de Waele & Broersen, IEEE Transactions on Signal
    Processing 48, 2000). The order is chosen by Akaike's criterion.
    """
    known = np.isfinite(centred)
    count = int(known.sum())
    forward = backward = np.where(known, centred, 0.0)
    variance = _product(forward, forward) / max(count, 1)
    weights = found = np.ones(1)
    best = 0.0
    likelihood = 0.0
    for order in range(1, min(_MOST_ORDERS, count // _STEPS_PER_ORDER) + 1):
        # stretches that are too short for this order drop out
        known = known[1:] & known[:-1]
        ahead, behind = forward[1:] * known, backward[:-1] * known
        power = _product(ahead, ahead) + _product(behind, behind)
        if power <= _EXACT * variance:
            break
        reflection = -2 * _product(ahead, behind) / power
        forward, backward = ahead + reflection * behind, behind + reflection * ahead
        weights = np.append(weights, 0.0) + reflection * np.append(0.0, weights[::-1])
        likelihood += count * math.log(max(1 - reflection**2, _EXACT))
        if likelihood + 2 * order < best:
            best, found = likelihood + 2 * order, weights
    return found


def _product(one: FloatArray, other: FloatArray) -> float:
    """The inner product of two series, shape (steps,)."""
    return float(np.einsum("i,i->", one, other))


def _products(these: FloatArray, others: FloatArray) -> FloatArray:
    """Those of each with each of the others, piece by piece.

    Pieces are so small that a BLAS does not start threads for them: beside a busy server these wait for each other for
    longer than one of them takes.
    """
    width = max(64, _PIECE // (len(these) * len(others)))
    pieces = range(0, these.shape[1], width)
    total = np.zeros((len(these), len(others)))
    for begin in pieces:
        total += these[:, begin : begin + width] @ others[:, begin : begin + width].T
    return total


def _means(values: FloatArray) -> FloatArray:
    known = np.isfinite(values)
    counts = np.maximum(known.sum(axis=1, keepdims=True), 1)
    return np.asarray(np.where(known, values, 0.0).sum(axis=1, keepdims=True) / counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaggedPairs:
    """How each of some series goes with each of some others; arrays are (these, others) unless said otherwise.

    `lags` are steps, shape (lags,): with a positive one the others lead. `scores` are Fisher's z by its error, shape
    (lags, these, others), `best` the place of the largest in `lags`, `rho` the correlation there, `error` that of its
    z, `p` of the largest among all lags (Šidák), `pairs` the steps at which both are known. NaN: not known.
    """

    lags: npt.NDArray[np.intp]
    scores: FloatArray
    best: npt.NDArray[np.intp]
    rho: FloatArray
    error: FloatArray
    p: FloatArray
    pairs: FloatArray

    def interval_of(self, place: tuple[int, int]) -> tuple[float, float]:
        """Of the correlation of a pair, 95 % for the largest of all lags."""
        half = _largest_of(LEVEL, self.lags.size) * float(self.error[place])
        middle = math.atanh(max(-1 + _EXACT, min(1 - _EXACT, float(self.rho[place]))))
        return math.tanh(middle - half), math.tanh(middle + half)

    def lags_of(self, place: tuple[int, int]) -> tuple[int, int, int]:
        """The best lag of a pair, and the least and the greatest whose correlation is not surely a smaller one.

        Correlations of white residuals at two lags are nearly independent: their z differ by an error of sqrt(2).
        """
        scores = self.scores[:, *place]
        best = int(self.best[place])
        alike = np.flatnonzero(scores * np.sign(scores[best]) > abs(scores[best]) - _DIFFER)
        return int(self.lags[best]), int(self.lags[alike[0]]), int(self.lags[alike[-1]])


def correlate_lagged(these: FloatArray, others: FloatArray, most: int, fitted: int) -> LaggedPairs:
    """Rank correlations of residuals at lags from -most to most.

    Args:
        these: residuals, each white, in steps of one length.
        others: the same, of the same steps.
        most: the largest lag.
        fitted: figures that were fitted to each series before, which are no steps that tell anything.
    """
    ours, theirs = _moments(these), _moments(others)
    lags = np.arange(-most, most + 1)
    found = [_correlate(ours, theirs, int(lag), fitted) for lag in lags]
    rho, error, pairs = (np.stack(each) for each in zip(*found, strict=True))
    scores = np.arctanh(np.clip(rho, -1 + _EXACT, 1 - _EXACT)) / error
    best = np.abs(np.where(np.isfinite(scores), scores, 0.0)).argmax(axis=0)

    def at_best(values: FloatArray) -> FloatArray:
        return np.asarray(np.take_along_axis(values, best[np.newaxis], axis=0)[0])

    tails = np.vectorize(_tail, otypes=[np.float64])(at_best(scores))
    p = -np.expm1(lags.size * np.log1p(-np.minimum(tails, 1 - _EXACT)))
    return LaggedPairs(
        lags=lags, scores=scores, best=best, rho=at_best(rho), error=at_best(error), p=p, pairs=at_best(pairs)
    )


def _moments(residuals: FloatArray) -> FloatArray:
    """Whether a score is known, the score, and its square, 0 where it is not; shape (3, series, steps)."""
    scores = normal_scores(residuals)
    known = np.isfinite(scores)
    scores = np.where(known, scores, 0.0)
    return np.stack([known.astype(np.float64), scores, scores**2])


def _correlate(
    ours: FloatArray, theirs: FloatArray, lag: int, fitted: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Correlations with the others `lag` steps earlier, errors of Fisher's z, numbers of pairs."""
    size = ours.shape[2]
    seen, x, x_square = ours[:, :, max(0, lag) : size + min(0, lag)]
    others_seen, y, y_square = theirs[:, :, max(0, -lag) : size - max(0, lag)]
    pairs = _products(seen, others_seen)
    spread = _products(x_square, others_seen) * _products(seen, y_square)
    known = (pairs - fitted >= FEWEST_STEPS // 2) & (spread > 0)
    spread = np.where(known, spread, np.nan)
    rho = _products(x, y) / np.sqrt(spread)
    # of normal variables the mean product of squares is 1 + 2 rho squared
    restless = _products(x_square, y_square) * pairs / spread / (1 + 2 * rho**2)
    error = np.sqrt(np.maximum(1.0, restless) / np.where(known, pairs - fitted - 3, np.nan))
    return rho, error, pairs


def _tail(score: float) -> float:
    """P(|Z| >= |score|), 1 where it is not known."""
    return math.erfc(abs(score) / math.sqrt(2)) if math.isfinite(score) else 1.0


def adjust_dependent(p: Sequence[float]) -> tuple[float, ...]:
    """p values adjusted for false discoveries: of those of at most q, a share of at most q is wrong, on average.

    They may depend on each other in any way (Benjamini & Yekutieli, Annals of Statistics 29, 2001).
    """
    number = len(p)
    factor = number * _harmonic(number)
    adjusted, least = [1.0] * number, 1.0
    for rank, place in sorted(enumerate(sorted(range(number), key=lambda each: p[each]), 1), reverse=True):
        least = min(least, p[place] * factor / rank)
        adjusted[place] = least
    return tuple(adjusted)


def _harmonic(number: int) -> float:
    return math.fsum(1 / rank for rank in range(1, number + 1))


def detection_limit(error: float, tested: int, found: int, lags: int, level: float = LEVEL) -> float:
    """The correlation that would be found, one more beside those that were, in 80 % of such windows.

    Args:
        error: that of Fisher's z.
        tested: pairs in the family.
        found: those that were.
        lags: how many each pair was looked at.
        level: of false discoveries.
    """
    threshold = level * min(found + 1, tested) / (tested * _harmonic(tested))
    return math.tanh((_largest_of(threshold, lags) + POWER_POINT) * error)


def _largest_of(level: float, lags: int) -> float:
    """The size that the largest of so many normal deviates exceeds with a probability."""
    return -_NORMAL.inv_cdf(-math.expm1(math.log1p(-level) / lags) / 2)
