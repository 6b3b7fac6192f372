"""One split of ordered columns in two, or one dip between two others: is there any, by permutation, and where.

The columns are levels in their order, the rows blocks. Values are compared within their row alone, so that a block may
have any height; gaps are nan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.stats.ranks import TIE, FloatArray, IndexArray

_DIGITS: Final = 12
_CHUNK: Final = 2_000_000
_LEAST_CHUNK: Final = 250
# Values that are summed up at once: they fit into the cache of a processor.
_PART: Final = 200_000
# Places in random orders that are kept, two bytes each for all but the largest studies.
_MOST_KEPT: Final = 8_000_000
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
# Dips of any width are looked for along so many edges, narrow ones along more.
_MOST_FOR_ANY_WIDTH: Final = 12
_WIDEST_DIP: Final = 2


_Places = npt.NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draws:
    """Random orders: how many, in chunks of which size."""

    number: int
    size: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The column before which the values change; `smallest_p` is what the clearest split of the values would have.

    `smallest_by_edge` is the same for a split at each of the edges.
    """

    edge: int
    p: float
    smallest_p: float
    smallest_by_edge: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dip:
    """The columns from `first` to before `last` that differ from those on both sides; `loss` as `loss_of_split`."""

    first: int
    last: int
    p: float
    smallest_p: float
    loss: float


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
    found = _permute_windows(values, np.array([(0, edge) for edge in edges], dtype=np.intp), draws=draws, seed=seed)
    if found is None:
        return Split(edge=int(edges[0]), p=1.0, smallest_p=1.0)
    p, *smallest = found
    return Split(edge=place_split(values, edges), p=p, smallest_p=min(smallest), smallest_by_edge=tuple(smallest))


def find_dip(values: FloatArray, edges: IndexArray, *, draws: int, seed: int) -> Dip | None:
    """The columns that most likely differ from those on both sides of them, as `find_split`; None if none can.

    A step is blind to them: the means on either side of any edge hardly differ where the values recover. Of many edges
    only dips of a few levels are looked for (circular binary segmentation, Olshen et al. 2004, has all).
    """
    count = edges.size
    widest = count if count <= _MOST_FOR_ANY_WIDTH else _WIDEST_DIP
    windows = [(int(edges[i]), int(edges[j])) for i in range(count) for j in range(i + 1, min(count, i + widest + 1))]
    if not windows:
        return None
    found = _permute_windows(values, np.array(windows, dtype=np.intp), draws=draws, seed=seed)
    if found is None:
        return None
    kept = values[np.isfinite(values).sum(axis=1) > 1]
    scale = _scale(kept)
    losses = [_loss(kept, window, scale) for window in windows]
    first, last = windows[int(np.argmin(losses))]
    return Dip(first=first, last=last, p=found[0], smallest_p=min(found[1:]), loss=min(losses))


