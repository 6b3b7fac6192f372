"""Chi-square for whole degrees of freedom: its upper tail, and the point that a tail leaves out."""

from __future__ import annotations

import math
from functools import lru_cache

from pgstrata.stats.tails import find_point


def upper_tail(value: float, freedom: int) -> float:
    """P(X >= value), after Abramowitz and Stegun, 26.4.4 and 26.4.5.

    Args:
        value: at least 0.
        freedom: degrees of freedom, at least 1.
    """
    half = value / 2
    odd = freedom % 2
    total = math.erfc(math.sqrt(half)) if odd else 0.0
    term = math.exp(-half) * (2 * math.sqrt(half / math.pi) if odd else 1.0)
    for step in range(2 + odd, freedom + 1, 2):
        total += term
        term *= value / step
    return min(1.0, total)


@lru_cache(maxsize=4096)
def chi_square_point(tail: float, freedom: int) -> float:
    """The value that X exceeds with probability `tail` (between 1e-12 and 1 - 1e-12)."""
    return find_point(lambda value: upper_tail(value, freedom), tail)
