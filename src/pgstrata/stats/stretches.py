"""The stretch of a series in which its level differs: where it begins and ends, with intervals.

One stretch with a level of its own is fitted by least squares (the epidemic alternative: Levin & Kline, Statistics in
Medicine 4, 1985). Intervals are those of 95 % by resampling residuals in blocks that are long against the memory of the
series (Künsch, Annals of Statistics 17, 1989), and never narrower than a step to either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from pgstrata.stats.ranks import FloatArray

_SHORTEST: Final = 3
_RESAMPLES: Final = 200
_TAIL: Final = 0.025


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Steps of a series from `begin` (included) to `end` (excluded), each with its interval.

    `ends`: the stretch ends before the series does, whole interval and all. `told` is the share of the sum of squares
    that it explains.
    """

    begin: int
    end: int
    begin_interval: tuple[float, float]
    end_interval: tuple[float, float]
    ends: bool
    told: float


def find_stretch(values: FloatArray, block: int, seed: int) -> Stretch | None:
    """The stretch that differs most from the rest; None of too few steps, or where all are equal.

    Args:
        values: finite, shape (n,).
        block: steps of a block of residuals.
        seed: of the resampling.
    """
    size = values.size
    if size < 4 * _SHORTEST or float(values.std()) == 0:
        return None
    begin, end = _fit(values)
    level = np.full(size, _rest(values, begin, end))
    level[begin:end] = values[begin:end].mean()
    residuals = values - level
    draws = np.random.default_rng(seed)
    found = np.array([_fit(level + _resample(residuals, begin, end, block, draws)) for _ in range(_RESAMPLES)])
    begins, ends = (np.quantile(found[:, side], (_TAIL, 1 - _TAIL)) for side in (0, 1))
    return Stretch(
        begin=begin,
        end=end,
        begin_interval=(min(float(begins[0]), begin - 1), max(float(begins[1]), begin + 1)),
        end_interval=(min(float(ends[0]), end - 1), max(float(ends[1]), end + 1)),
        ends=max(float(ends[1]), end + 1) < size,
        told=1 - float(residuals @ residuals) / float(((values - values.mean()) ** 2).sum()),
    )


def _rest(values: FloatArray, begin: int, end: int) -> float:
    return float(np.concatenate((values[:begin], values[end:])).mean())


def _fit(values: FloatArray) -> tuple[int, int]:
    """Where the sum of squares between the stretch and the rest is largest."""
    sums = np.concatenate(([0.0], np.cumsum(values - values.mean())))
    gain = (sums[np.newaxis, :] - sums[:, np.newaxis]) ** 2 * _weights(values.size)
    begin, end = divmod(int(np.argmax(gain)), values.size + 1)
    return begin, end


@lru_cache(maxsize=4)
def _weights(size: int) -> FloatArray:
    """What turns squared sums into a sum of squares, by begin and end; 0 where a stretch or the rest is too short.

    Some steps are left before the stretch.
    """
    length = np.arange(size + 1)[np.newaxis, :] - np.arange(size + 1)[:, np.newaxis]
    allowed = (length >= _SHORTEST) & (length <= size - _SHORTEST)
    allowed[:_SHORTEST] = False
    safe = np.where(allowed, length, 1)
    return np.where(allowed, 1 / (safe * (1 - safe / size)), 0.0)


def _resample(residuals: FloatArray, begin: int, end: int, block: int, draws: np.random.Generator) -> FloatArray:
    """Residuals in blocks, those of the stretch and those of the rest each from their own."""
    found = np.empty_like(residuals)
    found[begin:end] = _blocks(residuals[begin:end], end - begin, block, draws)
    rest = np.concatenate((residuals[:begin], residuals[end:]))
    drawn = _blocks(rest, rest.size, block, draws)
    found[:begin], found[end:] = drawn[:begin], drawn[begin:]
    return found


def _blocks(values: FloatArray, size: int, block: int, draws: np.random.Generator) -> FloatArray:
    """Blocks of a circle of values, `size` in all."""
    number = -(-size // block)
    starts = draws.integers(0, values.size, number)
    places = (starts[:, np.newaxis] + np.arange(block)) % values.size
    return np.asarray(values[places.ravel()[:size]], dtype=np.float64)
