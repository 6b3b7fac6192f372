"""Quantiles of latencies of which a load generator tells only in which group each lies. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.model.metrics import LATENCY_QUANTILES

SAMPLES_BEYOND: Final = 100
"""A quantile is given only where this many samples lie on its rarer side: fewer, and a single outlier moves it."""
# In floating point 100 samples leave 9.999... of them beyond 0.9.
_ROUNDING: Final = 1e-6


def grouped_quantiles(edges: npt.ArrayLike, counts: npt.ArrayLike) -> Mapping[float, float]:
    """The supported quantiles of values of which only the group is known, in the unit of the edges.

    Values are taken as evenly spread over their group: linear interpolation of the distribution function between its
    known points (quantiles of grouped data: Kendall & Stuart, The Advanced Theory of Statistics 1, chapter 2). Where
    thousands of values share one step, their share on either side of a quantile tells more than the step itself: two
    arms at 12 us would otherwise be equal or 8 % apart.

    Args:
        edges: both ends of each group, ascending, shape (groups, 2).
        counts: values in each group, none of them zero, shape (groups,).
    """
    ends, sizes = np.asarray(edges, dtype=np.float64).reshape(-1, 2), np.asarray(counts, dtype=np.int64)
    reached = np.cumsum(sizes)
    samples = int(sizes.sum())
    known = supported_quantiles(samples)
    wanted = np.array(known, dtype=np.float64) * samples
    places = np.searchsorted(reached, wanted - _ROUNDING)
    low, high = ends[places].T
    share = 1 - np.maximum(reached[places] - wanted, 0) / sizes[places]
    return dict(zip(known, (low + share * (high - low)).tolist(), strict=True))


def supported_quantiles(samples: int) -> tuple[float, ...]:
    """The quantiles, ascending, that so many samples support."""
    return tuple(
        quantile
        for quantile in LATENCY_QUANTILES.values()
        if samples * min(quantile, 1 - quantile) >= SAMPLES_BEYOND - _ROUNDING
    )
