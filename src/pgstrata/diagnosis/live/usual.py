"""What is usual of one measure of the time per transaction, and how much a step is beyond it. Pure."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pgstrata.diagnosis.live.memory import at_minutes
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.shifts import scale_of, smallest_found, standard_threshold, tail_threshold, without_level

REFERENCE: Final = math.log(1 / 0.8) / 2
"""Half of what is searched for: throughput that falls by a fifth under the same load. Less is never reported."""
_STEPS: Final = 3
"""At least three steps alarm together, however steady a series is."""
CLIP: Final = 2.5
"""Least ratio of the threshold to what one step can add."""
_TAILED_CLIP: Final = 4.0
"""The same ratio for heavy tails; used if its threshold is small enough to find a small shift sooner."""
_SMALL_PART: Final = 0.8
"""Part of the false alarms that the rule for small shifts may raise; the one for large shifts has the rest."""
_LONGER: Final = 3
"""Times as many steps whose scores are kept."""
_INFORMATIVE: Final = 5.0
"""Multiple of the padding from which on ratios of single steps are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A cumulative sum: half of the shift that it is fastest for, its threshold, and what one step can add at most."""

    reference: float
    threshold: float
    steps: float = CLIP
    """Fewest steps that can raise an alarm together."""

    @property
    def clip(self) -> float:
        return self.threshold / self.steps

    @property
    def delay(self) -> float:
        """Steps until an alarm at that shift."""
        return max(self.steps, self.threshold / self.reference)

    def smallest(self, scale: float, steps: int) -> float:
        """The shift, as a logarithm, that 95 % of stretches of so many steps are found at."""
        found = smallest_found(scale, self.reference, self.threshold, steps)
        return max(found, self.reference + self.threshold / steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What is usual: `level`, the logarithm of amount per transaction beyond the course of the day; its scatter.

    `amount` and `transactions` are those of a usual step. `rule` is for the smallest shift that is told, `bold` for one
    of two standard deviations: where a series scatters widely, the first would need many minutes for any shift.
    """

    level: float
    scale: float
    rule: Rule
    bold: Rule
    padding: float
    amount: float
    transactions: float

    def smallest(self, steps: int) -> float:
        """The shift, as a logarithm, that 95 % of stretches of so many steps are found at."""
        return min(rule.smallest(self.scale, steps) for rule in (self.rule, self.bold))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A step against what is usual: `value` is a logarithm, `weight` at most 1; `expected` the amount as usual."""

    value: float
    weight: float
    amount: float
    expected: float


class Usual:
    """Learns a measure from steps: an amount (sessions seen, or seconds of execution) and the transactions in them.

    Args:
        steps: how many are kept.
        fewest: from how many on what is usual is known.
        padding: amount that is too small to tell anything; None for a tenth of the usual one.
        length: steps between two false alarms.
        reference: half of the shift that is looked for, a logarithm.
    """

    def __init__(
        self, *, steps: int, fewest: int, padding: float | None, length: float, reference: float = REFERENCE
    ) -> None:
        self.fewest = fewest
        self.base: Base | None = None
        self._kept: deque[tuple[int, float, float]] = deque(maxlen=steps)
        self._scores: deque[tuple[int, float]] = deque(maxlen=_LONGER * steps)
        self._padding = padding
        self._length, self._reference = length, reference
        self._least = 0.0

    def add(self, end: int, amount: float, transactions: float) -> None:
        """A usual step that ended then."""
        self._kept.append((end, amount, transactions))

    def remember(self, end: int, score: Score) -> None:
        """How far a usual step was from what was usual then: tails are known from these."""
        self._scores.append((end, score.weight * score.value))

    def forget(self, since: int) -> None:
        """Steps that ended after `since`."""
        while self._kept and self._kept[-1][0] > since:
            self._kept.pop()
        while self._scores and self._scores[-1][0] > since:
            self._scores.pop()

    def begin_anew(self, steps: list[tuple[int, float, float]]) -> None:
        """From now on these steps are usual, and what is slower than both them and those before is slow."""
        if self.base is not None:
            self._least = self.base.scale
        self._kept.clear()
        self._kept.extend(steps)
        while self._scores and steps and self._scores[-1][0] >= steps[0][0]:
            self._scores.pop()

    def learn(self, course: FloatArray | None) -> None:
        """Make the base anew of what is kept; `course`: of the day."""
        if len(self._kept) < self.fewest:
            if self.base is not None and self._kept:
                self._lift(course)
            return
        ends, amounts, transactions = np.array(self._kept, dtype=np.float64).T
        expected = transactions * np.exp(at_minutes(course, ends))
        amount, typical = float(np.median(amounts)), float(np.median(transactions))
        padding = max(amount / 10, 1e-9) if self._padding is None else self._padding
        total = float(expected.sum())
        if total <= 0 or float(amounts.sum()) <= 0:
            self.base = None
            return
        level = _level(amounts, expected, informative=amount >= _INFORMATIVE * padding)
        values = np.log((amounts + padding) / (expected * math.exp(level) + padding))
        values = without_level(values)
        scale = scale_of(values)
        if len(self._kept) < 2 * self.fewest:
            scale = max(scale, self._least)
        if len(self._scores) >= (self._kept.maxlen or 0):
            values = np.array([value for _, value in self._scores])
        self.base = Base(
            level=level,
            scale=scale,
            rule=self._rule(values, scale, self._reference, _SMALL_PART),
            bold=self._rule(values, scale, max(2 * self._reference, scale), 1 - _SMALL_PART),
            padding=padding,
            amount=amount,
            transactions=typical,
        )

    def _rule(self, values: FloatArray, scale: float, reference: float, part: float) -> Rule:
        """A rule for that reference with a part of the false alarms."""
        length = self._length / part
        least = self._plain_rule(scale, reference, length).threshold
        rule = Rule(reference=reference, threshold=tail_threshold(values, reference, length, least, CLIP))
        # large shifts, for which the other rule is, alarm soon in any case
        if rule.threshold <= least or reference > self._reference:
            return rule
        threshold = tail_threshold(values, reference, length, least, _TAILED_CLIP)
        tailed = Rule(reference=reference, threshold=threshold, steps=_TAILED_CLIP)
        return min(rule, tailed, key=lambda each: each.delay)

    def back(self, shift: float) -> Rule:
        """The rule for the return to what is usual of a series that is shifted by so much; there is a base."""
        assert self.base is not None
        return self._plain_rule(self.base.scale, max(self._reference, shift / 2), self._length)

    @staticmethod
    def _plain_rule(scale: float, reference: float, length: float) -> Rule:
        """A rule for steps without tails."""
        least = scale * standard_threshold(max(0.01, round(reference / scale, 2)), length)
        return Rule(reference=reference, threshold=max(_STEPS * reference, least))

    def _lift(self, course: FloatArray | None) -> None:
        """Few steps raise the level, and never lower it."""
        assert self.base is not None
        ends, amounts, transactions = np.array(self._kept, dtype=np.float64).T
        expected = float((transactions * np.exp(at_minutes(course, ends))).sum())
        if expected > 0 and amounts.sum() > 0:
            level = max(self.base.level, math.log(float(amounts.sum()) / expected))
            typical = float(np.median(transactions))
            self.base = replace(self.base, level=level, amount=float(np.median(amounts)), transactions=typical)

    def score(self, amount: float, transactions: float, course: float) -> Score | None:
        """A step against the base; None where there is none yet.

        Steps with a smaller load than usual tell less, in proportion: the variance of counts is their mean.
        """
        base = self.base
        if base is None:
            return None
        expected = transactions * math.exp(base.level + course)
        value = math.log((amount + base.padding) / (expected + base.padding))
        size = max(
            amount / base.amount if base.amount > 0 else 1.0,
            transactions / base.transactions if base.transactions > 0 else 1.0,
        )
        return Score(value=value, weight=min(1.0, size), amount=amount, expected=expected)


def _level(amounts: FloatArray, expected: FloatArray, *, informative: bool) -> float:
    known = (amounts > 0) & (expected > 0)
    if informative and known.sum() > known.size / 2:
        return float(np.median(np.log(amounts[known] / expected[known])))
    return math.log(float(amounts.sum()) / float(expected.sum()))
