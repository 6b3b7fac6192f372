"""Which percentiles of latency a run gives, and how many samples it needs for each. Pure."""

from __future__ import annotations

from typing import Final

from pgstrata.model.metrics import LATENCY_QUANTILES

SAMPLES_BEYOND: Final = 100
"""A quantile is given only where this many samples lie on its rarer side: fewer, and a single outlier moves it."""


def supported_quantiles(samples: int) -> tuple[float, ...]:
    """The quantiles, ascending, that so many samples support."""
    # The tolerance is for floating point, in which 100 samples leave 9.999... of them beyond 0.9.
    return tuple(
        quantile
        for quantile in LATENCY_QUANTILES.values()
        if samples * min(quantile, 1 - quantile) >= SAMPLES_BEYOND - 1e-6
    )