def _permute_windows(values: FloatArray, windows: IndexArray, *, draws: int, seed: int) -> list[float] | None:
    """The p of the largest difference inside a window, then the p of a perfect one of each; None without a difference.

    Args:
        values: see `find_split`.
        windows: first column and the one after the last, shape (windows, 2).
        draws: see `find_split`.
        seed: see `find_split`.
    """
    kept = values[np.isfinite(values).sum(axis=1) > 1]
    scores = _scores(kept)
    weights = _weights(scores, windows)
    if not np.isfinite(weights).any():
        return None
    size = max(_LEAST_CHUNK, _CHUNK // (scores.size + weights.size))
    chunks = _orders(np.isfinite(scores), _Draws(number=draws, size=size, seed=seed))
    # The order as measured is one of the permutations (Phipson & Smyth 2010).
    statistics = _statistics(scores, next(chunks), weights, windows)
    spreads = statistics.std(axis=0)
    largest = [_largest(statistics, spreads)]
    largest += [_largest(_statistics(scores, more, weights, windows), spreads) for more in chunks]
    found = np.append(largest[0][0], _clearest(scores, weights, spreads, windows))
    p = (np.concatenate(largest)[:, np.newaxis] >= found - _ROUNDING).mean(axis=0)
    # A clearest split that was not among the permutations has the probability of one of them.
    return [float(each) for each in np.maximum(p, 1 / (1 + draws))]


def place_split(values: FloatArray, edges: IndexArray) -> int:
    """The edge at which a step explains the values best.

    For each edge the step is the median over the rows of the difference of medians, and every row has its own centre;
    the sum of the squared residuals, cut off at three scales each, is smallest at the edge returned.
    """
    kept = values[np.isfinite(values).sum(axis=1) > 1]
    scale = _scale(kept)
    losses = [_loss(kept, (0, int(edge)), scale) for edge in edges]
    return int(edges[int(np.argmin(losses))])


def loss_of_split(values: FloatArray, edge: int) -> float:
    """What a step before the column `edge` leaves unexplained, see `place_split`."""
    kept = values[np.isfinite(values).sum(axis=1) > 1]
    return _loss(kept, (0, edge), _scale(kept))


def _loss(values: FloatArray, window: tuple[int, int], scale: float) -> float:
    first, last = window
    inside, outside = values[:, first:last], np.concatenate([values[:, :first], values[:, last:]], axis=1)
    both = np.isfinite(inside).any(axis=1) & np.isfinite(outside).any(axis=1)
    if not both.any():
        return np.inf
    step = np.median(_medians(outside[both]) - _medians(inside[both]))
    levelled = np.concatenate([inside, outside - step], axis=1)
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


def _weights(scores: FloatArray, windows: IndexArray) -> FloatArray:
    """What turns the sum of the scores inside a window into the difference of means, shape (rows, windows).

    The scores of a row add up to zero, so that the means of l of them and of the other m - l differ by the sum of the
    l times -m / (l (m - l)); nan where one side of a row is empty.
    """
    count = np.isfinite(scores).sum(axis=1, keepdims=True)
    inside = _count_inside(scores, windows)
    sides = inside * (count - inside)
    return np.asarray(np.where(sides > 0, -count / np.where(sides > 0, sides, 1), np.nan), dtype=np.float64)


def _count_inside(scores: FloatArray, windows: IndexArray) -> IndexArray:
    """How many columns of each window are no gaps, shape (rows, windows)."""
    running = np.pad(np.isfinite(scores).cumsum(axis=1), ((0, 0), (1, 0)))
    return np.asarray(running[:, windows[:, 1]] - running[:, windows[:, 0]], dtype=np.intp)


def _orders(there: npt.NDArray[np.bool_], drawn: _Draws) -> Iterator[IndexArray]:
    """Orders of the columns within each row, in chunks; the first of all is the one that is there.

    Drawing them takes far longer than what is done with them, and the same are needed again for each cell of a study:
    those of few values are kept.

    Args:
        there: shape (rows, columns), False for gaps, which stay where they are.
        drawn: how many orders there are beside the first.

    Yields:
        Places in the values of all rows, shape (columns, draws, rows).
    """
    key = there.shape, there.tobytes(), drawn
    for chunk in _kept_orders(*key) if drawn.number * there.size <= _MOST_KEPT else _draw_orders(*key):
        yield chunk.astype(np.intp)


@lru_cache(maxsize=4)
def _kept_orders(shape: tuple[int, int], there: bytes, drawn: _Draws) -> tuple[_Places, ...]:
    return tuple(_draw_orders(shape, there, drawn))


def _draw_orders(shape: tuple[int, int], there: bytes, drawn: _Draws) -> Iterator[_Places]:
    """As small numbers: there are millions of them."""
    random = np.random.default_rng(drawn.seed)
    size = math.prod(shape)
    same: _Places = np.arange(size).reshape(shape).astype(np.min_scalar_type(size))
    columns = [np.flatnonzero(row) for row in np.frombuffer(there, dtype=np.bool_).reshape(shape)]
    for start in range(0, drawn.number, drawn.size):
        count = min(drawn.size, drawn.number - start)
        first = int(start == 0)
        orders = np.empty((shape[1], first + count, shape[0]), dtype=same.dtype)
        orders[:] = same.T[:, np.newaxis]
        for row, places in enumerate(columns):
            alike = np.broadcast_to(same[row, places], (count, places.size))
            orders[places, first:, row] = random.permuted(alike, axis=1).T
        yield orders


def _clearest(scores: FloatArray, weights: FloatArray, spreads: FloatArray, windows: IndexArray) -> FloatArray:
    """Largest |statistic| that these scores can show, shape (windows,): those of the lowest or the highest inside."""
    ascending = np.sort(scores, axis=1)  # gaps come last
    count = np.isfinite(scores).sum(axis=1, keepdims=True)
    inside = _count_inside(scores, windows)
    running = np.pad(np.nancumsum(ascending, axis=1), ((0, 0), (1, 0)))
    lowest = np.take_along_axis(running, inside, axis=1)
    highest = running[:, -1:] - np.take_along_axis(running, count - inside, axis=1)
    found = np.zeros((2, len(windows), 2))
    for place, counted in enumerate(np.isfinite(weights).T):
        for kind, sums in enumerate((lowest, highest)):
            found[kind, place] = _combine((sums[counted, place] * weights[counted, place])[np.newaxis])
    return np.asarray(_standardise(found, spreads).max(axis=(0, 2)), dtype=np.float64)


def _statistics(scores: FloatArray, orders: IndexArray, weights: FloatArray, windows: IndexArray) -> FloatArray:
    """Mean and trimmed mean over the rows of the differences of means, (draws, windows, 2); 0 where there is none.

    Args:
        scores: shape (rows, columns).
        orders: see `_orders`.
        weights: shape (rows, windows).
        windows: shape (windows, 2).
    """
    found = np.zeros((orders.shape[1], len(windows), 2))
    known, values = np.isfinite(weights), np.nan_to_num(scores)
    step = max(1, _PART // scores.size)
    for start in range(0, len(found), step):
        part = slice(start, start + step)
        running = np.cumsum(np.take(values, orders[:, part]), axis=0)
        for place, (first, last) in enumerate(windows):
            counted = known[:, place]
            sums = running[last - 1] - running[first - 1] if first else running[last - 1]
            sums = sums if counted.all() else sums[:, counted]
            found[part, place] = _combine(sums * weights[counted, place])
    return found


def _combine(differences: FloatArray) -> FloatArray:
    """Mean and trimmed mean over the rows of each draw, shape (draws, 2); 0 without rows."""
    rows = differences.shape[1]
    if not rows:
        return np.zeros((len(differences), 2))
    trimmed = rows // _TRIMMED
    middle = np.sort(differences, axis=1)[:, trimmed : rows - trimmed]
    return np.stack([differences.mean(axis=1), middle.mean(axis=1)], axis=1)


def _largest(statistics: FloatArray, spreads: npt.NDArray[np.float64]) -> FloatArray:
    """Largest |statistic| in units of its SD, shape (draws,)."""
    return np.asarray(_standardise(statistics, spreads).max(axis=(1, 2)), dtype=np.float64)


def _standardise(statistics: FloatArray, spreads: npt.NDArray[np.float64]) -> FloatArray:
    """|statistic| in units of its SD, 0 where that is 0; shape (draws, edges, 2)."""
    known = spreads > _ROUNDING
    return np.asarray(np.where(known, np.abs(statistics) / np.where(known, spreads, 1.0), 0.0), dtype=np.float64)
