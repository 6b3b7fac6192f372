"""Where variance arises: what the seconds of a run are worth, and how long runs and visits should be.

A second is never a replicate. What is here weighs autocorrelated seconds and splits variance into its components, so
that time is spent where the variance arises (Kalibera & Jones 2013).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.model.floor import FEWEST_ROUNDS, RunNoise, SliceComponents
from pgstrata.stats.floor import MAD_TO_SD, noise_floor
from pgstrata.stats.ranks import TIE, FloatArray

_MIN_SECONDS: Final = 8
_MIN_RUNS: Final = 6
_LARGEST_PHI: Final = 0.99
SHORTEST_RUN: Final = 10.0
LONGEST_RUN: Final = 600.0

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


def run_noise(series: Sequence[npt.ArrayLike], differences: npt.ArrayLike | None = None) -> RunNoise | None:
    """Components of variance of one environment in one cell.

    Args:
        series: per run its values per second, each of shape (T,).
        differences: A/A block differences of runs of this length, if there are any: half their variance is that of
            one run without the drift that the arms of a block share. Without them the spread of the runs stands in.

    Returns:
        Medians over the runs, so that a stalled second or run counts little; None for fewer than 6 usable runs.
    """
    fits = [fit for fit in (_fit_ar1(np.asarray(values, dtype=np.float64)) for values in series) if fit is not None]
    if len(fits) < _MIN_RUNS:
        return None
    phi, second, _, seconds = (float(np.median([fit[part] for fit in fits])) for part in range(4))
    if differences is None:
        logs = np.array([fit[2] for fit in fits])
        total = (MAD_TO_SD * float(np.median(np.abs(logs - np.median(logs))))) ** 2
    else:
        total = noise_floor(differences) ** 2 / 2
    within = second * (1 + phi) / (1 - phi) / seconds
    return RunNoise(phi=phi, second=second, run=max(0.0, total - within), seconds=seconds)


def _fit_ar1(series: FloatArray) -> tuple[float, float, float, float] | None:
    """phi, variance of one second relative to the mean, ln mean, seconds; None where they cannot be had.

    phi is freed of its bias of -(1 + 3 phi) / T (Marriott & Pope 1954), the variance of what the estimated mean takes.
    """
    size = series.size
    if size < _MIN_SECONDS or not np.isfinite(series).all() or series.mean() <= 0:
        return None
    relative = series / series.mean() - 1
    squares = float(relative @ relative)
    if np.ptp(relative) <= TIE:
        return None
    raw = float(relative[1:] @ relative[:-1]) / squares
    phi = min(max((size * raw + 1) / (size - 3), -_LARGEST_PHI), _LARGEST_PHI)
    inflation = (1 + phi) / (1 - phi)
    if size <= 2 * inflation:
        return None
    return phi, squares / (size - inflation), math.log(series.mean()), float(size)


def best_run_length(noise: RunNoise, overhead: float) -> float | None:
    """The measured seconds per run at which a study of given length learns most.

    A run costs overhead + t seconds and has the variance run + second (1 + phi) / (1 - phi) / t; the product is
    smallest at t = sqrt(overhead second (1 + phi) / (1 - phi) / run) (Kalibera & Jones 2013).

    Args:
        noise: components of variance.
        overhead: seconds of a run around its measured ones.

    Returns:
        Seconds within `SHORTEST_RUN` and `LONGEST_RUN`; None where nothing is seen to vary between runs beyond what
        their seconds explain: there is no optimum then.
    """
    if noise.run <= 0:
        return None
    length = math.sqrt(max(0.0, overhead) * noise.second * noise.inflation / noise.run)
    return min(max(length, SHORTEST_RUN), LONGEST_RUN)


def run_cost(noise: RunNoise, overhead: float, seconds: float) -> float:
    """Variance of a run's ln value times its duration: what a study pays for what it learns of runs of `seconds`."""
    return (noise.run + noise.second * noise.inflation / seconds) * (max(0.0, overhead) + seconds)


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
