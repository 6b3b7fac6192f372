"""The point beyond which a distribution has so much of its probability."""

from __future__ import annotations

from collections.abc import Callable


def find_point(tail: Callable[[float], float], level: float) -> float:
    """The value whose tail is `level`, by bisection, to a relative 1e-9.

    Args:
        tail: probability of values from its argument on, falling from above `level` at zero to below it.
        level: above 1e-12.
    """
    low, high = 0.0, 1.0
    while tail(high) > level:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > level else (low, middle)
    return high
