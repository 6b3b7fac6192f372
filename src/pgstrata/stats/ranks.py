"""The capped signed-rank test, its inversion to an interval, and the Hodges-Lehmann estimate.

The functions work along the last axis, so that thousands of comparisons of equal size are one call.

Sources: Hodges & Lehmann 1963 (estimate, inversion over Walsh averages); Hajek, Sidak & Sen 1999, chapter 4 (signed
rank statistics with non-decreasing scores). The cap keeps an outlier from taking the top rank alone.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

# D - theta at a Walsh average theta should give exact zeros and exact ties; in doubles it leaves residues of about
# 1e-16 times the size of the logarithms that D is made of (below 1e-14 for any ratio that can be measured). No tool
# prints a value to twelve digits, so two |D| that are closer than this are the same number.
TIE: Final = 1e-12
# Sums of scores are multiples of a half: less than half of that is below the next one.
HALF_A_STEP: Final = 0.25


def tie_width(d: npt.ArrayLike) -> FloatArray:
    """Differences that count as none: shape (..., 1) for d of shape (..., n); grows with max |d| above 1."""
    widest = np.abs(np.asarray(d, dtype=np.float64)).max(axis=-1, keepdims=True)
    return np.asarray(TIE * np.maximum(1.0, widest), dtype=np.float64)


@cache
def _walsh_pairs(n: int) -> tuple[IndexArray, IndexArray]:
    first, second = np.triu_indices(n)
    return first, second


def walsh_averages(d: npt.ArrayLike) -> FloatArray:
    """Sorted averages (d_i + d_j) / 2 for i <= j.

    Args:
        d: differences, shape (..., n), n >= 1.

    Returns:
        Shape (..., n (n + 1) / 2), ascending.

    Raises:
        ValueError: there is no difference.
    """
    array = _differences(d)
    first, second = _walsh_pairs(array.shape[-1])
    averages = (array[..., first] + array[..., second]) / 2
    averages.sort(axis=-1)
    return np.asarray(averages, dtype=np.float64)


def hodges_lehmann_of_walsh(ascending: FloatArray) -> FloatArray:
    """Median of Walsh averages that are there already, ascending along the last axis."""
    count = ascending.shape[-1]
    return np.asarray((ascending[..., (count - 1) // 2] + ascending[..., count // 2]) / 2, dtype=np.float64)


def capped_scores(n: int) -> FloatArray:
    """Scores min(i, ceil(n / 2)) of the ranks i = 1..n, shape (n,)."""
    return np.minimum(np.arange(1, n + 1, dtype=np.float64), _cap(n))


def _cap(n: int) -> int:
    return (n + 1) // 2


def signed_rank_sums(d: npt.ArrayLike, theta: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Sums S+ and S- of the capped scores of |d - theta| over d >= theta and over d <= theta.

    Equal |d - theta| get midranks, which are capped afterwards. A difference equal to theta counts in both sums:
    counted in neither, 20 % zeros would give 10 % false verdicts.

    Args:
        d: differences, shape (..., n).
        theta: shape (...), or one number for all.

    Returns:
        S+ and S-, each of shape (...). Both are monotone in theta, S+ falls and S- rises, ties included: a difference
        below theta only ever gains rank while theta grows.

    Raises:
        ValueError: there is no difference.
    """
    array = _differences(d)
    width = tie_width(array)
    signed = array - np.asarray(theta, dtype=np.float64)[..., np.newaxis]
    scores = _midrank_scores(np.abs(signed), width)
    plus = np.where(signed >= -width, scores, 0.0).sum(axis=-1)
    minus = np.where(signed <= width, scores, 0.0).sum(axis=-1)
    return np.asarray(plus, dtype=np.float64), np.asarray(minus, dtype=np.float64)


