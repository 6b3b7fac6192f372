"""One band over several effects that are measured in the same blocks: intervals that hold together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgstrata.stats.boundaries import ALPHA, ALPHA_EQ, boundaries_of
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.rule import Estimate, estimate_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Estimates in the order of the samples, None for an empty one; `level` is the error probability of the whole."""

    estimates: tuple[Estimate | None, ...]
    level: float


def estimate_band(samples: Sequence[FloatArray], *, horizon: int) -> Band:
    """Intervals of which all hold at once with 1 - `ALPHA` at least, whichever block is the last.

    Each has the level alpha / m of the sequential boundaries, rounded down to their grid (Bonferroni): that needs
    nothing of how the m effects depend on each other, and after any block their errors add up to alpha at most.
    Equivalence intervals share `ALPHA_EQ` in the same way. There is none before the smaller level allows it: of eleven
    from 12 blocks on, over 60.

    Args:
        samples: oriented differences of each effect, shape (n,); blocks beyond the horizon are ignored.
        horizon: blocks over which the error probability is spent.
    """
    number, boundaries = max(1, len(samples)), boundaries_of(horizon)
    level, narrow = boundaries.at(ALPHA / number), boundaries.at(ALPHA_EQ / number)
    kept = {place: sample[:horizon] for place, sample in enumerate(samples) if sample.size}
    criticals = [(level.critical(len(sample)), narrow.critical(len(sample))) for sample in kept.values()]
    found = dict(zip(kept, estimate_at(list(kept.values()), criticals), strict=True))
    return Band(estimates=tuple(map(found.get, range(len(samples)))), level=number * level.alpha)
