"""The noise floor: the scale of A/A differences, what a rig can see at all."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

# Makes the median of |D| estimate the standard deviation where D is normal: 1 / 0.6745, the upper quartile.
MAD_TO_SD: Final = 1.4826
MIN_FLOOR_DIFFERENCES: Final = 12


def noise_floor(d: npt.ArrayLike) -> float:
    """s0 = 1.4826 * median |D|, in log units; the centre is zero by design, not estimated.

    Args:
        d: A/A differences, shape (n,); a floor may be relied upon from `MIN_FLOOR_DIFFERENCES` on.

    Raises:
        ValueError: there is no difference.
    """
    sizes = np.abs(np.asarray(d, dtype=np.float64))
    if sizes.size == 0:
        raise ValueError("at least one difference is needed")
    return float(MAD_TO_SD * np.median(sizes))
