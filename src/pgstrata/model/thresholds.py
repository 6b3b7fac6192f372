"""Practical thresholds of metrics that are noisier by nature than throughput."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OWN_THRESHOLDS: Final[Mapping[str, float]] = {
    "latency_p50": 0.03,
    "latency_p95": 0.05,
    # rests on one transaction in a hundred
    "latency_p99": 0.15,
}
"""Ratios, by metric: the least that a difference must be to matter, where the metric is not the primary one."""
