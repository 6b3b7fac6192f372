"""Student's t for whole degrees of freedom: its two-sided tail, the point that a tail leaves out, and two means."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.stats.tails import find_point

_SHIFT_LEVEL: Final = 0.01
_FEWEST_SHIFTS: Final = 6
_ROUNDING: Final = 1e-9


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


def welch_interval(values: npt.ArrayLike, base_values: npt.ArrayLike, level: float) -> tuple[float, float]:
    """The interval of mean(values) - mean(base_values), whose variances may differ.

    Welch 1947 with the degrees of freedom of Satterthwaite 1946, rounded down. Three values against three that scatter
    five times less are outside of a 95 % interval in 9 % where variances are pooled, in 4.5 % here (simulated).

    Args:
        values: finite, shape (n,), at least two.
        base_values: finite, shape (m,), at least two.
        level: error of the interval, two-sided.
    """
    x, y = (np.asarray(each, dtype=np.float64) for each in (values, base_values))
    parts = [float(each.var(ddof=1)) / each.size for each in (x, y)]
    centre, total = float(x.mean() - y.mean()), sum(parts)
    if total == 0.0:
        return centre, centre
    freedom = total**2 / sum(part**2 / (each.size - 1) for part, each in zip(parts, (x, y), strict=True))
    reach = two_sided_point(level, math.floor(freedom + _ROUNDING)) * math.sqrt(total)
    return centre - reach, centre + reach


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
