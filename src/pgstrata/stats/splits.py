"""One split of ordered columns in two: is there any, by permutation, and where does it lie.

The columns are levels in their order, the rows blocks. Values are compared within their row alone, so that a block may
have any height; gaps are nan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.stats.ranks import TIE, FloatArray, IndexArray

_DIGITS: Final = 12
_CHUNK: Final = 2_000_000
_LEAST_CHUNK: Final = 250
# Makes the lower quartile of |x - y| over pairs estimate the standard deviation (Rousseeuw & Croux 1993, Q_n). A step
# widens fewer than three quarters of the pairs of a row.
_QUARTILE_TO_SD: Final = 2.2219
_QUARTILE: Final = 0.25
_MOST_FOR_PAIRS: Final = 400
# Of five blocks one may be spoilt by a stalled run of the only level on one side.
_TRIMMED: Final = 5
_CENTRINGS: Final = 3
# Residuals count by their square up to this many scales, and no more beyond: what is further off has stalled.
_CUT_OFF: Final = 3.0
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The column before which the values change; `smallest_p` is what the clearest split of the values would have.

    `smallest_by_edge` is the same for a split at each of the edges.
    """

    edge: int
    p: float
    smallest_p: float
    smallest_by_edge: tuple[float, ...] = ()


def find_split(values: FloatArray, edges: IndexArray, *, draws: int, seed: int) -> Split:
    """The most likely split, with the p of the largest one over permutations of the columns within each row.

    Values are scored by their distance from the centre of their row, clipped at one scale (Huber 1981). The statistic
    of an edge is the difference of the mean scores right and left of it in each row, combined over the rows by the
    mean and by the mean without the most extreme fifth at either end, each in units of its SD over the permutations;
    the larger one counts. The test is exact whatever the scores are, because they do not depend on the columns' order.

    Args:
        values: shape (rows, columns), nan for a gap.
        edges: columns before which a split may lie, ascending, at least one.
        draws: number of permutations.
        seed: of the permutations.
    """
    kept = values[np.isfinite(values).sum(axis=1) > 1]
    scores = _scores(kept)
    weights = _weights(scores, edges)
    if not np.isfinite(weights).any():
        return Split(edge=int(edges[0]), p=1.0, smallest_p=1.0)
    random = np.random.default_rng(seed)
    size = max(_LEAST_CHUNK, _CHUNK // (scores.size + weights.size))
    # The order as measured is one of the permutations (Phipson & Smyth 2010).
    orders = np.concatenate([scores[np.newaxis], _permute(scores, min(size, draws), random)])
    statistics = _statistics(orders, weights, edges)
    spreads = statistics.std(axis=0)
    largest = [_largest(statistics, spreads)]
    for start in range(size, draws, size):
        more = _permute(scores, min(size, draws - start), random)
        largest.append(_largest(_statistics(more, weights, edges), spreads))
    # Ascending or descending within each row is the clearest split that these scores can show.
    clearest = np.stack([_sort_present(scores), -_sort_present(-scores)])
    by_edge = _standardise(_statistics(clearest, weights, edges), spreads).max(axis=(0, 2))
    found = np.append(largest[0][0], by_edge)
    p = (np.concatenate(largest)[:, np.newaxis] >= found - _ROUNDING).mean(axis=0)
    # A clearest split that was not among the permutations has the probability of one of them.
    p = np.maximum(p, 1 / (1 + draws))
    return Split(
        edge=place_split(values, edges),
        p=float(p[0]),
        smallest_p=float(p[1:].min()),
        smallest_by_edge=tuple(p[1:].tolist()),
    )


def place_split(values: FloatArray, edges: IndexArray) -> int:
    """The edge at which a step explains the values best.

    For each edge the step is the median over the rows of the difference of medians, and every row has its own centre;
    the sum of the squared residuals, cut off at three scales each, is smallest at the edge returned.
    """
    kept = values[np.isfinite(values).sum(axis=1) > 1]
    scale = _scale(kept)
    losses = [_loss(kept, int(edge), scale) for edge in edges]
    return int(edges[int(np.argmin(losses))])


def _loss(values: FloatArray, edge: int, scale: float) -> float:
    left, right = values[:, :edge], values[:, edge:]
    both = np.isfinite(left).any(axis=1) & np.isfinite(right).any(axis=1)
    if not both.any():
        return np.inf
    step = np.median(_medians(right[both]) - _medians(left[both]))
    levelled = np.concatenate([left, right - step], axis=1)
    residuals = np.round(levelled - _medians(levelled)[:, np.newaxis], _DIGITS)
    return float(np.nansum(np.minimum((residuals / scale) ** 2, _CUT_OFF**2)))


def _medians(rows: FloatArray) -> FloatArray:
    """Of each row, gaps left out; `nanmedian` takes several times as long, so that it is left to rows with gaps."""
    found = np.median(rows, axis=1) if np.isfinite(rows).all() else np.nanmedian(rows, axis=1)
    return np.asarray(found, dtype=np.float64)


def _scale(values: FloatArray) -> float:
    """Q_n of the values within their rows, and never zero."""
    if values.shape[1] > _MOST_FOR_PAIRS:
        # Of long rows values at even distances in their order stand for all.
        picked = np.linspace(0, values.shape[1] - 1, _MOST_FOR_PAIRS).astype(np.intp)
        values = np.sort(values, axis=1)[:, picked]
    first, second = np.triu_indices(values.shape[1], k=1)
    distances = np.abs(values[:, first] - values[:, second])
    distances = distances[np.isfinite(distances)]
    return max(_QUARTILE_TO_SD * float(np.quantile(distances, _QUARTILE)), TIE) if distances.size else TIE


def _scores(values: FloatArray) -> FloatArray:
    """Distances from the Huber centre of the row in scales, clipped at 1, centred on zero; nan for a gap."""
    if not values.size:
        return values
    scale = _scale(values)
    away = np.round(values - np.nanmedian(values, axis=1, keepdims=True), _DIGITS) / scale
    for _ in range(_CENTRINGS):
        away -= np.nanmean(np.clip(away, -1, 1), axis=1, keepdims=True)
    scores = np.clip(away, -1, 1)
    return np.asarray(np.round(scores - np.nanmean(scores, axis=1, keepdims=True), _DIGITS), dtype=np.float64)


def _weights(scores: FloatArray, edges: IndexArray) -> FloatArray:
    """What turns the sum of the scores left of an edge into the difference of means, shape (rows, edges).

    The scores of a row add up to zero, so that the means of l of them and of the other m - l differ by the sum of the
    l times -m / (l (m - l)); nan where one side of a row is empty.
    """
    present = np.isfinite(scores)
    count = present.sum(axis=1, keepdims=True)
    left = present.cumsum(axis=1)[:, edges - 1]
    sides = left * (count - left)
    return np.asarray(np.where(sides > 0, -count / np.where(sides > 0, sides, 1), np.nan), dtype=np.float64)


def _permute(scores: FloatArray, draws: int, random: np.random.Generator) -> FloatArray:
    """Shape (draws, rows, columns): the scores of each row in a new order, gaps staying where they are."""
    drawn = np.full((draws, *scores.shape), np.nan)
    for row, values in enumerate(scores):
        places = np.flatnonzero(np.isfinite(values))
        drawn[:, row, places] = random.permuted(np.broadcast_to(values[places], (draws, places.size)), axis=1)
    return drawn


def _sort_present(scores: FloatArray) -> FloatArray:
    """Scores ascending within each row, gaps staying where they are."""
    ascending = scores.copy()
    for row in ascending:
        present = np.isfinite(row)
        row[present] = np.sort(row[present])
    return ascending


def _statistics(orders: FloatArray, weights: FloatArray, edges: IndexArray) -> FloatArray:
    """Mean and trimmed mean over the rows of the differences of means: shape (draws, edges, 2), 0 where there is none.

    Args:
        orders: scores, shape (draws, rows, columns).
        weights: shape (rows, edges).
        edges: shape (edges,).
    """
    whole = bool(np.isfinite(orders[0]).all())
    running = np.cumsum(orders, axis=2) if whole else np.nancumsum(orders, axis=2)
    found = np.zeros((len(orders), edges.size, 2))
    for edge, counted in enumerate(np.isfinite(weights).T):
        sums = running[:, :, edges[edge] - 1] if counted.all() else running[:, counted, edges[edge] - 1]
        ascending = np.sort(sums * weights[counted, edge], axis=1)
        rows = ascending.shape[1]
        if rows:
            trimmed = rows // _TRIMMED
            found[:, edge, 0] = ascending.mean(axis=1)
            found[:, edge, 1] = ascending[:, trimmed : rows - trimmed].mean(axis=1)
    return found


def _largest(statistics: FloatArray, spreads: npt.NDArray[np.float64]) -> FloatArray:
    """Largest |statistic| in units of its SD, shape (draws,)."""
    return np.asarray(_standardise(statistics, spreads).max(axis=(1, 2)), dtype=np.float64)


def _standardise(statistics: FloatArray, spreads: npt.NDArray[np.float64]) -> FloatArray:
    """|statistic| in units of its SD, 0 where that is 0; shape (draws, edges, 2)."""
    known = spreads > _ROUNDING
    return np.asarray(np.where(known, np.abs(statistics) / np.where(known, spreads, 1.0), 0.0), dtype=np.float64)
