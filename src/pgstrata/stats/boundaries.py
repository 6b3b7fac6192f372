"""The frozen boundaries of the sequential rule: the largest min(S+, S-) that still excludes a theta, by blocks.

After n blocks a level alpha has spent alpha * (n / 24)^0.85 (a spending function as of Lan & DeMets 1983; repeated
intervals as of Jennison & Turnbull 1989), so that looking after each block is legitimate and a single look at n is
conservative. The values are simulated and vary by 1 between seeds; the smaller ones are frozen here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.stats.ranks import capped_scores

MAX_BLOCKS: Final = 24
SPENDING_EXPONENT: Final = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """Critical values of one level: `values[0]` belongs to `first` blocks, the last one to `MAX_BLOCKS`."""

    alpha: float
    first: int
    values: tuple[int, ...]

    def critical(self, n: int) -> int | None:
        """The value for n blocks; None while n is too small for any interval of this level.

        Raises:
            ValueError: n exceeds what the boundary was made for; using its last value would spend more than alpha.
        """
        if n > MAX_BLOCKS:
            raise ValueError(f"the boundaries end at {MAX_BLOCKS} blocks, not at {n}")
        return self.values[n - self.first] if n >= self.first else None

    def spent(self, n: int) -> float:
        """Probability of a false verdict that may be used up after n blocks."""
        return float(self.alpha * (n / MAX_BLOCKS) ** SPENDING_EXPONENT)


C_DIFF: Final = Boundary(alpha=0.045, first=7, values=(0, 0, 1, 2, 4, 5, 8, 9, 13, 15, 19, 22, 26, 30, 35, 39, 45, 50))
C_EQ: Final = Boundary(alpha=0.10, first=7, values=(1, 2, 3, 4, 6, 8, 10, 13, 16, 19, 24, 27, 32, 36, 42, 46, 53, 58))
C_01: Final = Boundary(alpha=0.01, first=9, values=(0, 0, 1, 2, 4, 6, 7, 9, 12, 15, 18, 21, 25, 29, 34, 37))


def exact_tail(n: int, critical: int) -> float:
    """P(min(S+, S-) <= critical) for n differences without ties under "no difference": one look, no spending.

    Each of the 2^n sign patterns is equally likely; the patterns are counted by their S+, score by score.
    """
    scores = capped_scores(n).astype(np.int64)
    total = int(scores.sum())
    patterns = np.zeros(total + 1)
    patterns[0] = 1.0
    for score in scores:
        patterns[score:] = patterns[score:] + patterns[: total + 1 - score]
    plus = np.arange(total + 1)
    return float(patterns[np.minimum(plus, total - plus) <= critical].sum() / 2.0**n)
