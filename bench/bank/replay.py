"""Shares of right verdicts and covered truths: recorded visits drawn into studies, judged by the production rule.

A study is a draw with replacement of as many visits as the horizon has blocks; its minutes are those of the visits and,
once, what a call takes beside them. Visits of a kind are split in two halves, every second one each. Studies are drawn
from one half and held against the truth, which is an estimate from all visits of the other half at once; then the
halves change their parts. What equal environments differ by is known: nothing.

Intervals of shares are those of a double bootstrap: stretches of five consecutive visits are drawn with replacement
within each half, and studies of the visits so drawn. Each draw has few studies, whose own chance makes the interval a
little wider than it had to be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from bank.conditions import EQUAL, Question
from bank.visits import Visit

from pgstrata.model.plan import HORIZON
from pgstrata.stats.boundaries import FIRST_LOOK
from pgstrata.stats.rule import Decision, Rule, decide_many, estimate_at

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

SEED: Final = 20261124
# Consecutive visits that are drawn together where the visits themselves are drawn.
STRETCH: Final = 5
FEWEST: Final = 2 * FIRST_LOOK
"""Visits of a kind from which shares can come: either half has enough for a verdict."""
INSIDE: Final = 95.0
DETECTED: Final = 80.0
# Differences, in percent, among which a detection limit is looked for.
_LIMITS: Final = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0, 22.0, 32.0, 45.0)
_UNLIMITED: Final = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """How many studies are drawn: for a share itself; for its interval, bank by bank."""

    studies: int = 2000
    banks: int = 100
    studies_of_each: int = 40
    limits: int = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Visits of one kind in the order of recording, shape (n,): differences in log units and seconds.

    `around` are the seconds that a call takes beside its visits.
    """

    d: Floats
    seconds: Floats
    around: float

    @staticmethod
    def of(visits: Sequence[Visit], rounds: int | None = None) -> Sample:
        """Of visits with at most so many rounds, their first ones; unknown seconds are taken to be usual ones."""
        if rounds is not None:
            visits = [visit.first(rounds) for visit in visits]
        seconds = np.array([visit.seconds for visit in visits])
        known = seconds[np.isfinite(seconds)]
        usual = float(np.median(known)) if known.size else math.nan
        around = [visit.preparing for visit in visits if math.isfinite(visit.preparing)]
        return Sample(
            d=np.array([visit.tps for visit in visits]),
            seconds=np.where(np.isfinite(seconds), seconds, usual),
            around=float(np.median(around)) if around else 0.0,
        )

    def pick(self, places: Ints) -> Sample:
        """Those visits, in that order."""
        return Sample(d=self.d[places], seconds=self.seconds[places], around=self.around)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Percent, with the 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.0f} [{self.low:.0f}, {self.high:.0f}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Shares in percent of the studies: `right` and `wrong` verdicts within the minutes, truth `covered` at the end of
    each; the median of the `minutes` until a right verdict, infinite where most never come to one."""

    right: float
    wrong: float
    covered: float
    minutes: float

    @property
    def undecided(self) -> float:
        """Neither within the minutes."""
        return 100 - self.right - self.wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What the visits of one kind say of a question."""

    visits: int
    right: Share
    covered: Share
    whole: Outcome
    in_order: float
    """Percent of right verdicts within the minutes among stretches of the recording, as they were recorded."""


def evaluate(sample: Sample, question: Question, minutes: float | None, draws: Draws) -> Evaluation | None:
    """None where there are too few visits for any verdict.

    Args:
        sample: all visits of the kind.
        question: what is asked.
        minutes: until which a verdict counts; None for as long as a study can be.
        draws: how many.
    """
    if sample.d.size < FEWEST:
        return None
    rng = np.random.default_rng([SEED, sample.d.size, round(1000 * question.threshold)])
    limit = _UNLIMITED if minutes is None else minutes
    halves = [sample.pick(np.arange(first, sample.d.size, 2)) for first in (0, 1)]
    whole = _replay(rng, halves, question, limit, draws.studies)
    again = []
    for _ in range(draws.banks):
        drawn = [half.pick(draw_stretches(rng, half.d.size)) for half in halves]
        again.append(_replay(rng, drawn, question, limit, draws.studies_of_each))
    return Evaluation(
        visits=sample.d.size,
        right=_share(whole.right, [each.right for each in again]),
        covered=_share(whole.covered, [each.covered for each in again]),
        whole=whole,
        in_order=_in_order(sample, question, limit),
    )


def draw_stretches(rng: np.random.Generator, size: int) -> Ints:
    """Places of `size` visits: consecutive stretches of them, around the end, drawn with replacement."""
    begins = rng.integers(0, size, -(-size // STRETCH))
    return np.asarray(((begins[:, np.newaxis] + np.arange(STRETCH)) % size).ravel()[:size], dtype=np.intp)


def centre_of(d: Floats) -> float:
    """The estimate from all of them, in log units."""
    (estimate,) = estimate_at([d], [(None, None)])
    return estimate.centre


def detection_limit(sample: Sample, question: Question, draws: Draws) -> float:
    """The smallest slowdown in percent that is found in four studies of five over the whole horizon.

    Slowdowns are added to the noise of these visits about their centre; infinite where none of those tried is found.
    """
    rng = np.random.default_rng([SEED, 1, sample.d.size])
    noise = sample.d - centre_of(sample.d)
    for limit in _LIMITS:
        studies = noise[rng.integers(0, noise.size, (draws.limits, HORIZON))] - math.log1p(limit / 100)
        found = [decision.verdict is question.right for decision in _decide(studies, question)]
        if 100 * float(np.mean(found)) >= DETECTED:
            return limit
    return math.inf


def _share(value: float, again: Sequence[float]) -> Share:
    low, high = np.percentile(again, (2.5, 97.5)) if again else (0.0, 100.0)
    return Share(value=value, low=min(value, float(low)), high=max(value, float(high)))


def _decide(studies: Floats, question: Question) -> Sequence[Decision]:
    """At the threshold that a user gave."""
    return decide_many(list(studies), [Rule(delta=math.log1p(question.threshold / 100))] * len(studies))


def _replay(
    rng: np.random.Generator, halves: Sequence[Sample], question: Question, limit: float, count: int
) -> Outcome:
    """Studies of one half against the truth of the other, both ways."""
    shares, minutes = [], []
    for own, other in (halves, halves[::-1]):
        truth = 0.0 if question.kind == EQUAL else centre_of(other.d)
        places = rng.integers(0, own.d.size, (count // 2, HORIZON))
        decisions = _decide(own.d[places], question)
        took = _minutes(decisions, own.seconds[places], own.around)
        right = np.array([decision.verdict is question.right for decision in decisions])
        wrong = np.array([decision.decided for decision in decisions]) & ~right
        covered = [_covers(decision, truth) for decision in decisions]
        shares.append([np.mean(right & (took <= limit)), np.mean(wrong & (took <= limit)), np.mean(covered)])
        minutes += np.where(right, took, math.inf).tolist()
    right_share, wrong_share, covered_share = (100 * np.mean(shares, axis=0)).tolist()
    ascending = sorted(minutes)
    return Outcome(right=right_share, wrong=wrong_share, covered=covered_share, minutes=ascending[len(ascending) // 2])


def _minutes(decisions: Sequence[Decision], seconds: Floats, around: float) -> Floats:
    """Minutes of each study until it was decided, or to its end."""
    ends = np.array([decision.n - 1 for decision in decisions])
    return np.asarray((around + np.cumsum(seconds, axis=1)[np.arange(len(ends)), ends]) / 60, dtype=np.float64)


def _covers(decision: Decision, truth: float) -> bool:
    span = decision.estimate.interval if decision.estimate else None
    return span is not None and span.low <= truth <= span.high


def _in_order(sample: Sample, question: Question, limit: float) -> float:
    """Of studies that begin with each visit in turn and go on as recorded, around the end."""
    length = min(HORIZON, sample.d.size)
    places = (np.arange(sample.d.size)[:, np.newaxis] + np.arange(length)) % sample.d.size
    decisions = _decide(sample.d[places], question)
    took = _minutes(decisions, sample.seconds[places], sample.around)
    right = np.array([decision.verdict is question.right for decision in decisions])
    return 100 * float(np.mean(right & (took <= limit)))
