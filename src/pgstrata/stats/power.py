"""What a comparison can expect before it starts: how likely the rule finds an effect, and after how many blocks.

Nothing is drawn here: the shares by effect and threshold in units of the noise floor stand in `power_table`, between
which is interpolated. The fast lane, whose thresholds do not scale with the floor, is added from its own probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np

from pgstrata.stats import power_table
from pgstrata.stats.boundaries import C_DIFF, MAX_BLOCKS, Boundary, boundary
from pgstrata.stats.floor import POWER
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.rule import FAST_ALPHA
from pgstrata.stats.sequence import FAST

EFFECTS: Final = (0.02, 0.03, 0.05, 0.10, 0.0)
"""The effects that a plan is forecast for, as shares; 0 is equality."""

# The noise of the table: outliers leave a core that is narrower than the floor.
_OUTLIERS: Final = 0.07
_CORE: Final = NormalDist(sigma=0.92)
_TINY: Final = 1e-9
_STEPS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What to expect if the truth is `effect` (0.03 is 3 % of either sign, 0 equality).

    `probability` is that of the right verdict: a difference of the right sign; for equality, no difference larger than
    the threshold. `decided` is that of any verdict, `blocks` their mean number until then or until the planned end.
    """

    effect: float
    probability: float
    decided: float
    blocks: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Course:
    """Probability of having found the difference, or equality, by 0, 1, ... MAX_BLOCKS blocks."""

    found: FloatArray
    equal: FloatArray
    wrong: FloatArray


def forecast(
    s0: float, delta: float, blocks: int, effects: Sequence[float] = EFFECTS, *, alpha: float = C_DIFF.alpha
) -> tuple[Power, ...]:
    """What the sequential rule is likely to say within the planned blocks, for each true effect.

    Args:
        s0: the noise floor in log units.
        delta: the practical threshold in log units.
        blocks: planned; the rule ends at 24.
        effects: shares: 0.03 is a ratio of 1.03.
        alpha: level of the difference; that of a headline is .045 by their number.

    Raises:
        ValueError: the floor is not above zero, or the level is below the grid.
    """
    level = _check(s0, alpha)
    end = min(max(blocks, 0), MAX_BLOCKS)
    powers = []
    for effect in effects:
        course = _course(s0, delta, math.log1p(abs(effect)), level)
        decided = np.minimum(course.found + course.equal + course.wrong, 1.0)
        powers.append(
            Power(
                effect=effect,
                probability=float((course.found if effect else course.equal)[end]),
                decided=float(decided[end]),
                blocks=float((1 - decided[:end]).sum()),
            )
        )
    return tuple(powers)


def smallest_effect(
    s0: float, delta: float, blocks: int, *, alpha: float = C_DIFF.alpha, probability: float = POWER
) -> float | None:
    """The smallest effect, as a share, that is found within the planned blocks with that probability.

    Studies that end with "no difference" before are lost to it.

    Returns:
        None where no effect is likely enough: too few blocks.

    Raises:
        ValueError: the floor is not above zero, or the level is below the grid.
    """
    level = _check(s0, alpha)
    end = min(max(blocks, 0), MAX_BLOCKS)
    low, high = 0.0, max(power_table.EFFECTS[-1] * s0, math.log1p(FAST[0].least)) + power_table.EFFECTS[-1] * s0
    if _course(s0, delta, high, level).found[end] < probability:
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _course(s0, delta, middle, level).found[end] < probability:
            low = middle
        else:
            high = middle
    return math.expm1(high)


def _check(s0: float, alpha: float) -> Boundary:
    if not 0 < s0 < math.inf:
        raise ValueError(f"a noise floor that forecasts is finite and above zero, not {s0}")
    return boundary(alpha)


