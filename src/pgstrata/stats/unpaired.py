"""Two arms without blocks: Hodges-Lehmann shift of logarithms with the Mann-Whitney interval, one look.

The weaker form, for data that others measured: no block guards against drift, and whatever changed between the two
series of runs counts as an effect.

Sources: Mann & Whitney 1947 (the recursion of the counts); Hodges & Lehmann 1963 and Lehmann 1975, chapter 2 (shift
and interval from the ordered differences).
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.model.answer import Lane
from pgstrata.stats.boundaries import ALPHA_EQ
from pgstrata.stats.large import shift_quantiles
from pgstrata.stats.ranks import TIE, FloatArray
from pgstrata.stats.rule import Decision, Estimate, LogInterval, Rule, is_decided, judge

# Products of the two sizes up to which the orders are counted: 50 values against 50.
EXACT_PAIRS: Final = 2500
# Exchangeable values would allow two against eight; whether two runs are typical of their arm nobody can tell.
MIN_ARM: Final = 3


def decide_unpaired(
    values: npt.ArrayLike, base_values: npt.ArrayLike, *, rule: Rule, higher_is_better: bool
) -> Decision:
    """The verdict on two series of values that share no blocks, one look at all of them.

    An interval needs at least three values in each arm, and as many as make unanimous order unlikely enough: four
    against four at .045, or three against five; with fewer there is neither difference nor equivalence. Equal values
    count in both directions: were ties broken at random the counts would be exact, so that with ties the interval is
    conservative.

    Args:
        values: of the environment, shape (n,), above zero.
        base_values: of the baseline, shape (m,), above zero.
        rule: threshold and level; its floor and its last block play no part.
        higher_is_better: which way the metric is good.

    Returns:
        A decision of one look; its n is the size of the smaller arm.

    Raises:
        ValueError: a value is not a finite number above zero.
    """
    x, y = _logs(values), _logs(base_values)
    if not higher_is_better:
        x, y = -x, -y
    n, m = x.size, y.size
    if not n or not m:
        estimate, p = None, None
    else:
        critical = unpaired_critical(n, m, rule.alpha)
        centre = sum(shift_quantiles(x, y, ((n * m + 1) // 2, n * m // 2 + 1))) / 2
        interval = _interval(x, y, critical)
        narrow = _interval(x, y, unpaired_critical(n, m, ALPHA_EQ)) if interval else None
        estimate = Estimate(n=min(n, m), centre=centre, interval=interval, equivalence=narrow)
        p = _unpaired_p(x, y)
    verdict = judge(estimate, delta=rule.delta)
    return Decision(
        verdict=verdict, n=min(n, m), estimate=estimate, lane=Lane.ONE_LOOK, decided=is_decided(verdict),
        repeated_p=p, alpha=rule.alpha, error=_unpaired_level(n, m, rule.alpha),
    )  # fmt: skip


@cache
def unpaired_critical(n: int, m: int, alpha: float) -> int | None:
    """The largest count of pairs in the wrong order that excludes a shift at level alpha, two-sided.

    Exact up to `EXACT_PAIRS` pairs, then the normal approximation with continuity correction, which errs to the safe
    side where one arm is tiny (the sum of few uniform ranks has shorter tails).

    Returns:
        None, no interval, where an arm has fewer than `MIN_ARM` values or even unanimous order is too likely.
    """
    if min(n, m) < MIN_ARM:
        return None
    if n * m <= EXACT_PAIRS:
        critical = int(np.searchsorted(_tails(n, m), alpha, side="right")) - 1
    else:
        spread = math.sqrt(n * m * (n + m + 1) / 12)
        critical = math.floor(n * m / 2 + NormalDist().inv_cdf(alpha / 2) * spread - 0.5)
    return critical if critical >= 0 else None


@cache
def _tails(n: int, m: int) -> FloatArray:
    """P(min(U, nm - U) <= c) for c = 0, 1, ... below nm / 2, all orders of n + m values equally likely.

    The largest value belongs to the first arm with probability n / (n + m), and then beats all m of the second.
    """
    column = [np.ones(1) for _ in range(m + 1)]
    for i in range(1, n + 1):
        following = [np.ones(1)]
        for j in range(1, m + 1):
            share = np.zeros(i * j + 1)
            share[j:] += column[j] * (i / (i + j))
            share[: i * (j - 1) + 1] += following[j - 1] * (j / (i + j))
            following.append(share)
        column = following
    share = column[m]
    below = (n * m + 1) // 2
    return np.minimum(np.cumsum((share + share[::-1])[:below]), 1.0)


def _interval(x: FloatArray, y: FloatArray, critical: int | None) -> LogInterval | None:
    """From the (critical + 1)-th smallest to the (critical + 1)-th largest difference."""
    if critical is None:
        return None
    low, high = shift_quantiles(x, y, (critical + 1, x.size * y.size - critical))
    return LogInterval(low=low, high=high)


def _unpaired_level(n: int, m: int, alpha: float) -> float:
    """The probability of a false exclusion that an interval of level `alpha` really has; `alpha` without one."""
    critical = unpaired_critical(n, m, alpha)
    return alpha if critical is None or n * m > EXACT_PAIRS else float(_tails(n, m)[critical])


def _unpaired_p(x: FloatArray, y: FloatArray) -> float | None:
    """The smallest level at which "no difference" is excluded; None where no interval is possible.

    A pair of equal values counts for either side.
    """
    n, m = x.size, y.size
    if min(n, m) < MIN_ARM:
        return None
    other = np.sort(y)
    not_ahead = n * m - int(np.searchsorted(other, x - TIE, side="left").sum())
    not_behind = int(np.searchsorted(other, x + TIE, side="right").sum())
    wrong = min(not_ahead, not_behind)
    if n * m <= EXACT_PAIRS:
        tails = _tails(n, m)
        return float(tails[wrong]) if wrong < tails.size else 1.0
    spread = math.sqrt(n * m * (n + m + 1) / 12)
    return min(1.0, 2 * NormalDist().cdf((wrong + 0.5 - n * m / 2) / spread))


def _logs(values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not (np.isfinite(array) & (array > 0)).all():
        raise ValueError("every value has to be a finite number above zero")
    return np.asarray(np.log(array), dtype=np.float64)
