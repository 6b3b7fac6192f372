"""The boundaries of the rule: the largest min(S+, S-) that still excludes a theta, by blocks.

Two kinds. A *sequential* boundary allows a look after each block: after n blocks a level alpha has spent
alpha * (n / horizon)^0.85 (a spending function as of Lan & DeMets 1983; repeated intervals as of Jennison & Turnbull
1989). Its values are frozen in `tables`, on a grid of levels. The *fixed-sample* boundary allows one look at any number
of blocks, at any level; it is computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np

from pgstrata.model.plan import HORIZON
from pgstrata.stats.ranks import FloatArray, capped_scores
from pgstrata.stats.tables import SPENDING_EXPONENT, TABLES

# Levels such as .045 / 9 are on the grid, whatever their last binary digit.
ROUNDING: Final = 1e-9
# Up to here the sign patterns are counted (0.05 s); from here on the normal approximation spends up to 3.5 % less than
# the level.
EXACT_BLOCKS: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """Critical values of one level: `values[0]` belongs to `first` blocks, the last one to `last`, the horizon."""

    alpha: float
    first: int
    last: int
    values: tuple[int, ...]

    def critical(self, n: int) -> int | None:
        """The value for n blocks; None while n is too small for any interval of this level.

        Raises:
            ValueError: n exceeds what the boundary was made for; using its last value would spend more than alpha.
        """
        if n > self.last:
            raise ValueError(f"the boundaries end at {self.last} blocks, not at {n}")
        return self.values[n - self.first] if n >= self.first else None

    def spent(self, n: int) -> float:
        """Probability of a false verdict that may be used up after n blocks."""
        return float(self.alpha * (n / self.last) ** SPENDING_EXPONENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundaries:
    """The boundaries of all levels over one horizon, the largest level first."""

    last: int
    levels: tuple[Boundary, ...]

    def at(self, alpha: float) -> Boundary:
        """The boundary of the largest level of the grid that is not above alpha.

        Raises:
            ValueError: alpha is below the smallest level.
        """
        for level in self.levels:
            if level.alpha <= alpha * (1 + ROUNDING):
                return level
        raise ValueError(f"there is no boundary for a level of {alpha:g}: the smallest is {GRID[-1]:g}")

    @property
    def equivalence(self) -> Boundary:
        """That of "no difference larger than the threshold"."""
        return self.at(ALPHA_EQ)


_BOUNDARIES: Final = {
    last: Boundaries(
        last=last,
        levels=tuple(
            Boundary(alpha=alpha, first=last + 1 - len(values), last=last, values=values)
            for alpha, values in ((alpha, tuple(map(int, text.split()))) for alpha, text in levels.items())
        ),
    )
    for last, levels in TABLES.items()
}
ALPHA: Final = 0.045
"""Error probability of a difference."""
ALPHA_EQ: Final = 0.10
"""That of equivalence."""
ALPHA_CPU: Final = 0.01
"""That of all differences seen by CPU in one study, which is spent beside the others. Beside other work 2 % are
found in 12 of 100 simulated studies with 24 blocks; at 0.02 they were in 18, at 0.005 in 7 (`bench/cpu.py`)."""
GRID: Final = tuple(TABLES[HORIZON])
FIRST_LOOK: Final = min(level.first for each in _BOUNDARIES.values() for level in each.levels)


def boundaries_of(horizon: int) -> Boundaries:
    """The boundaries over so many blocks.

    Raises:
        ValueError: there are none for that horizon.
    """
    if horizon not in _BOUNDARIES:
        raise ValueError(f"there are boundaries over {', '.join(map(str, _BOUNDARIES))} blocks, not over {horizon}")
    return _BOUNDARIES[horizon]


def boundary(alpha: float) -> Boundary:
    """As `Boundaries.at`, over the horizon of new studies."""
    return boundaries_of(HORIZON).at(alpha)


C_DIFF: Final = boundary(ALPHA)
C_EQ: Final = boundary(ALPHA_EQ)


def exact_tail(n: int, critical: int) -> float:
    """P(min(S+, S-) <= critical) for n differences without ties under "no difference": one look, no spending.

    Each of the 2^n sign patterns is equally likely; the patterns are counted by their S+, score by score.
    """
    if critical < 0:
        return 0.0
    tails = _tails(n)
    return float(tails[min(critical, tails.size - 1)])


@cache
def _tails(n: int) -> FloatArray:
    """P(min(S+, S-) <= c) for c = 0, 1, ... up to half the sum of scores, where it is 1."""
    scores = capped_scores(n).astype(np.int64)
    total = int(scores.sum())
    share = np.zeros(total + 1)
    share[0] = 1.0
    for score in scores:
        share[score:] = share[score:] + share[: total + 1 - score]
        share /= 2  # probabilities, because counts of 2^n patterns would overflow
    folded = share + share[::-1]
    folded[total // 2 :] = 0.0
    tails = np.cumsum(folded)[: total // 2 + 1]
    tails[-1] = 1.0
    return np.asarray(tails, dtype=np.float64)


@cache
def fixed_critical(n: int, alpha: float) -> int | None:
    """The largest value that one look at n blocks may exclude a theta at with at most `alpha` of false exclusions.

    Exact up to `EXACT_BLOCKS`, then the normal approximation of S+ with continuity correction (Hajek, Sidak & Sen
    1999, section 4.2: mean and variance are those of independent signs, sum(s) / 2 and sum(s^2) / 4).

    Returns:
        None where even unanimous signs are too likely.
    """
    if n <= EXACT_BLOCKS:
        critical = int(np.searchsorted(_tails(n), alpha, side="right")) - 1
    else:
        scores = capped_scores(n)
        spread = math.sqrt(float(scores @ scores)) / 2
        critical = math.floor(float(scores.sum()) / 2 + NormalDist().inv_cdf(alpha / 2) * spread - 0.5)
    return critical if critical >= 0 else None


def fixed_level(n: int, alpha: float) -> float:
    """The probability of a false exclusion that one look at n blocks at level `alpha` really has.

    Below `alpha`, because the statistic takes few values; `alpha` itself where there is no interval, and beyond
    `EXACT_BLOCKS`.
    """
    critical = fixed_critical(n, alpha)
    return alpha if critical is None or n > EXACT_BLOCKS else exact_tail(n, critical)


def fixed_p(n: int, statistic: float) -> float:
    """The smallest level at which one look at n blocks with this min(S+, S-) excludes "no difference".

    As `fixed_critical`, whose approximation it inverts beyond `EXACT_BLOCKS`. Halves, which ties make, are rounded up.
    """
    critical = math.ceil(statistic)
    if n <= EXACT_BLOCKS:
        return exact_tail(n, critical)
    scores = capped_scores(n)
    spread = math.sqrt(float(scores @ scores)) / 2
    return min(1.0, 2 * NormalDist().cdf((critical + 0.5 - float(scores.sum()) / 2) / spread))


def fewest_blocks(alpha: float) -> int:
    """Blocks from which on one look can have an interval of this level: unanimous signs have 2^(1 - n)."""
    return math.ceil(1 - math.log2(alpha) - ROUNDING)
