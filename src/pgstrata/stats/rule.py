"""The verdict on the block differences of one comparison: at every look in turn, or at one look.

`decide_many` is the sequential rule, with a look after each block; `decide_once` is for data of others, which were all
there before the first look. Several headlines at once are `family`, data without blocks are `unpaired`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.model.answer import Lane, Verdict
from pgstrata.model.plan import HORIZON
from pgstrata.stats.boundaries import (
    ALPHA,
    ALPHA_EQ,
    C_DIFF,
    C_EQ,
    Boundaries,
    Boundary,
    boundaries_of,
    fixed_critical,
    fixed_level,
    fixed_p,
)
from pgstrata.stats.large import WALSH_LIMIT, capped_centre_of_many, capped_interval_of_many
from pgstrata.stats.ranks import (
    TIE,
    FloatArray,
    capped_centres,
    capped_intervals,
    hodges_lehmann_of_walsh,
    walsh_averages,
)
from pgstrata.stats.sequence import Looks, critical_row, look_at_all, repeated_levels, sums_beside

# Walsh averages that are held at once: 32 MB, four times that while an interval is searched.
CHUNK: Final = 4_000_000
# Up to here the median of the Walsh averages lies inside every interval of the capped scores at a level of up to 0.10.
# The worst case has the upper 29 % of the ranks on one side, which are 0.20 sqrt(n) standard deviations off the middle
# of the capped sum.
WALSH_CENTRES: Final = 60

Criticals = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInterval:
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

    Beyond `WALSH_CENTRES` differences the centre is that of the capped scores, which lies inside all their intervals.

    An interval is None while its level needs more blocks.
    """

    n: int
    centre: float
    interval: LogInterval | None
    equivalence: LogInterval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a comparison is judged by; all of it is fixed before the first run.

    `delta` is the practical threshold in log units, `alpha` the probability of a false difference, spent over `horizon`
    blocks; `last` the blocks after which nothing follows, at most the horizon.
    """

    delta: float
    alpha: float = ALPHA
    last: int = HORIZON
    horizon: int = HORIZON

    def __post_init__(self) -> None:
        if not 1 <= self.last <= self.horizon:
            raise ValueError(f"a comparison has between 1 and {self.horizon} blocks, not {self.last}")
        if not 0 <= self.delta < math.inf:
            raise ValueError(f"a threshold in log units is finite and not negative, not {self.delta}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the rule came to.

    `n` are the blocks at the decision, or all there are; `decided` is false for insufficient and inconclusive.
    `repeated_p` is the smallest level of the grid whose boundary "no difference" had crossed at n or before, None
    where it crossed none; at one look the p value. `alpha` is the level at which a difference was looked for, one of
    the grid unless there is one look; `error` is what the interval really has, never more. `block` is the number
    of the block after which one of a family was decided, which need not be one of its own; None outside of families,
    and where nothing was.
    """

    verdict: Verdict
    n: int
    estimate: Estimate | None
    lane: Lane
    decided: bool
    repeated_p: float | None
    alpha: float
    error: float
    block: int | None = None


def judge(estimate: Estimate | None, *, delta: float) -> Verdict:
    """The verdict on oriented differences (above zero is better).

    Args:
        estimate: None where there is no pair at all.
        delta: the practical threshold in log units, ln(1 + threshold).
    """
    if estimate is None:
        return Verdict.INSUFFICIENT
    if estimate.interval is not None and estimate.interval.excludes_zero:
        if estimate.interval.reach < delta:
            return Verdict.NEGLIGIBLE
        return Verdict.BETTER if estimate.interval.low > 0 else Verdict.WORSE
    if estimate.equivalence is not None and estimate.equivalence.reach < delta:
        return Verdict.EQUIVALENT
    return Verdict.INSUFFICIENT if estimate.interval is None else Verdict.INCONCLUSIVE


def is_decided(verdict: Verdict) -> bool:
    """Whether more blocks could not change the verdict."""
    return verdict not in {Verdict.INSUFFICIENT, Verdict.INCONCLUSIVE}


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
    sizes = [len(sample) for sample in samples]
    return estimate_at(samples, [(difference.critical(n), equivalence.critical(n)) for n in sizes])


