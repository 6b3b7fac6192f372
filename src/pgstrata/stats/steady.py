"""Within one run: when it became steady, what its seconds are worth, how long runs and visits should be.

A second is never a replicate. What is here cuts the warm-up away, weighs autocorrelated seconds, and splits variance
into its components, so that time is spent where the variance arises (Kalibera & Jones 2013).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.model.floor import FEWEST_ROUNDS, MOST_ROUNDS, RunNoise, SliceComponents
from pgstrata.stats.floor import MAD_TO_SD, noise_floor
from pgstrata.stats.ranks import TIE, FloatArray

BATCH_SECONDS: Final = 5
# The last batches are no candidates for the cut: of very few values the standard error is small by chance
# (Hoad, Robinson & Davies 2010). With fewer than 11 batches the rest could not lie above half.
_BATCHES_LEFT: Final = 5
MIN_BATCHES: Final = 2 * _BATCHES_LEFT + 1
_UNSTEADY_ERRORS: Final = 5.0
_CLEAR_ERRORS: Final = 10.0

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
_Z_HALF_PERCENT: Final = 2.5758293035489004


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where the steady part begins: `seconds` are cut from the start; not steady where that is above half.

    `clear` if its first batch differs from what is left by more than 10 standard errors, so that this run alone shows a
    warm-up; a dip later on, such as a checkpoint's, which MSER likes to cut away as well, is none.
    """

    seconds: int
    steady: bool
    clear: bool = False


