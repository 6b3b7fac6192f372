"""What the sequential rule sees after each block, for many comparisons at once; verdicts are made of it in `rule`.

A look needs no interval: the interval of `ranks.capped_intervals` excludes "no difference" exactly where a sum of
scores just beside zero is at most the critical value, and lies inside +-delta exactly where the sums just inside
-delta and delta are. "Beside" is twice the width of a tie, so that an end within rounding of zero excludes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from pgstrata.model.plan import HORIZON
from pgstrata.stats.boundaries import FIRST_LOOK, Boundaries, Boundary
from pgstrata.stats.ranks import FloatArray, signed_rank_sums, tie_width

IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """Statistics of every look, each of shape (g, HORIZON): column n - 1 after n blocks; NaN where there is no look.

    `zero` is at most the critical value where "no difference" is excluded, `edge` where the interval is inside +-delta.
    """

    zero: FloatArray
    edge: FloatArray


def look_at_all(samples: Sequence[FloatArray], deltas: FloatArray) -> Looks:
    """The statistics after each block.

    Args:
        samples: block differences in the order of blocks, each of shape (n,) with n <= HORIZON.
        deltas: practical thresholds in log units, shape (g,).
    """
    d = np.full((len(samples), HORIZON), np.nan)
    for row, sample in zip(d, samples, strict=True):
        row[: len(sample)] = sample
    zero, edge = np.full_like(d, np.nan), np.full_like(d, np.nan)
    for n in range(FIRST_LOOK, HORIZON + 1):
        rows = np.flatnonzero(~np.isnan(d[:, n - 1]))
        if rows.size:
            zero[rows, n - 1], edge[rows, n - 1] = sums_beside(d[rows, :n], deltas[rows])
    return Looks(zero=zero, edge=edge)


def sums_beside(d: FloatArray, deltas: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The columns `zero` and `edge` of one look: shape (g,) each, for differences (g, n) and thresholds (g,)."""
    beside = 2 * tie_width(d)[..., 0]
    plus, minus = signed_rank_sums(d, np.stack([beside, -beside, beside - deltas, deltas - beside]))
    return np.minimum(minus[0], plus[1]), np.maximum(minus[2], plus[3])


@cache
def critical_row(level: Boundary) -> FloatArray:
    """The critical values of a boundary after 1, 2, ... HORIZON blocks; -1, which no sum reaches, where none is."""
    row = np.full(HORIZON, -1.0)
    row[level.first - 1 : level.last] = level.values
    row.setflags(write=False)
    return row


def repeated_levels(looks: Looks, n: IntArray, boundaries: Boundaries) -> list[float | None]:
    """The smallest level of the grid whose boundary was crossed at any look up to n blocks, for each comparison."""
    seen = np.arange(1, HORIZON + 1) <= n[:, np.newaxis]
    smallest = np.full(len(n), np.nan)
    for level in boundaries.levels:  # descending
        crossed = (seen & (looks.zero <= critical_row(level))).any(axis=-1)
        smallest[crossed] = level.alpha
    return [None if math.isnan(level) else level for level in smallest.tolist()]
