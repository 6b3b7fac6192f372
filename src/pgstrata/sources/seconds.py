"""Throughput by the second of a run, and what its start shows of a warm-up that was too short."""

from __future__ import annotations

from typing import Final

import numpy as np

from pgstrata.model.metrics import TPS
from pgstrata.model.runs import RunRecord
from pgstrata.stats.ranks import FloatArray

_PARTS: Final = 5
FEWEST_SECONDS: Final = 2 * _PARTS + 1
"""At least two seconds in the first fifth, and a rest that they do not divide evenly."""
_HALF_A_SECOND: Final = 0.5


def seconds_of(run: RunRecord) -> FloatArray:
    """Throughput by second, shape (seconds,); empty where there is none, or nothing to divide by.

    A report that came late covers several seconds, and all of them get its value.
    """
    series = next((series for series in run.series if series.metric == TPS.name), None)
    if series is None or not series.times:
        return np.empty(0)
    # The catalogue keeps series in single precision: a run that was just derived must give the same figures.
    values = np.array(series.values, dtype=np.float32).astype(np.float64)
    if abs(series.times[-1] - values.size) > _HALF_A_SECOND:
        middles = np.arange(_HALF_A_SECOND, series.times[-1])
        values = values[np.minimum(np.searchsorted(series.times, middles), values.size - 1)]
    return values if np.isfinite(values).all() and values.sum() > 0 else np.empty(0)


def opening_of(run: RunRecord) -> float | None:
    """The difference of throughput in the first fifth of a run to the rest, as a share of the rest.

    None for runs in slices, which discard their first slices, for runs of fewer than 11 seconds, and where nothing was
    done after the first fifth.
    """
    return None if run.together else opening_of_seconds(seconds_of(run))


def opening_of_seconds(seconds: FloatArray) -> float | None:
    """As `opening_of`, of throughput by equal parts of a run, shape (parts,), such as seconds."""
    if seconds.size < FEWEST_SECONDS:
        return None
    first = seconds.size // _PARTS
    rest = float(seconds[first:].mean())
    return float(seconds[:first].mean()) / rest - 1 if rest > 0 else None
