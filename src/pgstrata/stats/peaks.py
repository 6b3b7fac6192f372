"""The peak over several loads in each block, without the bias of taking the largest of noisy values.

The largest of several noisy values is too high on average, and more so if many of them are nearly alike. Of two
environments with the same peak, the one with the flatter curve would seem to be ahead. So each block contributes its
value at the load with the best median in the blocks before it. The choice is made before the block is measured: the
value is not biased by it, and a block that comes later changes no former value, as the sequential rule requires. If
loads are nearly alike, one that is not the best may be chosen, which costs less than their difference.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pgstrata.stats.ranks import FloatArray

CHOOSING: Final = 2
"""The first blocks, from which only a load is chosen."""


def peak_values(values: FloatArray) -> FloatArray:
    """The value of each block at the peak but for the first `CHOOSING`, shape (blocks - CHOOSING,) or empty.

    Args:
        values: values by load and block, shape (loads, blocks), at least one load; blocks as they were measured.
    """
    rest = range(CHOOSING, values.shape[1])
    chosen = [int(np.median(values[:, :block], axis=1).argmax()) for block in rest]
    return np.asarray(values[chosen, list(rest)], dtype=np.float64)
