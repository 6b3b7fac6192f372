"""What a comparison can expect before it starts: how likely the rule finds an effect, and after how many blocks.

The rule is applied to drawn noise, in units of the noise floor. Its intervals are computed once for each level: an
effect shifts them, and the threshold is compared with them, so that all effects and thresholds share the same draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from pgstrata.model.plan import HORIZON
from pgstrata.stats.boundaries import ALPHA, C_EQ, Boundary, boundary
from pgstrata.stats.floor import POWER, noise_floor
from pgstrata.stats.ranks import FloatArray, capped_intervals, walsh_averages

EFFECTS: Final = (0.02, 0.03, 0.05, 0.10, 0.0)
"""The effects that a plan is forecast for, as shares; 0 is equality."""

_SEED: Final = 20260105
# Mirrored ones count, too, but for equality, which they decide alike. The standard error of a share is 1.5 points at
# most; the intervals of a level take half a second.
_DRAWS: Final = 1000
_OUTLIERS: Final = 0.07
_OUTLIER_SIZES: Final = (7.0, 30.0)
# In floors: eight blocks of such an effect hardly ever leave it open.
_LARGE: Final = 7.0
_STEPS: Final = 14


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


def forecast(
    s0: float, delta: float, blocks: int, effects: Sequence[float] = EFFECTS, *, alpha: float = ALPHA
) -> tuple[Power, ...]:
    """What the sequential rule is likely to say within the planned blocks, for each true effect.

    Args:
        s0: the noise floor in log units.
        delta: the practical threshold in log units.
        blocks: planned; the rule ends at its horizon.
        effects: shares: 0.03 is a ratio of 1.03.
        alpha: level of the difference; that of a headline is .045 by their number.

    Raises:
        ValueError: the floor is not above zero, or the level is below the grid.
    """
    level = _check(s0, alpha)
    end = min(max(blocks, 0), HORIZON)
    powers = []
    for effect in effects:
        right, decided = _course(s0, delta, math.log1p(abs(effect)), level, end)
        waited = float((1 - decided[:end]).sum())
        powers.append(Power(effect=effect, probability=float(right[end]), decided=float(decided[end]), blocks=waited))
    return tuple(powers)


def smallest_effect(s0: float, delta: float, blocks: int, *, alpha: float = ALPHA) -> float | None:
    """The smallest effect, as a share, that is found within the planned blocks by four studies of five.

    Studies that end with "no difference" before are lost to it.

    Returns:
        None where no effect is likely enough: too few blocks.

    Raises:
        ValueError: the floor is not above zero, or the level is below the grid.
    """
    level = _check(s0, alpha)
    end = min(max(blocks, 0), HORIZON)
    low, high = 0.0, 2 * _LARGE * s0
    if _course(s0, delta, high, level, end)[0][end] < POWER:
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _course(s0, delta, middle, level, end)[0][end] < POWER:
            low = middle
        else:
            high = middle
    return math.expm1(high)


def _check(s0: float, alpha: float) -> Boundary:
    if not 0 < s0 < math.inf:
        raise ValueError(f"a noise floor that forecasts is finite and above zero, not {s0}")
    return boundary(alpha)


def _course(s0: float, delta: float, effect: float, level: Boundary, end: int) -> tuple[FloatArray, FloatArray]:
    """Probability of the right verdict, and of any, by 0, 1, ... `end` blocks, for an effect in log units."""
    if not end:
        return np.zeros(1), np.zeros(1)
    low, high = _ends(level, end) + effect / s0
    inner_low, inner_high = _ends(C_EQ, end) + effect / s0
    up, down = low > 0, high < 0
    settled = up | down | (np.maximum(-inner_low, inner_high) < delta / s0)
    first = np.where(settled.any(axis=0), settled.argmax(axis=0), end)
    place = np.minimum(first, end - 1), np.arange(first.size)
    right = up[place] if effect else ~up[place] & ~down[place]
    reached = first < np.arange(end + 1)[:, np.newaxis]
    return (reached & right).mean(axis=1), reached.mean(axis=1)


@cache
def _noise() -> FloatArray:
    """Normal noise with outliers, in units of its floor, shape (2 _DRAWS, HORIZON); the latter half is mirrored."""
    rng = np.random.default_rng(_SEED)
    noise = rng.normal(size=(_DRAWS, HORIZON))
    outliers = rng.uniform(*_OUTLIER_SIZES, noise.shape) * rng.choice((-1.0, 1.0), noise.shape)
    noise += np.where(rng.random(noise.shape) < _OUTLIERS, outliers, 0.0)
    return np.asarray(np.concatenate([noise, -noise]) / noise_floor(noise), dtype=np.float64)


def _ends(level: Boundary, end: int) -> FloatArray:
    """Ends of the intervals after 1, 2, ... `end` blocks, shape (2, end, 2 _DRAWS); infinite where there is none."""
    return np.stack([_ends_after(level, n) for n in range(1, end + 1)], axis=1)


@cache
def _ends_after(level: Boundary, n: int) -> FloatArray:
    """Ends of the intervals after n blocks, shape (2, 2 _DRAWS). Kept for each n, because those of large n are slow."""
    if n < level.first:
        return np.stack([np.full(2 * _DRAWS, -np.inf), np.full(2 * _DRAWS, np.inf)])
    d = _noise()[:_DRAWS, :n]
    low, high = capped_intervals(d, walsh_averages(d), level.values[n - level.first])
    return np.stack([np.concatenate([low, -high]), np.concatenate([high, -low])])