def _course(s0: float, delta: float, effect: float, level: Boundary) -> _Course:
    """Fast lane and later looks together, for an effect in log units."""
    # Where effect or threshold are many floors their ratio decides: both are brought into the table together.
    scale = min(1.0, power_table.EFFECTS[-1] * s0 / max(effect, delta, s0))
    found, equal = _slow(scale * effect / s0, scale * delta / s0, level)
    has_fast = level.alpha >= FAST_ALPHA
    quick = _fast(effect / s0, s0) if has_fast else np.zeros(MAX_BLOCKS + 1)
    wrong = _fast(-effect / s0, s0) if has_fast else np.zeros(MAX_BLOCKS + 1)
    if not effect:
        wrong = wrong + found
    # What the fast lane finds would mostly have been found later: it has only gains, and few of the next are losses.
    again = quick * np.maximum(found, _share_above(effect / s0, 0.0) ** 2)
    together = quick + found - np.minimum(again, found)
    return _Course(found=together, equal=np.minimum(equal, 1 - together), wrong=wrong)


def _slow(effect: float, threshold: float, level: Boundary) -> tuple[FloatArray, FloatArray]:
    """Shares found different and equivalent by 0 .. MAX_BLOCKS blocks; effect and threshold in floors.

    At levels below that of the table as large a part of what would be found is lost to "no difference" as at its level.
    """
    plane = _plane(threshold)
    found, equal = (_at_effect(plane[:, kind], effect) for kind in (0, 1))
    if level.alpha < C_DIFF.alpha:
        alone = _alone()
        usual, ours = (_at_effect(alone[power_table.LEVELS.index(a)], effect) for a in (C_DIFF.alpha, level.alpha))
        found = ours * np.where(usual > 0, found / np.maximum(usual, _TINY), 1.0)
    return np.maximum.accumulate(np.minimum(found, 1.0)), equal


def _at_effect(shares: FloatArray, effect: float) -> FloatArray:
    """Shares of shape (effects, looks) at one effect, by 0 .. MAX_BLOCKS blocks."""
    course = np.zeros(MAX_BLOCKS + 1)
    course[power_table.FIRST :] = [np.interp(effect, power_table.EFFECTS, column) for column in shares.T]
    return course


def _plane(threshold: float) -> FloatArray:
    """The table at one threshold: shape (effects, 2, looks)."""
    shares, grid = _shares(), np.array(power_table.THRESHOLDS)
    below = int(np.clip(np.searchsorted(grid, threshold, side="right") - 1, 0, grid.size - 2))
    weight = float(np.clip((threshold - grid[below]) / (grid[below + 1] - grid[below]), 0.0, 1.0))
    return np.asarray((1 - weight) * shares[:, below] + weight * shares[:, below + 1], dtype=np.float64)


@cache
def _shares() -> FloatArray:
    return _parse(power_table.SHARES, (len(power_table.EFFECTS), len(power_table.THRESHOLDS), 2), 100)


@cache
def _alone() -> FloatArray:
    return _parse(power_table.ALONE, (len(power_table.LEVELS), len(power_table.EFFECTS)), 1000)


def _parse(text: str, shape: tuple[int, ...], parts: int) -> FloatArray:
    return np.array(text.split(), dtype=np.float64).reshape(*shape, MAX_BLOCKS + 1 - power_table.FIRST) / parts


def _fast(effect: float, s0: float) -> FloatArray:
    """Probability that the fast lane has found a gain by 0 .. MAX_BLOCKS blocks, for an effect in floors.

    The lane's thresholds fall with n, so that the smallest difference so far says all: `reach[k]` is the probability
    that it exceeds the k-th threshold and no look has decided. That the median has to exceed the coarse interval too
    is left out; it matters rarely.
    """
    least = [max(math.log1p(look.least) / s0, look.floors) for look in FAST]
    above = np.array([_share_above(effect, threshold) for threshold in least])
    found = np.zeros(MAX_BLOCKS + 1)
    reach = above ** (FAST[0].n - 1)
    for place, look in enumerate(FAST):
        reach = reach * above
        stopped = float(reach[place])
        found[look.n :] += stopped
        reach = np.maximum(reach - stopped, 0.0)
    return found


def _share_above(effect: float, threshold: float) -> float:
    """P(D > threshold) under the noise of the table, all in floors."""
    return (1 - _OUTLIERS) * _CORE.cdf(effect - threshold) + _OUTLIERS / 2
