"""The noise floor: the scale of A/A differences, what a rig can see at all."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

# Makes the median of |D| estimate the standard deviation where D is normal: 1 / 0.6745, the upper quartile.
MAD_TO_SD: Final = 1.4826
# With more outliers than this the median says too little: 20 % of bad runs make 36 % of bad differences.
MAX_OUTLIERS: Final = 1 / 6
# A difference beyond these, in log units and in floors, is an outlier.
_LEAST_OUTLIER: Final = math.log1p(0.05)
_OUTLYING_FLOORS: Final = 2.5
# An effect counts as visible where four studies of five find it.
POWER: Final = 0.80


def noise_floor(d: npt.ArrayLike) -> float:
    """s0 = 1.4826 * median |D|, in log units; the centre is zero by design, not estimated.

    Args:
        d: A/A differences, shape (n,).

    Raises:
        ValueError: there is no difference.
    """
    sizes = np.abs(np.asarray(d, dtype=np.float64))
    if sizes.size == 0:
        raise ValueError("at least one difference is needed")
    return float(MAD_TO_SD * np.median(sizes))


def outlying(d: npt.ArrayLike, s0: float) -> int:
    """How many of the differences lie beyond max(ln 1.05, 2.5 s0).

    A floor that more than `MAX_OUTLIERS` of its differences exceed so far must not be relied upon.
    """
    sizes = np.abs(np.asarray(d, dtype=np.float64))
    return int((sizes > max(_LEAST_OUTLIER, _OUTLYING_FLOORS * s0)).sum())
