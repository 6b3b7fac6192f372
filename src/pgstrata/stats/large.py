"""Estimate and interval of samples whose Walsh averages or pairwise differences are too many to be written down.

10 000 blocks have 5 * 10^7 Walsh averages. They are never made: how many lie at or below a number is counted in
O(n log n) from the sorted values, and the sums S+ and S-, which are monotone in theta, are evaluated directly; both are
inverted by bisection. Ends and centres are then exact to the width of a tie, and intervals are rounded outwards by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypedDict

import numpy as np

from pgstrata.stats.ranks import HALF_A_STEP, FloatArray, capped_scores, signed_rank_sums, tie_width

# 20 100 Walsh averages: above it, counting is faster than sorting them.
WALSH_LIMIT: Final = 200
# Differences between two arms that are written down and sorted.
PAIR_LIMIT: Final = 1_000_000


class Ends(TypedDict):
    """Both ends of an interval."""

    low: float
    high: float


def capped_centre_of_many(d: FloatArray) -> float:
    """The theta at which the capped sums S+ and S- are equal, shape (n,), to within the width of a tie.

    The estimate that belongs to the capped test, and so lies inside all of its intervals, as the median of the Walsh
    averages, which belongs to the test without caps, need not do.
    """
    half = float(capped_scores(d.size).sum()) / 2 - HALF_A_STEP
    low, high = float(d.min()), float(d.max())
    step = _step(d)
    first = _first_above(half, lambda theta: float(signed_rank_sums(d, theta)[1]), low, high, step)
    last = -_first_above(half, lambda theta: float(signed_rank_sums(-d, theta)[1]), -high, -low, step)
    return (first + last) / 2


def capped_interval_of_many(d: FloatArray, critical: int) -> Ends:
    """As `ranks.capped_intervals`, of one d, shape (n,), rounded outwards by the width of a tie.

    Raises:
        ValueError: `critical` is so large that no theta is left.
    """
    if 2 * critical >= capped_scores(d.size).sum():
        raise ValueError(f"a critical value of {critical} leaves no interval of {d.size} differences")
    low, high = float(d.min()), float(d.max())
    step = _step(d)
    width = float(tie_width(d)[0])
    # The upper end is the lower end of the mirrored differences.
    first = _first_above(critical, lambda theta: float(signed_rank_sums(d, theta)[1]), low, high, step)
    last = -_first_above(critical, lambda theta: float(signed_rank_sums(-d, theta)[1]), -high, -low, step)
    return Ends(low=max(first - width, low), high=min(last + width, high))


def shift_quantiles(x: FloatArray, y: FloatArray, ranks: tuple[int, ...]) -> tuple[float, ...]:
    """The k-th smallest of all x_i - y_j for each k of `ranks` (1-based), x of shape (n,) and y of shape (m,).

    Exact up to `PAIR_LIMIT` differences, beyond to within the width of a tie.
    """
    if x.size * y.size <= PAIR_LIMIT:
        shifts = np.subtract.outer(x, y).ravel()
        shifts.sort()
        return tuple(float(shifts[rank - 1]) for rank in ranks)
    other = np.sort(y)

    def at_most(theta: float) -> int:
        return x.size * y.size - int(np.searchsorted(other, x - theta, side="left").sum())

    low, high = float(x.min() - y.max()), float(x.max() - y.min())
    step = _step(np.array([low, high]))
    return tuple(_first_above(rank - 1, at_most, low, high, step) for rank in ranks)


def _step(d: FloatArray) -> float:
    return float(tie_width(d)[0]) / 8


def _first_above(limit: float, rising: Callable[[float], float], low: float, high: float, step: float) -> float:
    """The smallest theta in [low, high] at which `rising` exceeds the limit, from above and to within `step`."""
    if rising(low) > limit:
        return low
    while high - low > step:
        middle = (low + high) / 2
        if rising(middle) > limit:
            high = middle
        else:
            low = middle
    return high
