"""Runs and points of curves that look wrong, environments that have no single speed, and what to make of a repeat.

What belongs here: what is unlike the rest, and how often that happens by chance. Nothing is ever left out for being
unlike the rest: an anomaly asks for new blocks, and those alone say whether it was one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.stats.boundaries import C_EQ
from pgstrata.stats.curves import FEWEST_POINTS, leave_one_out
from pgstrata.stats.floor import MAD_TO_SD
from pgstrata.stats.ranks import TIE, FloatArray
from pgstrata.stats.rule import MIN_BLOCKS, Rule, decide_once

# A run or a point is called unlike the rest from here on, however quiet the machine.
LEAST: Final = math.log1p(0.05)
SDS: Final = 4.0
JUDGED_FROM: Final = 6
UNSTABLE_SHARE: Final = 0.2
# Two of seven are above a fifth, and are met in 3 % of the sound environments if one run in twenty stalls.
UNSTABLE_COUNT: Final = 3
REPEAT_BLOCKS: Final = MIN_BLOCKS

_FEWEST_FOR_MODES: Final = 8
_FEWEST_IN_MODE: Final = 3
_SHARE_IN_MODE: Final = 0.2
# Gap between two modes in units of the spread inside them.
_GAP: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """Two speeds of one environment: medians of the groups in log units, share of the values in the upper one."""

    low: float
    high: float
    share_high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """How steady one environment is over its blocks.

    `anomalies` are the places of the runs that lie more than `limit` (log units) from the median of the `judged` runs;
    they stay in every estimate.
    """

    anomalies: tuple[int, ...]
    judged: int
    limit: float
    modes: Modes | None

    @property
    def rate(self) -> float:
        """Share of the runs that are anomalies, 0 while none is judged."""
        return len(self.anomalies) / self.judged if self.judged else 0.0

    @property
    def extra_blocks(self) -> int:
        """One more block for each anomaly."""
        return len(self.anomalies)

    @property
    def is_unstable(self) -> bool:
        """Whether a single percentage would mislead: two modes, or at least three anomalies and more than a fifth."""
        many = len(self.anomalies) >= UNSTABLE_COUNT and self.rate > UNSTABLE_SHARE
        return many or self.modes is not None


def run_limit(s0: float | None, logs: FloatArray) -> float:
    """Distance from the median at which a run is an anomaly: max(4 s0 / sqrt 2, 5 %), in log units.

    s0 is the scale of a difference of two runs. Without a floor 1.4826 * MAD of the runs stands in for s0 / sqrt 2.
    """
    scale = s0 / math.sqrt(2) if s0 is not None else MAD_TO_SD * float(np.median(np.abs(logs - np.median(logs))))
    return max(SDS * scale, LEAST)


def judge_stability(logs: npt.ArrayLike, s0: float | None) -> Stability:
    """Anomalies and modes among the runs of one environment in one cell.

    Args:
        logs: ln of the values by block, shape (blocks,); values that are not finite are not judged. A drift that all
            environments share belongs taken out before, where there are enough of them to tell.
        s0: the noise floor in log units, None if there is none.

    Returns:
        Before six values none is judged.
    """
    values = np.asarray(logs, dtype=np.float64)
    present = np.flatnonzero(np.isfinite(values))
    kept = values[present]
    if kept.size < JUDGED_FROM:
        return Stability(anomalies=(), judged=0, limit=LEAST, modes=None)
    limit = run_limit(s0, kept)
    far = np.abs(kept - np.median(kept)) > limit
    return Stability(
        anomalies=tuple(present[far].tolist()), judged=kept.size, limit=limit, modes=find_modes(kept, limit)
    )


def find_modes(logs: npt.ArrayLike, least: float = LEAST) -> Modes | None:
    """Two groups of values with nothing between them, or None.

    The values are parted at their widest gap that leaves at least three values and a fifth on either side. The groups
    are modes if the gap is wider than `least` and than 3 times the spread inside them, 1.4826 * the median distance of
    all values to the median of their group.

    Args:
        logs: finite values, shape (n,), in any order; fewer than 8 have no modes.
        least: distance in log units that would matter.
    """
    values = np.sort(np.asarray(logs, dtype=np.float64))
    smallest = max(_FEWEST_IN_MODE, math.ceil(_SHARE_IN_MODE * values.size))
    if values.size < max(_FEWEST_FOR_MODES, 2 * smallest):
        return None
    gaps = np.diff(values)[smallest - 1 : values.size - smallest]
    split = smallest + int(np.argmax(gaps))
    low, high = values[:split], values[split:]
    distances = np.concatenate([np.abs(group - np.median(group)) for group in (low, high)])
    if gaps.max() <= max(least, _GAP * MAD_TO_SD * float(np.median(distances))):
        return None
    return Modes(low=float(np.median(low)), high=float(np.median(high)), share_high=high.size / values.size)


def fisher_exact(found: int, size: int, other_found: int, other_size: int) -> float:
    """Two-sided p of Fisher's exact test that two shares, such as anomaly rates, are the same.

    The sum of the probabilities of all tables with these margins that are at most as likely as this one (Fisher 1935),
    in whole numbers.

    Raises:
        ValueError: a count is negative or exceeds its size.
    """
    if not (0 <= found <= size and 0 <= other_found <= other_size):
        raise ValueError(f"{found} of {size} and {other_found} of {other_size} are no shares")
    total = found + other_found
    first = max(0, total - other_size)
    weights = [math.comb(size, first) * math.comb(other_size, total - first)]
    for k in range(first, min(total, size)):
        weights.append(weights[-1] * (size - k) * (total - k) // ((k + 1) * (other_size - total + k + 1)))
    mine = weights[found - first]
    return sum(weight for weight in weights if weight <= mine) / sum(weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kink:
    """A point of a curve that its neighbours do not predict: residual and the limit it exceeds, in log units."""

    place: int
    residual: float
    limit: float


def find_kinks(clients: npt.ArrayLike, logs: npt.ArrayLike) -> tuple[Kink, ...]:
    """Points that a smooth curve through the other points misses by more than max(4 * 1.4826 * MAD, 5 %).

    The point that is missed most is judged first, by the residuals that the others have without it: it spoils those of
    its neighbours, which would otherwise be accused with it. If it is a kink, it is left out and the rest judged again.
    The ends of the curve are not judged, because nothing lies beyond them; if an end is wrong, its neighbour looks so.

    Args:
        clients: numbers of clients, ascending and above zero, shape (points,).
        logs: ln of the values, shape (points,); points without a finite value are passed over.

    Returns:
        The kinks by place; none with fewer than 5 points.

    Raises:
        ValueError: the clients do not ascend from above zero.
    """
    numbers, y = np.asarray(clients, dtype=np.float64), np.asarray(logs, dtype=np.float64)
    if not (numbers > 0).all() or not (np.diff(numbers) > 0).all():
        raise ValueError("numbers of clients have to ascend from above zero")
    x = np.log(numbers)
    kept = np.flatnonzero(np.isfinite(y))
    kinks: list[Kink] = []
    while kept.size >= FEWEST_POINTS:
        residuals = leave_one_out(x[kept], y[kept])
        worst = int(np.argmax(np.abs(residuals[1:-1]))) + 1
        rest = np.delete(kept, worst)
        others = leave_one_out(x[rest], y[rest])[1:-1]
        limit = max(SDS * MAD_TO_SD * float(np.median(np.abs(others))), LEAST)
        if abs(residuals[worst]) <= limit:
            break
        kinks.append(Kink(place=int(kept[worst]), residual=float(residuals[worst]), limit=limit))
        kept = rest
    return tuple(sorted(kinks, key=lambda kink: kink.place))


class Repeat(StrEnum):
    """What new blocks made of an anomaly."""

    CONFIRMED = "confirmed kink"
    TRANSIENT = "transient"
    UNDECIDED = "undecided"


def judge_repeat(new_differences: npt.ArrayLike, *, first: float, limit: float = LEAST) -> Repeat:
    """What became of an anomaly, on the new data alone.

    Args:
        new_differences: per new block the residual of the point or run that looked wrong, in log units, shape (n,).
        first: the residual that asked for the repeat; only its direction is used.
        limit: the size in log units that makes an anomaly.

    Returns:
        A transient if the equivalence interval stays below `limit` in the direction of `first`; confirmed if the
        interval excludes zero in that direction (by chance in at most 2.25 %); undecided in between and below 7 blocks.

    Raises:
        ValueError: a difference is not finite, or `first` has no direction.
    """
    if not abs(first) > TIE:
        raise ValueError("the first residual has no direction")
    d = math.copysign(1.0, first) * np.asarray(new_differences, dtype=np.float64)
    (decision,) = decide_once([d], [Rule(delta=limit)])
    estimate = decision.estimate
    if estimate is None or estimate.interval is None or estimate.equivalence is None or estimate.n < C_EQ.first:
        return Repeat.UNDECIDED
    if estimate.equivalence.high < limit:
        return Repeat.TRANSIENT
    return Repeat.CONFIRMED if estimate.interval.low > TIE else Repeat.UNDECIDED
