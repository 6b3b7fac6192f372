"""Whether values that ought to be independent follow each other, as the seconds of one run do."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

_FEWEST: Final = 8
# Of independent values one series in a thousand is beyond 3.1 standard errors, and hardly one above both limits.
_SURE: Final = 3.1
_STRONG: Final = 0.5


def neighbour_correlation(values: npt.ArrayLike) -> float:
    """The correlation of each value with the next one (lag 1, about the mean), 0 where all are equal; shape (n,)."""
    array = np.asarray(values, dtype=np.float64)
    away = array - array.mean() if array.size else array
    spread = float(away @ away)
    return float(away[1:] @ away[:-1]) / spread if spread > 0 else 0.0


def follow_each_other(values: npt.ArrayLike) -> bool:
    """Whether neighbours are so alike that the values cannot be taken as independent.

    The correlation has to exceed 0.5, and its expectation for independent values, -1 / n, by 3.1 of their standard
    errors 1 / sqrt(n) (Kendall & Stuart, The Advanced Theory of Statistics 3, chapter 48). Of fewer than 8 values
    nothing can be told.
    """
    n = np.asarray(values).size
    if n < _FEWEST:
        return False
    correlation = neighbour_correlation(values)
    return correlation > _STRONG and (correlation + 1 / n) * math.sqrt(n) > _SURE
