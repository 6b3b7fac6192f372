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
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.stats.boundaries import FIRST_LOOK, GRID, MAX_BLOCKS, Boundary, boundary
from pgstrata.stats.ranks import FloatArray, signed_rank_sums, tie_width

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class FastLook:
    """After `n` blocks all differences beyond max(ln(1 + `least`), `floors` * s0) and of one sign are enough."""

    n: int
    floors: float
    least: float


FAST: Final = (
    FastLook(n=3, floors=2.5, least=0.05),
    FastLook(n=4, floors=1.75, least=0.04),
    FastLook(n=5, floors=1.25, least=0.03),
    FastLook(n=6, floors=1.0, least=0.03),
)

COARSE: Final = 4.0
"""Half the width of the fast lane's interval in units of s0 / sqrt(n)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """Statistics of every look, each of shape (g, MAX_BLOCKS): column n - 1 after n blocks; NaN where there is no look.

    `zero` is at most the critical value where "no difference" is excluded, `edge` where the interval is inside +-delta;
    `lowest` and `highest` are the extremes of the differences so far, `middle` their median where the fast lane looks.
    """

    zero: FloatArray
    edge: FloatArray
    lowest: FloatArray
    highest: FloatArray
    middle: FloatArray


def look_at_all(samples: Sequence[FloatArray], deltas: FloatArray) -> Looks:
    """The statistics after each block.

    Args:
        samples: block differences in the order of blocks, each of shape (n,) with n <= MAX_BLOCKS.
        deltas: practical thresholds in log units, shape (g,).
    """
    d = np.full((len(samples), MAX_BLOCKS), np.nan)
    for row, sample in zip(d, samples, strict=True):
        row[: len(sample)] = sample
    zero, edge = np.full_like(d, np.nan), np.full_like(d, np.nan)
    for n in range(FIRST_LOOK, MAX_BLOCKS + 1):
        rows = np.flatnonzero(~np.isnan(d[:, n - 1]))
        if rows.size:
            zero[rows, n - 1], edge[rows, n - 1] = sums_beside(d[rows, :n], deltas[rows])
    middle = np.full_like(d, np.nan)
    for look in FAST:
        middle[:, look.n - 1] = np.median(d[:, : look.n], axis=-1)
    return Looks(
        zero=zero,
        edge=edge,
        middle=middle,
        lowest=np.minimum.accumulate(d, axis=-1),
        highest=np.maximum.accumulate(d, axis=-1),
    )


def sums_beside(d: FloatArray, deltas: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The columns `zero` and `edge` of one look: shape (g,) each, for differences (g, n) and thresholds (g,)."""
    beside = 2 * tie_width(d)[..., 0]
    plus, minus = signed_rank_sums(d, np.stack([beside, -beside, beside - deltas, deltas - beside]))
    return np.minimum(minus[0], plus[1]), np.maximum(minus[2], plus[3])


@cache
def critical_row(level: Boundary) -> FloatArray:
    """The critical values of a boundary after 1, 2, ... MAX_BLOCKS blocks; -1, which no sum reaches, where none is."""
    row = np.full(MAX_BLOCKS, -1.0)
    row[level.first - 1 :] = level.values
    row.setflags(write=False)
    return row


def fast_crossings(looks: Looks, floors: FloatArray) -> BoolArray:
    """Where the fast lane decides, shape (g, MAX_BLOCKS).

    Its coarse interval has to exclude zero: nobody trusts a direction whose own interval holds both. That costs at most
    0.05 blocks and no power (`bench/verdicts.py`).

    Args:
        looks: statistics of the looks.
        floors: noise floor s0 of each comparison in log units, shape (g,); NaN where there is no fast lane.
    """
    crossed = np.zeros(looks.zero.shape, dtype=np.bool_)
    for look in FAST:
        place = look.n - 1
        above, below = fast_sides(look, looks.lowest[:, place], looks.highest[:, place], looks.middle[:, place], floors)
        crossed[:, place] = above | below
    return crossed


def fast_sides(
    look: FastLook, lowest: FloatArray, highest: FloatArray, middle: FloatArray, floors: FloatArray
) -> tuple[BoolArray, BoolArray]:
    """Where a look of the fast lane finds a difference above zero, and below, shape (g,) each.

    Args:
        look: with its least difference and number of blocks.
        lowest: the least difference of the look, shape (g,).
        highest: the largest.
        middle: their median.
        floors: noise floors, shape (g,); NaN spreads through maximum and compares as false: no floor, no decision.
    """
    least = np.maximum(math.log1p(look.least), look.floors * floors)
    wide = np.abs(middle) > COARSE * floors / math.sqrt(look.n)
    return (lowest > least) & wide, (highest < -least) & wide


def repeated_levels(looks: Looks, n: IntArray) -> list[float | None]:
    """The smallest level of the grid whose boundary was crossed at any look up to n blocks, for each comparison."""
    seen = np.arange(1, MAX_BLOCKS + 1) <= n[:, np.newaxis]
    smallest = np.full(len(n), np.nan)
    for alpha in GRID:  # descending
        crossed = (seen & (looks.zero <= critical_row(boundary(alpha)))).any(axis=-1)
        smallest[crossed] = alpha
    return [None if math.isnan(level) else level for level in smallest.tolist()]
