"""The best of several noisy values in each block, without the luck of having been chosen.

The largest of several noisy values is too high on average, the more so the more of them are nearly alike: of two
environments with the same peak, that with the flatter one would seem to be ahead. So each block has its value at the
load that is best in the median of all other blocks, in whose choice it takes no part (cross-validation that leaves one
out: Stone, Journal of the Royal Statistical Society B 36, 1974). Where loads are nearly alike the lower one may be
chosen, which costs less than they differ by.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pgstrata.stats.ranks import FloatArray

_FEWEST: Final = 3


def peak_values(values: FloatArray) -> FloatArray:
    """The value of each block at the peak, shape (blocks,); empty for fewer than three blocks.

    Args:
        values: shape (loads, blocks), at least one load.
    """
    blocks = values.shape[1]
    if blocks < _FEWEST:
        return np.empty(0)
    chosen = [int(np.median(np.delete(values, block, axis=1), axis=1).argmax()) for block in range(blocks)]
    return np.asarray(values[chosen, np.arange(blocks)], dtype=np.float64)
