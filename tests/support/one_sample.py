"""Estimate and interval of one sample, by what `pgstrata.stats.ranks` has for many."""

import numpy as np

from pgstrata.stats.ranks import capped_intervals, hodges_lehmann_of_walsh, walsh_averages


def hodges_lehmann(d):
    """Median of the Walsh averages."""
    return hodges_lehmann_of_walsh(walsh_averages(d))


def capped_interval(d, critical):
    """Low and high end of the interval at a critical value."""
    array = np.asarray(d, dtype=np.float64)[np.newaxis, :]
    low, high = capped_intervals(array, walsh_averages(array), critical)
    return float(low[0]), float(high[0])
