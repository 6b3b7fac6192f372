"""Practical thresholds of metrics that are noisier by nature than throughput."""

from collections.abc import Mapping
from typing import Final

DEFAULT_THRESHOLD: Final = 0.03
"""What matters where nobody says it, as a ratio."""

OWN_THRESHOLDS: Final[Mapping[str, float]] = {
    "latency_p10": 0.03,
    "latency_p20": 0.03,
    "latency_p30": 0.03,
    "latency_p40": 0.03,
    "latency_p50": 0.03,
    "latency_p60": 0.032,
    "latency_p70": 0.034,
    "latency_p80": 0.038,
    "latency_p90": 0.044,
    "latency_p95": 0.05,
    # rests on one transaction in a hundred
    "latency_p99": 0.15,
}
"""Ratios, by metric: the least that a difference must be to matter, where the experiment does not say it of that one.

Between p50 and p95 they grow linearly with ln(1 / (1 - q)), the logarithm of how rare the samples beyond the quantile
q become, rounded to 0.1 %; below the median they stay at its own.
"""


def own_threshold(metric: str) -> float:
    """The threshold, as a ratio, of a metric that nobody gave one."""
    return OWN_THRESHOLDS.get(metric, DEFAULT_THRESHOLD)
