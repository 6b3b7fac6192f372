"""Runs and points of curves that look wrong, and environments that have no single speed.

What belongs here: what is unlike the rest, and how often that happens by chance. Nothing is ever left out for being
unlike the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.stats.curves import band_at, chord_residuals
from pgstrata.stats.floor import MAD_TO_SD
from pgstrata.stats.ranks import FloatArray

# A run or a point is called unlike the rest from here on, however quiet the machine.
LEAST: Final = math.log1p(0.05)
SDS: Final = 4.0
CURVE_ERRORS: Final = 3.0
JUDGED_FROM: Final = 6
UNSTABLE_SHARE: Final = 0.2
# Two of seven are above a fifth, and are met in 4 % of the sound environments if one run in twenty stalls.
UNSTABLE_COUNT: Final = 3

# Of more differences evenly spaced quantiles stand for all: the search for modes is quadratic.
_MOST_JUDGED: Final = 500
# Differences that are equal but for rounding are parted alike whatever the unit of the values.
_DIGITS: Final = 10
_FEWEST_POINTS: Final = 5
_FEWEST_FOR_MODES: Final = 8
_FEWEST_IN_MODE: Final = 3
_SHARE_IN_MODE: Final = 0.2
# Without a floor: gap between two modes in units of the spread inside them, by number of values. Of normal and of t3
# values 99 % stay below (8000 draws each).
_GAPS: Final = {8: 11.5, 10: 7.7, 12: 5.4, 16: 3.5, 20: 2.7, 24: 2.0}


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
    return Stability(anomalies=tuple(present[far].tolist()), judged=kept.size, limit=limit, modes=find_modes(kept, s0))


def judge_differences(d: npt.ArrayLike, s0: float | None = None) -> Stability | None:
    """How block differences fall apart; None where one percentage describes them.

    Looked at from both sides, because of two gaps alike the first is taken, and it must not matter which of two
    environments is the baseline.

    Args:
        d: finite differences in log units, shape (blocks,), in any order.
        s0: their noise floor, None if there is none.

    Returns:
        What was found; its `anomalies` are places among the sorted differences.
    """
    values = np.sort(np.round(np.asarray(d, dtype=np.float64), _DIGITS))
    if values.size < JUDGED_FROM or float(np.ptp(values)) <= LEAST:
        return None
    if values.size > _MOST_JUDGED:
        values = values[np.linspace(0, values.size - 1, _MOST_JUDGED).round().astype(np.intp)]
    # The limit of a run is 4 s0 / sqrt 2, because s0 is the scale of a difference of two: here it is that of one.
    scale = None if s0 is None else s0 * math.sqrt(2)
    found = judge_stability(values, scale)
    if not found.is_unstable:
        found = _mirror(judge_stability(-values, scale))
    return found if found.is_unstable else None


def _mirror(found: Stability) -> Stability:
    if found.modes is None:
        return found
    low, high, share = found.modes.low, found.modes.high, found.modes.share_high
    return replace(found, modes=Modes(low=-high, high=-low, share_high=1 - share))


def find_modes(logs: npt.ArrayLike, s0: float | None = None) -> Modes | None:
    """Two groups of values with nothing between them, or None.

    The values are parted at their widest gap that leaves at least three values and a fifth on either side. The groups
    are modes if the gap is wider than the distance at which a run is an anomaly; without a floor, than 5 % and so many
    times the spread inside the groups (1.4826 * the median distance of all values to the median of their group) that
    one group seldom looks like two.

    Args:
        logs: finite values, shape (n,), in any order; fewer than 8 have no modes.
        s0: the noise floor in log units, None if there is none.
    """
    values = np.sort(np.asarray(logs, dtype=np.float64))
    smallest = max(_FEWEST_IN_MODE, math.ceil(_SHARE_IN_MODE * values.size))
    if values.size < max(_FEWEST_FOR_MODES, 2 * smallest):
        return None
    gaps = np.diff(values)[smallest - 1 : values.size - smallest]
    split = smallest + int(np.argmax(gaps))
    low, high = values[:split], values[split:]
    if s0 is None:
        distances = np.concatenate([np.abs(group - np.median(group)) for group in (low, high)])
        times = float(np.interp(values.size, list(_GAPS), list(_GAPS.values())))
        limit = max(times * MAD_TO_SD * float(np.median(distances)), LEAST)
    else:
        limit = run_limit(s0, values)
    if gaps.max() <= limit:
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
        raise ValueError(f"{found} of {size} and {other_found} of {other_size} are not shares")
    total = found + other_found
    first = max(0, total - other_size)
    weights = [math.comb(size, first) * math.comb(other_size, total - first)]
    for k in range(first, min(total, size)):
        weights.append(weights[-1] * (size - k) * (total - k) // ((k + 1) * (other_size - total + k + 1)))
    mine = weights[found - first]
    return sum(weight for weight in weights if weight <= mine) / sum(weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kink:
    """A point of a curve that does not fit with the others.

    `residual` and the `limit` that it exceeds (log units) are those of the point `witness`, by which it came to light:
    mostly the same one, but near a bend a dent hides in what the others leave open, and a neighbour sticks out.
    """

    place: int
    witness: int
    residual: float
    limit: float


def find_kinks(clients: npt.ArrayLike, logs: npt.ArrayLike) -> tuple[Kink, ...]:
    """Points without which a curve is smooth, where one point lies more than max(3 standard errors, 5 %) off.

    How far a point is off is its distance from all that the others leave open for it (`curves.band_at`). A kink spoils
    the bands of its neighbours too: what is accused is the point without which the others are least off. Then it is
    left out, and the rest judged again. The ends of the curve are not judged, because nothing lies beyond them; if an
    end is wrong, its neighbour looks so.

    Args:
        clients: numbers of clients, ascending and above zero, shape (points,).
        logs: ln of the values, shape (blocks, points), or (points,) for single values; gaps are nan. The medians over
            the blocks are judged, by the scatter of the blocks; single values by 1.4826 * MAD of their distances from
            the line through their neighbours.

    Returns:
        The kinks by place; none with fewer than 5 points.

    Raises:
        ValueError: the clients do not ascend from above zero.
    """
    x, values = _log_clients(clients), np.atleast_2d(np.asarray(logs, dtype=np.float64))
    kept = np.flatnonzero(np.isfinite(values).any(axis=0))
    kinks: list[Kink] = []
    while kept.size >= _FEWEST_POINTS:
        y = np.nanmedian(values[:, kept], axis=0)
        residuals = _residuals(x[kept], y)
        worst = int(np.argmax(np.abs(residuals)))
        limit = max(CURVE_ERRORS * _curve_error(x[kept], values[:, kept], worst), LEAST)
        if abs(residuals[worst]) <= limit:
            break
        rests = [_residuals(np.delete(x[kept], k), np.delete(y, k)) for k in range(1, kept.size - 1)]
        accused = 1 + int(np.argmin([float(rest @ rest) for rest in rests]))
        kinks.append(
            Kink(place=int(kept[accused]), witness=int(kept[worst + 1]), residual=float(residuals[worst]), limit=limit)
        )
        kept = np.delete(kept, accused)
    return tuple(sorted(kinks, key=lambda kink: kink.place))


def _log_clients(clients: npt.ArrayLike) -> FloatArray:
    numbers = np.asarray(clients, dtype=np.float64)
    if not (numbers > 0).all() or not (np.diff(numbers) > 0).all():
        raise ValueError("numbers of clients have to ascend from above zero")
    return np.asarray(np.log(numbers), dtype=np.float64)


def _residuals(x: FloatArray, y: FloatArray) -> FloatArray:
    """How far each inner point is off, 0 within its band: shape (points - 2,)."""
    bands = [band_at(x, y, point) for point in range(1, x.size - 1)]
    return np.array([value - np.clip(value, *band) for value, band in zip(y[1:-1], bands, strict=True)])


def _curve_error(x: FloatArray, values: FloatArray, worst: int) -> float:
    """Standard error of the median over the blocks of a distance from the neighbours' line, the same for all points.

    Args:
        x: shape (points,).
        values: shape (blocks, points).
        worst: the inner point that is judged, which does not count where it would judge itself.
    """
    distances = chord_residuals(x, values)
    blocks = np.isfinite(distances).sum(axis=0).max(initial=0)
    if blocks == 0:
        return math.inf
    if blocks == 1:
        fullest = distances[int(np.isfinite(distances).sum(axis=1).argmax())]
        rest = np.delete(fullest, [worst - 1, worst, worst + 1] if 0 < worst < x.size - 3 else [worst])
        rest = rest[np.isfinite(rest)]
        return MAD_TO_SD * float(np.median(np.abs(rest - np.median(rest)))) if rest.size else 0.0
    first, second = np.triu_indices(len(values), k=1)
    pairs = np.abs(distances[first] - distances[second])
    sd = MAD_TO_SD / math.sqrt(2) * float(np.median(pairs[np.isfinite(pairs)]))
    return sd * math.sqrt(math.pi / 2 / blocks)
