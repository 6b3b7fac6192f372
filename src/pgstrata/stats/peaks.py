"""The peak over several loads in each block, without the bias of taking the largest of noisy values.

The largest of several noisy values is too high on average, and more so if many of them are nearly alike. Of two
environments with the same peak, the one with the flatter curve would seem to be ahead. So each block contributes its
value at the load with the best median in all other blocks, in the choice of which it takes no part (leave-one-out
cross-validation: Stone, Journal of the Royal Statistical Society B 36, 1974). If loads are nearly alike, the lower one
may be chosen, which costs less than their difference.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pgstrata.stats.ranks import FloatArray

_FEWEST: Final = 3


def peak_values(values: FloatArray) -> FloatArray:
    """The value of each block at the peak, shape (blocks,); empty with fewer than three blocks.

    Args:
        values: values by load and block, shape (loads, blocks), at least one load.
    """
    blocks = values.shape[1]
    if blocks < _FEWEST:
        return np.empty(0)
    chosen = [int(np.median(np.delete(values, block, axis=1), axis=1).argmax()) for block in range(blocks)]
    return np.asarray(values[chosen, np.arange(blocks)], dtype=np.float64)
