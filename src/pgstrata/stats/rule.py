"""The verdict on the block differences of one comparison, at one look.

The boundaries allow a look after each block; who looks when, the correction for several headlines and the fast lane
build on `estimate_many` and `judge`, which know one sample and one boundary each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.model.answer import Verdict
from pgstrata.stats.boundaries import C_DIFF, C_EQ, Boundary
from pgstrata.stats.ranks import TIE, FloatArray, capped_intervals, hodges_lehmann_of_walsh, walsh_averages

MIN_BLOCKS: Final = C_DIFF.first


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An interval of D in log units, ends included."""

    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether "no difference" lies outside; an end within rounding of zero does not exclude it."""
        return self.low > TIE or self.high < -TIE

    @property
    def reach(self) -> float:
        """The largest difference, of either sign, that is still inside."""
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What `n` block differences say, in log units: Hodges-Lehmann centre, interval, equivalence interval.

    The intervals are None below `MIN_BLOCKS`.
    """

    n: int
    centre: float
    interval: Span | None
    equivalence: Span | None


def estimate_many(
    samples: Sequence[FloatArray], *, difference: Boundary = C_DIFF, equivalence: Boundary = C_EQ
) -> tuple[Estimate, ...]:
    """Estimates of many samples, those of equal size together.

    Args:
        samples: oriented block differences, each of shape (n,) with n >= 1.
        difference: boundary of the interval.
        equivalence: boundary of the equivalence interval.

    Raises:
        ValueError: a sample is empty or larger than the boundaries allow.
    """
    places: dict[int, list[int]] = defaultdict(list)
    for place, sample in enumerate(samples):
        places[len(sample)].append(place)
    found: dict[int, Estimate] = {}
    for n, members in places.items():
        d = np.stack([samples[place] for place in members])
        walsh = walsh_averages(d)
        centres = hodges_lehmann_of_walsh(walsh).tolist()
        spans = _spans(d, walsh, difference.critical(n))
        narrow = _spans(d, walsh, equivalence.critical(n))
        for place, centre, interval, inner in zip(members, centres, spans, narrow, strict=True):
            found[place] = Estimate(n=n, centre=centre, interval=interval, equivalence=inner)
    return tuple(found[place] for place in range(len(samples)))


def _spans(d: FloatArray, walsh: FloatArray, critical: int | None) -> Sequence[Span | None]:
    if critical is None:
        return [None] * len(d)
    low, high = capped_intervals(d, walsh, critical)
    return [Span(low=a, high=b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]


def judge(estimate: Estimate | None, *, delta: float) -> Verdict:
    """The verdict on oriented differences (above zero is better).

    Args:
        estimate: None where there is no pair at all.
        delta: the practical threshold in log units, ln(1 + threshold).
    """
    if estimate is None or estimate.interval is None:
        return Verdict.INSUFFICIENT
    if estimate.interval.excludes_zero:
        if estimate.interval.reach < delta:
            return Verdict.NEGLIGIBLE
        return Verdict.BETTER if estimate.interval.low > 0 else Verdict.WORSE
    if estimate.equivalence is not None and estimate.equivalence.reach < delta:
        return Verdict.EQUIVALENT
    return Verdict.INCONCLUSIVE
