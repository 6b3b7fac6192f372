"""Where variance arises: what the seconds of a run are worth, and what rounds and starts add to a visit.

A second is never a replicate. What is here weighs autocorrelated seconds and splits variance into its components, so
that a report can show where it arises (Kalibera & Jones 2013).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.model.floor import FEWEST_ROUNDS, SliceComponents
from pgstrata.stats.floor import MAD_TO_SD
from pgstrata.stats.ranks import TIE, FloatArray

_MIN_SECONDS: Final = 8
MIN_VISITS: Final = 5
# Makes the median of |x - y| over pairs estimate the standard deviation where x and y are normal.
_PAIRS_TO_SD: Final = MAD_TO_SD / math.sqrt(2)
# Efficiency of that estimate against the sample standard deviation (Bickel & Lehmann 1979): the information of n
# values is that of 0.86 n.
_PAIRS_EFFICIENCY: Final = 0.86
_Z_UPPER: Final = 1.2815515655446004


def effective_size(values: npt.ArrayLike) -> float | None:
    """n_eff = T / (1 + 2 sum rho_k): how many independent values T autocorrelated ones are worth.

    The sum ends before the first pair rho_2k + rho_2k+1 that is not positive (Geyer 1992, initial positive sequence).

    Args:
        values: one value per second, shape (T,).

    Returns:
        Between 1 and T: alternating values are not given credit for being better than independent ones. None for
        fewer than 8 values, constant ones, or gaps.
    """
    series = np.asarray(values, dtype=np.float64)
    if series.size < _MIN_SECONDS or not np.isfinite(series).all() or np.ptp(series) <= TIE * np.abs(series).max():
        return None
    rho = _autocorrelations(series)
    rho = rho[: rho.size // 2 * 2]
    pairs = rho[0::2] + rho[1::2]
    ends = np.flatnonzero(pairs <= 0)
    inflation = 2 * float(pairs[: ends[0] if ends.size else pairs.size].sum()) - 1
    return float(series.size / min(max(inflation, 1.0), series.size))


def _autocorrelations(series: FloatArray) -> FloatArray:
    """rho_0 .. rho_T-1, all divided by T, which keeps the sequence positive definite."""
    centred = series - series.mean()
    spectrum = np.fft.rfft(centred, 2 * series.size)
    products = np.fft.irfft(spectrum * spectrum.conj(), 2 * series.size)[: series.size]
    return np.asarray(products / products[0], dtype=np.float64)


def slice_components(visits: Sequence[npt.ArrayLike]) -> SliceComponents | None:
    """Components of variance of slices, robust against stalled slices and visits.

    Both scales are medians of |x - y| over pairs (Bickel & Lehmann 1979): of rounds of one visit, which cancels the
    visit's start, and of visit medians. The latter hold the start and the error of the median; the limit takes the
    visit scale as a chi-square of 0.86 (visits - 1) degrees of freedom.

    Args:
        visits: per visit the log ratios of its rounds, each of shape (rounds,); values that are not finite are left
            out, and so are visits of fewer than two rounds.

    Returns:
        None for fewer than `MIN_VISITS` usable visits.
    """
    usable = [rounds[np.isfinite(rounds)] for rounds in (np.asarray(visit, dtype=np.float64) for visit in visits)]
    usable = [rounds for rounds in usable if rounds.size >= FEWEST_ROUNDS]
    if len(usable) < MIN_VISITS:
        return None
    sigma_round = _PAIRS_TO_SD * float(np.median(np.concatenate([_distances(rounds) for rounds in usable])))
    medians = np.array([np.median(rounds) for rounds in usable])
    within = sigma_round**2 * float(np.mean([_variance_of_median(rounds.size) for rounds in usable]))
    total = (_PAIRS_TO_SD * float(np.median(_distances(medians)))) ** 2
    freedom = _PAIRS_EFFICIENCY * (len(usable) - 1)
    upper = total * freedom / _chi_square_lower(freedom)
    return SliceComponents(
        sigma_round=sigma_round,
        sigma_visit=math.sqrt(total),
        sigma_start=math.sqrt(max(0.0, total - within)),
        sigma_start_upper=math.sqrt(max(0.0, upper - within)),
        visits=len(usable),
        rounds=round(float(np.median([rounds.size for rounds in usable]))),
    )


def _distances(values: FloatArray) -> FloatArray:
    """|x - y| of all pairs of different places."""
    first, second = np.triu_indices(values.size, k=1)
    return np.abs(values[first] - values[second])


def _variance_of_median(size: int) -> float:
    """Variance of the median of independent standard normal values, within 1 % for two and more.

    pi / (2 size) for large samples; the shifts of `size` fit the exact values of small ones (0.4487 of three, 0.2982
    of four).
    """
    if size == FEWEST_ROUNDS:
        return 0.5
    return math.pi / 2 / (size + (0.5 if size % 2 else 1.25))


def _chi_square_lower(freedom: float) -> float:
    """10 % quantile of chi-square (Wilson & Hilferty 1931), for 3 degrees of freedom and more within 1 %."""
    spread = 2 / (9 * freedom)
    return float(freedom * (1 - spread - _Z_UPPER * math.sqrt(spread)) ** 3)
