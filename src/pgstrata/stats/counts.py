"""Intervals of counts. Pure."""

from __future__ import annotations

import math
from typing import Final

_POINT: Final = 1.959964
"""Normal deviate that 2.5 % exceed."""


def count_interval(count: int) -> tuple[float, float]:
    """The interval of 95 % of the expectation of a Poisson count; about count ± 2 √count where it is large.

    Garwood's limits (Biometrika 28, 1936) by Byar's approximation (Breslow & Day, Statistical Methods in Cancer
    Research II, 1987, equation 2.3): within 3 % of them from a count of 3 on, and too low below.
    """
    low = 0.0
    if count > 0:
        low = count * max(0.0, 1 - 1 / (9 * count) - _POINT / (3 * math.sqrt(count))) ** 3
    above = count + 1
    return low, above * (1 - 1 / (9 * above) + _POINT / (3 * math.sqrt(above))) ** 3
