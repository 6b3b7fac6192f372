"""Whether differences grow over the blocks: what the sequential rule takes for granted that they do not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

# One-sided: shrinking differences make the rule careful, never careless.
LEVEL: Final = 0.01
_FEWEST: Final = 7
# Sizes that are closer are the same number, see `ranks.TIE`.
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Rank correlation of |D| with the order of the blocks, and its one-sided p."""

    correlation: float
    p: float

    @property
    def is_likely(self) -> bool:
        """Whether it is more than chance would do in one comparison of a hundred."""
        return self.p <= LEVEL


def find_growth(d: npt.ArrayLike) -> Growth | None:
    """Spearman's correlation of |D| with the number of the block (Spearman 1904), ties sharing a rank.

    p from z = rho sqrt(n - 1), which is normal with variance 1 if the sizes are exchangeable (Hajek, Sidak & Sen 1999,
    section 6.1); at 7 blocks, where it is coarsest, only nearly perfect order reaches the level.

    Args:
        d: block differences in the order of blocks, shape (n,).

    Returns:
        None below 7 differences, or where all have one size.
    """
    sizes = np.round(np.abs(np.asarray(d, dtype=np.float64)), _DIGITS)
    n = sizes.size
    if n < _FEWEST:
        return None
    _, places, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places] - (n + 1) / 2
    order = np.arange(n) - (n - 1) / 2
    spread = math.sqrt(float(ranks @ ranks) * float(order @ order))
    if spread == 0:
        return None
    correlation = float(ranks @ order) / spread
    return Growth(correlation=correlation, p=1 - NormalDist().cdf(correlation * math.sqrt(n - 1)))
