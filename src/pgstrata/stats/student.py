"""Student's t for whole degrees of freedom: its two-sided tail, and the point that a tail leaves out."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.stats.tails import find_point

_SHIFT_LEVEL: Final = 0.01
_FEWEST_SHIFTS: Final = 6


def two_sided_tail(t: float, freedom: int) -> float:
    """P(|T| >= |t|), after Abramowitz and Stegun, 26.7.3 and 26.7.4; good to about 1e-15, not relatively.

    Args:
        t: infinity gives 0.
        freedom: degrees of freedom, at least 1.
    """
    if math.isinf(t):
        return 0.0
    angle = math.atan2(abs(t), math.sqrt(freedom))
    cosine = math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = 0.0
    for step in range(1 + odd, freedom, 2):
        total += term
        term *= cosine * cosine * step / (step + 1)
    inside = math.sin(angle) * total
    return max(0.0, 1.0 - (2 / math.pi * (angle + inside) if odd else inside))


@lru_cache(maxsize=4096)
def two_sided_point(level: float, freedom: int) -> float:
    """The t that |T| exceeds with probability `level` (above 1e-12)."""
    return find_point(lambda t: two_sided_tail(t, freedom), level)


def is_shift(values: npt.ArrayLike) -> bool:
    """Whether values have a mean other than zero, by Student's t test at 1 %; False for fewer than 6.

    Args:
        values: finite, shape (n,).
    """
    found = np.asarray(values, dtype=np.float64)
    if found.size < _FEWEST_SHIFTS:
        return False
    error = float(found.std(ddof=1)) / math.sqrt(found.size)
    return abs(float(found.mean())) > two_sided_point(_SHIFT_LEVEL, found.size - 1) * error