def choose_batch(seconds: int) -> int:
    """Batch size in seconds for a run of that length: 5, and less where 5 would leave too few batches."""
    return max(1, min(BATCH_SECONDS, seconds // (MIN_BATCHES + 1)))


def mser5(values: FloatArray, batch: int = BATCH_SECONDS) -> list[Cut] | None:
    """The warm-up cuts that leave the smallest standard error (White 1997; White, Cobb & Spratt 2000).

    Args:
        values: one value per second, one run in each row, shape (runs, n), finite.
        batch: seconds per batch, at least one; an incomplete last batch is left out.

    Returns:
        For each run the shortest cut that minimises the sum of squares of the batches left over the square of their
        number. A cut above half is taken only if what it cuts off differs from the rest by more than 5 standard errors;
        otherwise the best one up to half. Of steady runs of 60 s (lag-1 autocorrelation 0.6) one in a hundred is called
        unsteady so, one in ten without. None with fewer than `MIN_BATCHES` batches.
    """
    runs, seconds = values.shape
    number = seconds // batch
    if number < MIN_BATCHES:
        return None
    means = values[:, : number * batch].reshape(runs, number, batch).mean(axis=2)
    errors = _errors(means)[:, : number - _BATCHES_LEFT + 1]
    early = 2 * batch * np.arange(errors.shape[1]) <= seconds
    places = errors.argmin(axis=1)
    best_early = np.where(early, errors, np.inf).argmin(axis=1)
    steady = early[places] | ~_differ(means, places)
    chosen = np.where(steady, best_early, places)
    clear = _begins_apart(means, chosen)
    return [
        Cut(seconds=batch * place, steady=bool(is_steady), clear=bool(is_clear))
        for place, is_steady, is_clear in zip(chosen.tolist(), steady, clear, strict=True)
    ]


def _errors(means: FloatArray) -> FloatArray:
    """Square of the standard error of the mean of what is left after 0, 1, ... batches are cut, in each row."""
    backwards = (means - means.mean(axis=1, keepdims=True))[:, ::-1]
    left = np.arange(1, means.shape[1] + 1)
    squares = np.maximum(np.cumsum(backwards**2, axis=1) - np.cumsum(backwards, axis=1) ** 2 / left, 0.0)
    # Residues of floating point are no variation.
    squares[squares <= left * (TIE * np.abs(means).max(axis=1, keepdims=True)) ** 2] = 0.0
    return np.asarray((squares / left**2)[:, ::-1], dtype=np.float64)


def _begins_apart(means: FloatArray, places: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Whether the first batch differs from what lies behind a place, in each row; not where nothing lies before it."""
    behind = np.arange(means.shape[1]) >= places[:, np.newaxis]
    after = behind.sum(axis=1)
    rest = np.where(behind, means, 0.0).sum(axis=1) / after
    squares = np.where(behind, (means - rest[:, np.newaxis]) ** 2, 0.0).sum(axis=1)
    errors = np.sqrt(squares / np.maximum(after - 1, 1) * (1 + 1 / after))
    far = np.abs(means[:, 0] - rest) > _CLEAR_ERRORS * errors + TIE * np.abs(means).max(axis=1)
    return np.asarray(far & (places > 0), dtype=np.bool_)


def _differ(means: FloatArray, places: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Whether what lies before a place differs from the rest by more than 5 standard errors, in each row.

    The scatter is that of the rest: a warm-up scatters in itself. Nothing lies before place 0.
    """
    rows = np.arange(len(means))
    centred = means - means.mean(axis=1, keepdims=True)
    sums, squares = np.cumsum(centred, axis=1), np.cumsum(centred**2, axis=1)
    before = np.maximum(places, 1)
    after = means.shape[1] - before
    first, total = sums[rows, before - 1], squares[:, -1] - squares[rows, before - 1]
    # centred rows add up to nothing
    rest = -first / after
    variance = np.maximum(total - after * rest**2, 0.0) / np.maximum(after - 1, 1)
    errors = np.sqrt(variance * (1 / before + 1 / after))
    far = np.abs(first / before - rest) > _UNSTEADY_ERRORS * errors + TIE * np.abs(means).max(axis=1)
    return np.asarray(far & (places > 0), dtype=np.bool_)


def is_shift(shifts: npt.ArrayLike) -> bool:
    """Whether values have a mean other than zero, by Student's t test at 1 %.

    MSER always finds some cut: in steady runs of 60 s (lag-1 autocorrelation 0.6) in one of two, 8 s on average,
    and the longest of two runs makes differences between them scatter by a quarter more. Whether there is a warm-up at
    all is therefore asked of the runs: seconds depend on each other, runs do not.

    Args:
        shifts: for each run by how much its first seconds differ from those after the cut, as a share, shape (n,).

    Returns:
        False for fewer than 6 runs. The quantile of t is the expansion of Abramowitz & Stegun, 26.7.5: within 1 %.
    """
    found = np.asarray(shifts, dtype=np.float64)
    if found.size < _MIN_RUNS:
        return False
    error = float(found.std(ddof=1)) / math.sqrt(found.size)
    return abs(float(found.mean())) > _t_quantile(found.size - 1) * error


def _t_quantile(freedom: int) -> float:
    """Two-sided 1 % point of Student's t for 5 degrees of freedom and more."""
    z = _Z_HALF_PERCENT
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def block_cut(cuts: Sequence[Cut | None]) -> Cut | None:
    """The longest cut of a block, which applies to all its runs; None where no run has one."""
    known = [cut for cut in cuts if cut is not None]
    if not known:
        return None
    return Cut(
        seconds=max(cut.seconds for cut in known),
        steady=all(cut.steady for cut in known),
        clear=any(cut.clear for cut in known),
    )


def effective_size(values: npt.ArrayLike) -> float | None:
    """n_eff = T / (1 + 2 sum rho_k): how many independent values T autocorrelated ones are worth.

    The sum ends before the first pair rho_2k + rho_2k+1 that is not positive (Geyer 1992, initial positive sequence).

    Args:
        values: one value per second of the steady part, shape (T,).

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
        series: per run the values per second of its steady part, each of shape (T,).
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


def best_rounds(sigma_round: float, sigma_start_upper: float, dead_seconds: float, round_seconds: float) -> int:
    """Rounds per visit: sqrt(sigma_round^2 / sigma_start^2 dead time / round time), from 2 to 16.

    Args:
        sigma_round: SD of the log ratio of one round, within a visit.
        sigma_start_upper: upper 90 % limit of the SD between starts; zero gives the most rounds.
        dead_seconds: seconds of a visit outside its slices.
        round_seconds: seconds of one round, its pauses included.

    Raises:
        ValueError: a round takes no time.
    """
    if round_seconds <= 0:
        raise ValueError("a round takes time")
    reached = sigma_round * math.sqrt(max(0.0, dead_seconds) / round_seconds)
    if reached >= MOST_ROUNDS * sigma_start_upper:
        return MOST_ROUNDS
    return max(round(reached / sigma_start_upper), FEWEST_ROUNDS)


def visit_cost(
    sigma_round: float, sigma_start_upper: float, dead_seconds: float, round_seconds: float, rounds: int
) -> float:
    """Variance of a visit's median of `rounds` rounds times the seconds of the visit; arguments as of `best_rounds`."""
    variance = sigma_start_upper**2 + sigma_round**2 * _variance_of_median(rounds)
    return variance * (max(0.0, dead_seconds) + rounds * round_seconds)


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