def estimate_at(samples: Sequence[FloatArray], criticals: Sequence[Criticals]) -> tuple[Estimate, ...]:
    """Estimates at given critical values of the interval and the equivalence interval; None means no interval.

    Raises:
        ValueError: a sample is empty, or a critical value leaves no interval.
    """
    places: dict[tuple[int, Criticals], list[int]] = defaultdict(list)
    for place, (sample, critical) in enumerate(zip(samples, criticals, strict=True)):
        places[len(sample), critical].append(place)
    found: dict[int, Estimate] = {}
    for (n, critical), members in places.items():
        rows = max(1, CHUNK // max(1, n * (n + 1) // 2))
        for begin in range(0, len(members), rows):
            part = members[begin : begin + rows]
            d = np.stack([samples[place] for place in part])
            estimates = _estimate_group(d, critical) if n <= WALSH_LIMIT else _estimate_large(d, critical)
            found.update(zip(part, estimates, strict=True))
    return tuple(found[place] for place in range(len(samples)))


def _estimate_group(d: FloatArray, criticals: Criticals) -> list[Estimate]:
    walsh, n = walsh_averages(d), d.shape[-1]
    centres = hodges_lehmann_of_walsh(walsh) if n <= WALSH_CENTRES else capped_centres(d, walsh)
    spans, narrow = (_spans(d, walsh, critical) for critical in criticals)
    return [
        Estimate(n=n, centre=centre, interval=interval, equivalence=inner)
        for centre, interval, inner in zip(centres.tolist(), spans, narrow, strict=True)
    ]


def _spans(d: FloatArray, walsh: FloatArray, critical: int | None) -> Sequence[LogInterval | None]:
    if critical is None:
        return [None] * len(d)
    low, high = capped_intervals(d, walsh, critical)
    return [LogInterval(low=a, high=b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]


def _estimate_large(d: FloatArray, criticals: Criticals) -> list[Estimate]:
    estimates = []
    for row in d:
        spans = [None if c is None else LogInterval(**capped_interval_of_many(row, c)) for c in criticals]
        centre = capped_centre_of_many(row)
        estimates.append(Estimate(n=len(row), centre=centre, interval=spans[0], equivalence=spans[1]))
    return estimates


def decide_many(samples: Sequence[npt.ArrayLike], rules: Sequence[Rule]) -> tuple[Decision, ...]:
    """The sequential rule: a look after each block, the first decision stands, later blocks are not looked at.

    A difference goes before equivalence. Equivalence is looked for from the first look of its own boundary on, also
    where a small alpha has no interval yet.

    Args:
        samples: oriented differences of each comparison in the order of blocks, each of shape (n,); n may be 0, and
            what follows the rule's last block is ignored.
        rules: one for each sample, all of one horizon.

    Raises:
        ValueError: a difference is not finite, a level is below the grid, or horizons differ.
    """
    boundaries = common_boundaries(rules)
    arrays = [array[: rule.last] for array, rule in zip(check_samples(samples), rules, strict=True)]
    looks = look_at_all(arrays, np.array([rule.delta for rule in rules], dtype=np.float64))
    levels = [boundaries.at(rule.alpha) for rule in rules]
    critical = np.array([critical_row(level) for level in levels]).reshape(looks.zero.shape)
    settled = (looks.zero <= critical) | (looks.edge <= critical_row(boundaries.equivalence))
    sizes = np.array([len(array) for array in arrays], dtype=np.intp)
    n = np.where(settled.any(axis=-1), settled.argmax(axis=-1) + 1, sizes)
    return make_decisions(arrays, rules, levels, looks, n.tolist())


def common_boundaries(rules: Sequence[Rule]) -> Boundaries:
    """The boundaries over the horizon that all rules share; ValueError where they share none."""
    horizons = {rule.horizon for rule in rules} or {HORIZON}
    if len(horizons) > 1:
        raise ValueError("comparisons that are judged together have one horizon")
    return boundaries_of(horizons.pop())


def make_decisions(
    arrays: Sequence[FloatArray],
    rules: Sequence[Rule],
    levels: Sequence[Boundary],
    looks: Looks,
    ends: Sequence[int],
) -> tuple[Decision, ...]:
    """Decisions at looks that are chosen already.

    Args:
        arrays: all differences of each comparison.
        rules: their rules, all of one horizon.
        levels: the boundary that a difference was looked for at.
        looks: statistics of the looks.
        ends: the blocks at the decision, or all there are.
    """
    boundaries = common_boundaries(rules)
    filled = [place for place, n in enumerate(ends) if n]
    criticals = [
        (levels[place].critical(ends[place]), boundaries.equivalence.critical(ends[place])) for place in filled
    ]
    shown = [arrays[place][: ends[place]] for place in filled]
    estimates = dict(zip(filled, estimate_at(shown, criticals), strict=True))
    repeated = repeated_levels(looks, np.array(ends, dtype=np.intp), boundaries)
    decisions = []
    for place, (rule, level, n) in enumerate(zip(rules, levels, ends, strict=True)):
        estimate = estimates.get(place)
        verdict = judge(estimate, delta=rule.delta)
        decisions.append(
            Decision(
                verdict=verdict,
                n=n,
                estimate=estimate,
                lane=Lane.SEQUENTIAL,
                decided=is_decided(verdict),
                repeated_p=repeated[place],
                alpha=level.alpha,
                error=level.alpha,
            )
        )
    return tuple(decisions)


def decide_once(samples: Sequence[npt.ArrayLike], rules: Sequence[Rule]) -> tuple[Decision, ...]:
    """One look at all blocks there are, however many: for data that nobody looked at before.

    The fixed-sample boundary holds, exact up to `boundaries.EXACT_BLOCKS` blocks, then the normal approximation.
    Without an interval there is no equivalence either. Neither the order of the blocks nor the rule's last block plays
    a part.

    Args:
        samples: oriented differences of each comparison, each of shape (n,); n may be 0.
        rules: one for each sample.

    Raises:
        ValueError: a difference is not finite.
    """
    arrays = check_samples(samples)
    filled = [place for place, array in enumerate(arrays) if array.size]
    criticals = [_fixed_criticals(arrays[place].size, rules[place].alpha) for place in filled]
    estimates = dict(zip(filled, estimate_at([arrays[place] for place in filled], criticals), strict=True))
    decisions = []
    for place, (array, rule) in enumerate(zip(arrays, rules, strict=True)):
        estimate, n = estimates.get(place), array.size
        verdict = judge(estimate, delta=rule.delta)
        decisions.append(
            Decision(
                verdict=verdict,
                n=n,
                estimate=estimate,
                lane=Lane.ONE_LOOK,
                decided=is_decided(verdict),
                repeated_p=_p_at_once(array) if estimate else None,
                alpha=rule.alpha,
                error=fixed_level(n, rule.alpha),
            )
        )
    return tuple(decisions)


def _fixed_criticals(n: int, alpha: float) -> Criticals:
    critical = fixed_critical(n, alpha)
    return critical, fixed_critical(n, ALPHA_EQ) if critical is not None else None


def _p_at_once(d: FloatArray) -> float:
    """The smallest level at which one look at `d` excludes "no difference"."""
    zero, _ = sums_beside(d[np.newaxis, :], np.zeros(1))
    return fixed_p(d.size, float(zero[0]))


def check_samples(samples: Sequence[npt.ArrayLike]) -> list[FloatArray]:
    """The samples as arrays of shape (n,).

    Raises:
        ValueError: a difference is not finite, or a sample is not one row.
    """
    arrays = [np.asarray(sample, dtype=np.float64) for sample in samples]
    if any(array.ndim != 1 for array in arrays):
        raise ValueError("a sample is one row of differences")
    if arrays and not np.isfinite(np.concatenate(arrays)).all():
        raise ValueError("every difference has to be a finite number")
    return arrays
