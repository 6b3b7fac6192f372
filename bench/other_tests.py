"""What others do with two series of runs: Welch's test and Mann and Whitney's, vectorised over comparisons.

Written out here because the tool does without scipy.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from pgstrata.stats.unpaired import unpaired_critical

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def welch_differs(a: Floats, b: Floats, alpha: float = 0.05) -> Bools:
    """Where Welch's t test of two means is below alpha, for values of shape (g, n) and (g, m)."""
    of_a, of_b = a.var(axis=-1, ddof=1) / a.shape[-1], b.var(axis=-1, ddof=1) / b.shape[-1]
    freedom = (of_a + of_b) ** 2 / (of_a**2 / (a.shape[-1] - 1) + of_b**2 / (b.shape[-1] - 1))
    t = np.abs(a.mean(axis=-1) - b.mean(axis=-1)) / np.sqrt(of_a + of_b)
    return np.asarray(t > _t_limits(freedom, alpha), dtype=np.bool_)


def _t_limits(freedom: Floats, alpha: float) -> Floats:
    """Two-sided limits of Student's t, interpolated over 1 / degrees of freedom."""
    inverse, limits = _t_table(alpha)
    return np.asarray(np.interp(1 / freedom, inverse, limits), dtype=np.float64)


@cache
def _t_table(alpha: float) -> tuple[Floats, Floats]:
    degrees = np.concatenate([np.arange(1.0, 6.0, 0.05), np.arange(6.0, 60.0, 0.5), [80, 120, 240, 1000]])
    limits = np.array([_t_limit(float(nu), alpha) for nu in degrees])
    return 1 / degrees[::-1], limits[::-1]


def _t_limit(nu: float, alpha: float) -> float:
    """By integration of the density in x = arctan(t / sqrt(nu)), where it is cos(x)^(nu - 1)."""
    x = np.linspace(0, math.pi / 2, 20_001)
    density = np.cos(x) ** (nu - 1)
    density[-1] = 1.0 if nu == 1 else 0.0
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return float(math.sqrt(nu) * np.tan(np.interp(1 - alpha, mass / mass[-1], x)))


def mann_whitney_differs(a: Floats, b: Floats, alpha: float = 0.05) -> Bools:
    """Where the exact two-sided Mann-Whitney test is at most alpha, for values of shape (g, n) and (g, m), no ties."""
    n, m = a.shape[-1], b.shape[-1]
    critical = unpaired_critical(n, m, alpha)
    if critical is None:
        return np.zeros(len(a), dtype=np.bool_)
    ranks = np.argsort(np.argsort(np.concatenate([a, b], axis=-1), axis=-1), axis=-1)
    beaten = ranks[:, :n].sum(axis=-1) - n * (n - 1) // 2
    return np.asarray(np.minimum(beaten, n * m - beaten) <= critical, dtype=np.bool_)
