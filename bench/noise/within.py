"""What the seconds of a run say: the AR(1) process that would explain them, and what it leaves to the run."""

from __future__ import annotations

import math

import numpy as np
from noise.recorded import Floats, Pairs, Runs
from noise.tables import robust_gamma

from pgstrata.stats.floor import noise_floor

_GRID = np.arange(0.0, 0.985, 0.005)


def block_seconds(runs: Runs, pairs: Pairs) -> Floats:
    """ln of the throughput by second, shape (blocks, 2, seconds); blocks with a second missing are left out."""
    complete = [rows for rows in pairs.rows if all(len(runs.seconds[place]) == pairs.run_seconds for place in rows)]
    return np.array([[runs.seconds[place] for place in rows] for rows in complete])


def fit_ar1(blocks: Floats) -> tuple[float, float]:
    """phi and SD of a second, from the variogram of lags 1, 2 …: gamma(k) = s^2 (1 - phi^k).

    Other than autocorrelations it is free of the bias that short runs have once their mean is taken out.
    """
    seconds = blocks.reshape(-1, blocks.shape[-1])
    lags = np.arange(1, seconds.shape[1])
    gammas = np.array([robust_gamma(seconds[:, lag:] - seconds[:, :-lag]) for lag in lags])
    shapes = 1 - _GRID[:, np.newaxis] ** lags
    weights = (seconds.shape[1] - lags) / gammas**2
    squares = (shapes * gammas * weights).sum(axis=1) / (shapes**2 * weights).sum(axis=1)
    losses = ((squares[:, np.newaxis] * shapes - gammas) ** 2 * weights).sum(axis=1)
    best = int(np.argmin(losses))
    return float(_GRID[best]), math.sqrt(float(squares[best]))


def phi(blocks: Floats) -> float:
    return fit_ar1(blocks)[0]


def second_sd(blocks: Floats) -> float:
    return fit_ar1(blocks)[1]


def left_to_run(blocks: Floats) -> float:
    """SD of a run (s0 / sqrt 2) without what AR(1) seconds would give its mean; 0 where they explain all."""
    autocorrelation, second = fit_ar1(blocks)
    size = blocks.shape[-1]
    lags = np.arange(1, size)
    inflation = 1 + 2 * float(((1 - lags / size) * autocorrelation**lags).sum())
    means = blocks.mean(axis=-1)
    total = noise_floor(means[:, 1] - means[:, 0]) ** 2 / 2
    return math.sqrt(max(0.0, total - second**2 * inflation / size))


def neighbours_sd(blocks: Floats) -> float:
    """SD of the difference of two neighbouring seconds of one run: what slices of a second would have between them."""
    return math.sqrt(2 * robust_gamma(np.diff(blocks, axis=-1)))


def window_differences(blocks: Floats, begin: int, end: int) -> Floats:
    """Block differences of the throughput from second `begin` to second `end` of the runs, shape (blocks,)."""
    parts = np.log(np.exp(blocks[:, :, begin:end]).mean(axis=2))
    return np.asarray(parts[:, 1] - parts[:, 0], dtype=np.float64)