def _midrank_scores(sizes: FloatArray, width: FloatArray) -> FloatArray:
    """Capped midranks of `sizes` along the last axis, in its order; neighbours within `width` are equal."""
    n = sizes.shape[-1]
    order = np.argsort(sizes, axis=-1)
    ascending = np.take_along_axis(sizes, order, axis=-1)
    tied = np.diff(ascending, axis=-1) <= width
    ranks = np.broadcast_to(np.arange(1, n + 1, dtype=np.float64), sizes.shape)
    if tied.any():
        ranks = _average_ranks(ranks, tied)
    scores = np.empty_like(sizes)
    np.put_along_axis(scores, order, np.minimum(ranks, _cap(n)), axis=-1)
    return scores


def _average_ranks(ranks: FloatArray, tied: npt.NDArray[np.bool_]) -> FloatArray:
    """Midranks, where `tied` (..., n - 1) says that a rank and the next one belong together."""
    first, last = ranks.copy(), ranks.copy()
    first[..., 1:][tied] = 0.0
    last[..., :-1][tied] = np.inf
    first = np.maximum.accumulate(first, axis=-1)
    last = np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray((first + last) / 2, dtype=np.float64)


def capped_intervals(d: FloatArray, walsh: FloatArray, critical: int) -> tuple[FloatArray, FloatArray]:
    """The interval {theta: min(S+, S-) of d - theta > critical}, ends included, of each row; S are capped signed ranks.

    Args:
        d: differences, shape (g, n).
        walsh: their sorted Walsh averages, shape (g, n (n + 1) / 2).
        critical: the boundary's value for n.

    Returns:
        Low and high ends, each of shape (g,).

    Raises:
        ValueError: `critical` is so large that no theta is left.
    """
    # The upper end is the lower end of the mirrored differences.
    both = _lower_ends(np.concatenate([d, -d]), np.concatenate([walsh, -walsh[:, ::-1]]), critical)
    low, high = both[: len(d)], -both[len(d) :]
    if 2 * critical >= capped_scores(d.shape[-1]).sum() or (low > high).any():
        raise ValueError(f"a critical value of {critical} leaves no interval of {d.shape[-1]} differences")
    return low, high


def capped_centres(d: FloatArray, walsh: FloatArray) -> FloatArray:
    """The theta at which the capped sums S+ and S- are equal: the middle of all `capped_intervals`, shape (g,).

    Args:
        d: differences, shape (g, n).
        walsh: their sorted Walsh averages, shape (g, n (n + 1) / 2).
    """
    half = float(capped_scores(d.shape[-1]).sum()) / 2 - HALF_A_STEP
    both = _lower_ends(np.concatenate([d, -d]), np.concatenate([walsh, -walsh[:, ::-1]]), half)
    return np.asarray((both[: len(d)] - both[len(d) :]) / 2, dtype=np.float64)


def _lower_ends(d: FloatArray, walsh: FloatArray, critical: float) -> FloatArray:
    """Infimum of {theta: S-(d - theta) > critical} for each row, by bisection: S- rises with theta.

    S- changes only at Walsh averages, and its value at one of them is at most that in the gap behind it. So only gaps
    are tested, and the infimum is the Walsh average before the first gap in which S- is large enough. Behind the last
    Walsh average it always is.
    """
    rows = np.arange(len(d))
    left = np.zeros(len(d), dtype=np.intp)
    right = np.full(len(d), walsh.shape[-1] - 1, dtype=np.intp)
    while (left < right).any():
        gap = np.minimum((left + right) // 2, walsh.shape[-1] - 2)
        theta = (walsh[rows, gap] + walsh[rows, gap + 1]) / 2
        inside = signed_rank_sums(d, theta)[1] > critical
        right = np.where(inside, gap, right)
        left = np.where(inside, left, np.minimum(gap + 1, right))
    return walsh[rows, left]


def _differences(d: npt.ArrayLike) -> FloatArray:
    array = np.asarray(d, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError("at least one difference is needed")
    return array
