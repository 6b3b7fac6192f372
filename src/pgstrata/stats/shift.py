"""The shift function: by how much each quantile of a distribution moved (Doksum 1974), block by block.

Latency is not a number but a distribution: a change may help the median and hurt the tail. Quantiles are those of
single runs; they are never averaged, and runs are never pooled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.stats.family import Series
from pgstrata.stats.ranks import FloatArray, hodges_lehmann

QUANTILES: Final = (0.10, 0.20, 0.30, 0.40, 0.50, 0.60, 0.70, 0.80, 0.90, 0.95, 0.99)
# A quantile with fewer samples beyond it is decided by single ones.
SAMPLES_BEYOND: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """One quantile: the differences of its blocks, above zero where the environment is better.

    `centre` is the Hodges-Lehmann estimate, None where no block has the quantile in both arms.
    """

    quantile: float
    series: Series
    centre: float | None


def supported(samples: npt.ArrayLike, quantiles: Sequence[float] = QUANTILES) -> npt.NDArray[np.bool_]:
    """Whether runs of that many samples have enough of them on the rarer side of each quantile.

    Args:
        samples: number of samples of each run, shape (runs,).
        quantiles: between 0 and 1.

    Returns:
        Shape (runs, quantiles).
    """
    levels = np.asarray(quantiles, dtype=np.float64)
    rarer = np.minimum(levels, 1 - levels)
    beyond = np.asarray(samples, dtype=np.float64)[:, np.newaxis] * rarer
    return np.asarray(beyond >= SAMPLES_BEYOND * (1 - 1e-9), dtype=np.bool_)


def shift_function(
    values: npt.ArrayLike,
    base_values: npt.ArrayLike,
    blocks: Sequence[int],
    *,
    quantiles: Sequence[float] = QUANTILES,
    higher_is_better: bool = False,
) -> tuple[Shift, ...]:
    """D = ln of the ratio of the arms per block for each quantile, oriented so that above zero is better.

    Args:
        values: quantiles of the environment's runs, shape (blocks, quantiles); nan where a run has none to rely upon.
        base_values: the same of the baseline.
        blocks: their block numbers, ascending.
        quantiles: what the columns are.
        higher_is_better: False for latency.

    Returns:
        One for each quantile; a block counts where both values are finite and above zero.

    Raises:
        ValueError: the shapes do not belong together.
    """
    arm, base = np.asarray(values, dtype=np.float64), np.asarray(base_values, dtype=np.float64)
    if arm.shape != base.shape or arm.shape != (len(blocks), len(quantiles)):
        raise ValueError(f"{arm.shape} and {base.shape} are not {len(blocks)} blocks of {len(quantiles)} quantiles")
    usable = (arm > 0) & (base > 0) & np.isfinite(arm) & np.isfinite(base)
    sign = 1.0 if higher_is_better else -1.0
    d = sign * (np.log(np.where(usable, arm, 1.0)) - np.log(np.where(usable, base, 1.0)))
    numbers = np.asarray(blocks, dtype=np.intp)
    return tuple(
        _shift(quantile, numbers[column], d[column, place])
        for place, quantile in enumerate(quantiles)
        for column in (usable[:, place],)
    )


def _shift(quantile: float, blocks: npt.NDArray[np.intp], d: FloatArray) -> Shift:
    return Shift(
        quantile=quantile,
        series=Series(blocks=tuple(blocks.tolist()), d=d),
        centre=float(hodges_lehmann(d)) if d.size else None,
    )
