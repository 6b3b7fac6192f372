"""The highest rate that keeps a limit, from steps at fixed rates: which rate comes next, and the crossing of all steps.

A step has a score: the share of its transactions above the limit as a multiple of the share that may be, or its mean
latency as a multiple of the limit. So the limit is kept where the expected score is at most 1. Shares and means of many
short steps average to those of a long one, which percentiles do not: a stall of a tenth of a second is rare, and
decides a p99.

Sources: the score rises with the rate, so all steps are fitted by weighted isotonic regression (pool adjacent
violators; Barlow, Bartholomew, Bremner & Brunk, Statistical Inference under Order Restrictions, 1972), which says
between which rates the limit lies; the steps near it are fitted by a log-linear model. Steps are placed one by one near
the crossing that the steps before them have found, as in stochastic root finding (Robbins & Monro 1951): a bracket is
halved until it is narrow, then steps alternate between both sides of the crossing, so that a step that was disturbed is
outvoted by later ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Final

from pgstrata.stats.chi_square import chi_square_point
from pgstrata.stats.student import two_sided_point

OVERRUN: Final = 10.0
"""Score of a step whose queue grows without end, at least."""
# The first rate, as a share of what goes without a limit, and how far to go on from rates that all miss or all keep it:
# first a little down, because a single step may have been disturbed, then twice as far each time.
_FIRST: Final = 0.75
_DOWN: Final = 0.8
_UP: Final = 1.06
# In log rate: a bracket that is wider is halved, and how far from the crossing later steps are.
_WIDE: Final = 0.12
_BESIDE: Final = 0.02
_LEAST_SHARE: Final = 0.02
# In log rate: which steps are near the crossing. By how much the score of a queue grows with the rate differs from
# server to server: 20 % for each percent of rate, give or take a factor of two.
_NEAR: Final = 0.1
_FEWEST_NEAR: Final = 3
_USUAL_SLOPE: Final = 20.0
_SLOPES_APART: Final = 0.7
_SLOPES: Final = tuple(5.0 * 1.07**step for step in range(38))
_FEWEST_VALUES: Final = 3
_LEVEL: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step at a fixed rate in 1/s.

    `weight` is how many transactions its score rests on, `least` half the smallest score that so many can show.
    """

    rate: float
    score: float
    weight: float
    least: float


