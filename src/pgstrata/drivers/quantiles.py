"""Quantiles of latencies: of a whole run, where only the group of each is known, and second by second. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.model.courses import PERCENTILES
from pgstrata.model.metrics import LATENCY_QUANTILES, Series

SAMPLES_BEYOND: Final = 100
"""A quantile is given only where this many samples lie on its rarer side: fewer, and a single outlier moves it."""
_BEYOND_IN_A_STEP: Final = 20
"""Samples on the rarer side in a step of a course, which is drawn and not compared."""
_STEPS: Final = (1, 2, 5, 10, 15, 30, 60)
"""Lengths of steps in seconds."""
_FEWEST_STEPS: Final = 3
_LONGEST: Final = 1_000_000
"""Seconds, far beyond any run: longer ones are damaged logs."""
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


def quantiles_over_time(ended: npt.ArrayLike, values: npt.ArrayLike) -> tuple[Series, ...]:
    """Median, 95th and 99th percentile by whole seconds; one that has too few samples for three steps is left out.

    Steps are as short as they can be with 20 samples on the rarer side of the percentile in the typical step: a second,
    or up to a minute, each second of which has the value of its step. Steps with less than half of that are left out.

    Args:
        ended: when each transaction ended, in seconds since the beginning, shape (samples,).
        values: its latency in seconds, shape (samples,).
    """
    seconds = np.floor(np.asarray(ended, dtype=np.float64)).astype(np.int64)
    if not seconds.size or seconds.min() < 0 or seconds.max() > _LONGEST:
        return ()
    order = np.argsort(seconds, kind="stable")
    seconds, latencies = seconds[order], np.asarray(values, dtype=np.float64)[order]
    found = (_course(metric, LATENCY_QUANTILES[metric], seconds, latencies) for metric in PERCENTILES)
    return tuple(series for series in found if series is not None)


def _course(
    metric: str, quantile: float, seconds: npt.NDArray[np.int64], latencies: npt.NDArray[np.float64]
) -> Series | None:
    """`seconds` are ascending."""
    last, needed = int(seconds[-1]) + 1, math.ceil(_BEYOND_IN_A_STEP / (1 - quantile))
    typical = float(np.median(np.bincount(seconds, minlength=last)))
    width = next((step for step in _STEPS if typical * step >= needed - _ROUNDING), last)
    if width * _FEWEST_STEPS > last:
        return None
    points = list(_by_step(seconds, latencies, quantile, width, math.ceil(needed / 2)))
    times = tuple(float(second + 1) for second, _ in points)
    return Series(metric=metric, times=times, values=tuple(value for _, value in points)) if points else None


def _by_step(
    seconds: npt.NDArray[np.int64], latencies: npt.NDArray[np.float64], quantile: float, width: int, fewest: int
) -> Iterator[tuple[int, float]]:
    last = int(seconds[-1]) + 1
    for start in (width * np.unique(seconds // width)).tolist():
        first, end = np.searchsorted(seconds, (start, start + width))
        if end - first >= fewest:
            value = float(np.quantile(latencies[first:end], quantile))
            yield from ((second, value) for second in range(start, min(start + width, last)))
