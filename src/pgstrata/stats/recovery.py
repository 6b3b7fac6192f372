"""Dips and peaks along ordered columns: the second edge of a change that goes back, beside an edge that was found.

The search halves the axis and the level with it, so that beside a step of few repeats nothing more can be found: of
levels that dip and recover only one edge would be told, with the size of neither. The other edge needs no new search of
the whole axis: it lies beside the one that was found, goes the other way, and is tested against the scatter of all
values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.stats.ranks import TIE, FloatArray, IndexArray
from pgstrata.stats.splits import place_split
from pgstrata.stats.student import two_sided_point

_LEVEL: Final = 0.001
_FEWEST_FREE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """What is left of the values (in SD, never 0) without the means of their levels and blocks."""

    sd: float
    freedom: int


def find_scatter(values: FloatArray, edges: Sequence[int], *, paired: bool) -> Scatter | None:
    """Scatter of the values about their level, in blocks also about their block; None where too few say so.

    Args:
        values: shape (rows, columns), nan for a gap; one row without blocks.
        edges: columns before which the level changes.
        paired: whether rows are blocks.
    """
    groups = np.split(np.arange(values.shape[1]), np.asarray(edges, dtype=np.intp))
    free = int(np.isfinite(values).sum()) - len(groups) - (values.shape[0] - 1 if paired else 0)
    if free < _FEWEST_FREE:
        return None
    left = values.copy()
    # means of rows and columns settle at once without gaps, with them in a few turns
    for _ in range(8):
        if paired:
            left -= np.array([[_mean(row)] for row in left])
        for group in groups:
            left[:, group] -= _mean(left[:, group])
    return Scatter(sd=max(math.sqrt(float(np.nansum(left**2)) / free), TIE), freedom=free)


def find_recovery(values: FloatArray, edges: IndexArray, scatter: Scatter, *, rising: bool) -> int | None:
    """The edge at which the values of a stretch beside a step change the other way; None if they do not.

    Args:
        values: shape (rows, columns) of the stretch alone.
        edges: columns of it before which a change may lie.
        scatter: of all values of the axis.
        rising: whether the change looked for goes up.
    """
    if not edges.size or not np.isfinite(values).any():
        return None
    edge = place_split(values, edges)
    left, right = values[:, :edge], values[:, edge:]
    both = np.isfinite(left).any(axis=1) & np.isfinite(right).any(axis=1)
    if not both.any():
        return None
    change = float(np.mean(np.nanmedian(right[both], axis=1) - np.nanmedian(left[both], axis=1)))
    blocks = len(values) > 1
    repeats = (int(both.sum()), int(both.sum())) if blocks else (left.shape[1], right.shape[1])
    error = scatter.sd * math.sqrt(sum(1 / number for number in repeats))
    sure = abs(change) > error * two_sided_point(_LEVEL, scatter.freedom)
    return edge if sure and (change > 0) is rising else None


def _mean(values: FloatArray) -> float:
    """0 where there are none."""
    there = values[np.isfinite(values)]
    return float(there.mean()) if there.size else 0.0
