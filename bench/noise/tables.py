"""Small statistics with bootstrap intervals, and tables in Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from noise.recorded import Floats

from pgstrata.stats.floor import MAD_TO_SD, noise_floor

DRAWS = 1000


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A Markdown table with its heading."""
    print(f"\n## {title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def bootstrap(rng: np.random.Generator, statistic: Callable[..., float], *columns: Floats, scale: float = 100) -> str:
    """A statistic with its 95 % interval, as text: rows of the columns (blocks, or runs) drawn with replacement."""
    size = len(columns[0])
    drawn = []
    for _ in range(DRAWS):
        chosen = rng.integers(0, size, size)
        drawn.append(statistic(*(column[chosen] for column in columns)))
    low, high = np.nanpercentile(drawn, (2.5, 97.5))
    return with_interval(statistic(*columns), float(low), float(high), scale)


def with_interval(value: float, low: float, high: float, scale: float = 100) -> str:
    """A value and its interval, times `scale`."""
    return f"{scale * value:.3g} [{scale * low:.3g}, {scale * high:.3g}]"


def rms(d: Floats) -> float:
    """Standard deviation around zero, which is the centre by design."""
    return math.sqrt(float(np.mean(d**2)))


def rms_ratio(d: Floats, plain: Floats) -> float:
    """What is left of a standard deviation."""
    return rms(d) / rms(plain)


def floor_ratio(d: Floats, plain: Floats) -> float:
    """What is left of a noise floor."""
    return noise_floor(d) / noise_floor(plain)


def run_sd(d: Floats) -> float:
    """SD of one run within its block, from differences of two."""
    return rms(d) / math.sqrt(2)


def between_sd(d: Floats, means: Floats) -> float:
    """SD of block means beyond what the runs of a block give them."""
    return math.sqrt(max(0.0, float(np.var(means)) - float(np.mean(d**2)) / 4))


def tail_ratio(d: Floats) -> float:
    """SD over noise floor: 1 for normal values, more with outliers."""
    return rms(d) / noise_floor(d)


def kurtosis(d: Floats) -> float:
    """Fourth moment around zero over the square of the second; 3 for normal values."""
    return float(np.mean(d**4) / np.mean(d**2) ** 2)


def mean(values: Floats) -> float:
    return float(np.mean(values))


def robust_sd(values: Floats) -> float:
    """1.4826 * median distance from the median."""
    return float(MAD_TO_SD * np.median(np.abs(values - np.median(values))))


def robust_gamma(steps: Floats) -> float:
    """Half the variance of differences, from the median of their sizes."""
    return noise_floor(steps.ravel()) ** 2 / 2
