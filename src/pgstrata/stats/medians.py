"""A confidence interval for a median that makes no assumption about the distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float] | None:
    """Two of the ordered values that enclose the median, and the minimum probability that they do.

    The number of values below the median is binomial with p = 1/2 (Hahn & Meeker 1991, section 5.2). The narrowest
    symmetric pair that reaches `confidence` is taken; None if not even the extremes do (fewer than six values at 95 %).
    """
    ordered, n = sorted(values), len(values)
    outside, best = 0.0, None
    for place in range(n // 2):
        outside += 2 * math.comb(n, place) / 2**n
        if 1 - outside < confidence:
            break
        best = ordered[place], ordered[n - 1 - place], 1 - outside
    return best