class Found(StrEnum):
    """Where the limit lies among the rates of the steps."""

    WITHIN = "within"
    KEPT = "kept"
    MISSED = "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """The rate at which the limit is reached; `low` and `high` are the rates around it in the isotonic fit.

    Where all steps keep the limit, or all miss it, all three are the highest or the lowest rate.
    """

    found: Found
    rate: float
    low: float
    high: float


@dataclass(slots=True, kw_only=True)
class _Pool:
    """Steps that share one fitted score."""

    low: float
    high: float
    total: float
    weight: float
    least: float

    @property
    def score(self) -> float:
        return self.total / self.weight

    def add(self, other: _Pool) -> None:
        self.high = other.high
        self.total += other.total
        self.weight += other.weight
        self.least = 1 / (1 / self.least + 1 / other.least)


def find_crossing(steps: Sequence[Step]) -> Crossing:
    """The rate at which the expected score is 1.

    Where the isotonic fit has it between two rates, the estimate is that of a straight line in the logarithms of rate
    and expected score through all steps near it (`_refine`), else the highest or the lowest rate.

    Args:
        steps: at least one, in any order, with weights above zero.
    """
    pools = _fit(steps)
    kept = [pool for pool in pools if pool.score <= 1]
    missed = [pool for pool in pools if pool.score > 1]
    if not missed:
        rate = kept[-1].high
        return Crossing(found=Found.KEPT, rate=rate, low=rate, high=rate)
    if not kept:
        rate = missed[0].low
        return Crossing(found=Found.MISSED, rate=rate, low=rate, high=rate)
    below, above = kept[-1], missed[0]
    start, stop = math.log(max(below.score, below.least)), math.log(above.score)
    share = min(1.0, max(0.0, -start / (stop - start))) if stop > start else 0.0
    rate = below.high * (above.low / below.high) ** share
    refined = min(pools[-1].high, max(pools[0].low, _refine(steps, rate)))
    return Crossing(found=Found.WITHIN, rate=refined, low=below.high, high=above.low)


def _fit(steps: Iterable[Step]) -> list[_Pool]:
    """Pools of ascending scores, by rate."""
    pools: list[_Pool] = []
    for rate, alike in groupby(sorted(steps, key=lambda step: step.rate), key=lambda step: step.rate):
        pool = _Pool(low=rate, high=rate, total=0.0, weight=0.0, least=math.inf)
        for step in alike:
            pool.add(_Pool(low=rate, high=rate, total=step.score * step.weight, weight=step.weight, least=step.least))
        pools.append(pool)
        while len(pools) > 1 and pools[-2].score > pools[-1].score:
            last = pools.pop()
            pools[-1].add(last)
    return pools


def _refine(steps: Sequence[Step], rate: float) -> float:
    """The crossing of ln(expected score) = level + slope · ln(rate), by quasi-Poisson regression near a first estimate.

    Scores average to their expectation, while the fitted steps of an isotonic regression of skewed scores lie too low
    (in simulations by 1 to 3 %). Maximised over a grid of slopes is the quasi-likelihood (Wedderburn 1974), the sum of
    weight · (score · eta - exp(eta)), with a weak log-normal prior of the slope; for each slope the level has a closed
    form.

    Args:
        steps: all of a search; those within `_NEAR` count, their scores at most `OVERRUN`.
        rate: the first estimate, which stays where fewer than three steps are near, or all scores are zero.
    """
    near = [step for step in steps if abs(math.log(step.rate / rate)) <= _NEAR]
    scores = [min(step.score, OVERRUN) for step in near]
    if len(near) < _FEWEST_NEAR or not any(scores):
        return rate
    places = [math.log(step.rate / rate) for step in near]
    mean = math.fsum(step.weight for step in near) / len(near)
    weights = [step.weight / mean for step in near]
    rows = list(zip(places, scores, weights, strict=True))

    def level(slope: float) -> float:
        made = math.fsum(weight * score for _, score, weight in rows)
        return math.log(made / math.fsum(weight * math.exp(slope * place) for place, _, weight in rows))

    def likelihood(slope: float) -> float:
        first = level(slope)
        prior = -0.5 * (math.log(slope / _USUAL_SLOPE) / _SLOPES_APART) ** 2
        terms = (w * (s * (first + slope * x) - math.exp(first + slope * x)) for x, s, w in rows)
        return prior + math.fsum(terms)

    slope = max(_SLOPES, key=likelihood)
    return rate * math.exp(max(-_NEAR, min(_NEAR, -level(slope) / slope)))


def next_rate(steps: Sequence[Step], maximum: float) -> float | None:
    """The rate of the next step; None where the limit is missed at any rate.

    Args:
        steps: those at fixed rates so far.
        maximum: transactions per second without a limit.
    """
    if not steps:
        return _FIRST * maximum
    crossing = find_crossing(steps)
    match crossing.found:
        case Found.MISSED:
            # where a single step kept it, others outvoted that one, and the limit is not far
            times = 2 ** (len(steps) - 1) if all(step.score > 1 for step in steps) else 1
            lower = crossing.rate * _DOWN**times
            return lower if lower > _LEAST_SHARE * maximum else None
        case Found.KEPT:
            return max(math.sqrt(crossing.rate * maximum), crossing.rate * _UP)
        case Found.WITHIN:
            if math.log(crossing.high / crossing.low) > _WIDE:
                return math.sqrt(crossing.low * crossing.high)
            return crossing.rate * math.exp(_BESIDE if len(steps) % 2 else -_BESIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelInterval:
    """The rate at which runs taken together keep a limit, and its interval at `confidence`."""

    value: float
    low: float
    high: float
    confidence: float


def level_interval(values: Sequence[float]) -> LevelInterval | None:
    """What runs sustain together, from what each of them sustains; None for fewer than three.

    At a rate r a run whose own rate is v has about (r / v) ** slope times the late transactions that may be, so that
    many runs together reach the limit at the power mean of v with exponent -slope: slow runs count for more, and so
    does the error of single searches, which makes their typical value too high by slope / 2 times the variance of
    ln(v). For normal logarithms with mean m and variance s2 that is exp(m - slope / 2 s2). Its interval combines those
    of m and s2 (Zou, Huo & Taleban, Environmetrics 20, 2009: the method of variance estimates recovery). It reaches
    farther down than up, since a few runs may have missed the rare stalls that decide the limit. The power law holds
    near the limit only: of a standard deviation above `_NEAR` no more than that counts for it.

    Args:
        values: one for each run, above zero.
    """
    number = len(values)
    if number < _FEWEST_VALUES:
        return None
    logs = [math.log(value) for value in values]
    mean = math.fsum(logs) / number
    freedom = number - 1
    squares = math.fsum((each - mean) ** 2 for each in logs)
    least, own, most = (
        _USUAL_SLOPE / 2 * min(squares / divisor, _NEAR**2)
        for divisor in (chi_square_point(_LEVEL / 2, freedom), freedom, chi_square_point(1 - _LEVEL / 2, freedom))
    )
    half = two_sided_point(_LEVEL, freedom) * math.sqrt(squares / freedom / number)
    centre = mean - own
    return LevelInterval(
        value=math.exp(centre),
        low=math.exp(centre - math.hypot(half, most - own)),
        high=math.exp(centre + math.hypot(half, own - least)),
        confidence=1 - _LEVEL,
    )
