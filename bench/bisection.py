"""How sure a step of `bisect` is, and how often a whole search ends at the right level: drawn blocks, production code.

Blocks scatter by 1.5 % (standard deviation of the difference of two runs), at most 24 of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from figures import Figure

from pgstrata.model.answer import Comparison, Verdict
from pgstrata.plan.bisection import LevelSide, Search, half_threshold, side_of, side_of_ends
from pgstrata.stats.rule import Decision, Rule, decide_many

SEED = 20260501
STEPS = 600
SEARCHES = 400
LEVELS = 9
BLOCKS = 24
SCATTER = 0.015
THRESHOLD = 0.03
# Of a change: percent of the searches that end at the right level.
GOALS = {0.03: 80.0, 0.05: 99.0, 0.10: 99.5}

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Percent judged wrongly and left open; runs on average."""

    wrong: float
    open: float
    runs: float

    def __str__(self) -> str:
        return f"wrong {self.wrong:.1f} %, open {self.open:.1f} %, {self.runs:.0f} runs"


def measure_bisection() -> Sequence[Figure]:
    """Single steps by three ways of judging them, then whole searches over nine levels with one change."""
    figures = []
    for change in (0.03, 0.05):
        for side in (LevelSide.FIRST, LevelSide.LAST):
            chosen, verdict, both = _steps(change, side)
            notes = (f"against the first end: {chosen}", f"by its verdict alone: {verdict}", f"both ends: {both}")
            figures.append(Figure(name=f"bisection: {change:.0%} step, middle like {side}", value=chosen.wrong,
                                  goal=1.0, unit="%", notes=notes))  # fmt: skip
    for change, goal in GOALS.items():
        right, share = _searches(change)
        figures.append(Figure(name=f"bisection: {change:.0%} change found", value=right, goal=goal, unit="%",
                              low_is_good=False, notes=(str(share),)))  # fmt: skip
    return figures


def _steps(change: float, side: LevelSide) -> tuple[Share, Share, Share]:
    """The ends are known to differ, as a search has found out before its first step."""
    rng = np.random.default_rng([SEED, round(1000 * change), side is LevelSide.LAST])
    ends = _ends(rng, change)
    thresholds = [half_threshold(one, THRESHOLD) for one in ends]
    noise = rng.normal(0, SCATTER / math.sqrt(2), (STEPS, 3, BLOCKS))
    first, middle, last = np.moveaxis(noise, 1, 0)
    step = -math.log1p(change)
    last = last + step
    middle = middle + (step if side is LevelSide.LAST else 0.0)
    to_first, to_last = _decide(middle - first, thresholds), _decide(middle - last, thresholds)
    compared = [_compare(one) for one in to_first]
    chosen = [side_of(one, end) for one, end in zip(compared, ends, strict=True)]
    alone = [_by_verdict(one) for one in compared]
    both = [_by_both(one, other) for one, other in zip(to_first, to_last, strict=True)]
    runs = [2 * one.n for one in to_first]
    most = [3 * max(one.n, other.n) for one, other in zip(to_first, to_last, strict=True)]
    return _share(chosen, side, runs), _share(alone, side, runs), _share(both, side, most)


def _ends(rng: np.random.Generator, change: float) -> list[Comparison]:
    """Comparisons of ends that were found to differ."""
    found: list[Comparison] = []
    while len(found) < STEPS:
        drawn = rng.normal(-math.log1p(change), SCATTER, (STEPS, BLOCKS))
        compared = (_compare(one) for one in _decide(drawn, [THRESHOLD] * STEPS))
        found += [one for one in compared if side_of_ends(one) is LevelSide.LAST]
    return found[:STEPS]


def _by_verdict(found: Comparison) -> LevelSide:
    if found.verdict in {Verdict.BETTER, Verdict.WORSE}:
        return LevelSide.LAST
    return LevelSide.FIRST if found.verdict in {Verdict.EQUIVALENT, Verdict.NEGLIGIBLE} else LevelSide.UNDECIDED


def _by_both(to_first: Decision, to_last: Decision) -> LevelSide:
    """The nearer end, after both comparisons were decided."""
    if not (to_first.decided and to_last.decided and to_first.estimate and to_last.estimate):
        return LevelSide.UNDECIDED
    return LevelSide.FIRST if abs(to_first.estimate.centre) < abs(to_last.estimate.centre) else LevelSide.LAST


def _share(sides: Sequence[LevelSide], truth: LevelSide, runs: Sequence[int]) -> Share:
    wrong = sum(side not in {truth, LevelSide.UNDECIDED} for side in sides)
    left = sum(side is LevelSide.UNDECIDED for side in sides)
    return Share(wrong=100 * wrong / len(sides), open=100 * left / len(sides), runs=float(np.mean(runs)))


def _searches(change: float) -> tuple[float, Share]:
    """Percent that end at the right level; those that end at another one, are left open, and their runs."""
    rng = np.random.default_rng([SEED, LEVELS, round(1000 * change)])
    places = rng.integers(1, LEVELS, SEARCHES).tolist()
    ends = [_compare(one) for one in _draw(rng, [change] * SEARCHES, [THRESHOLD] * SEARCHES)]
    runs = [2 * one.blocks for one in ends]
    searches = {
        number: Search(count=LEVELS) for number, one in enumerate(ends) if side_of_ends(one) is LevelSide.LAST
    }  # fmt: skip
    while True:
        nexts = [(number, place) for number, search in searches.items() if (place := search.next) is not None]
        if not nexts:
            break
        changes = [change if place >= places[number] else 0.0 for number, place in nexts]
        found = _draw(rng, changes, [half_threshold(ends[number], THRESHOLD) for number, _ in nexts])
        for (number, place), one in zip(nexts, found, strict=True):
            searches[number] = searches[number].learn(place, side_of(_compare(one), ends[number]))
            runs[number] += 2 * one.n
    exact = {number: search.last for number, search in searches.items() if search.is_exact}
    right = sum(last == places[number] for number, last in exact.items())
    share = Share(
        wrong=100 * (len(exact) - right) / SEARCHES, open=100 * (SEARCHES - len(exact)) / SEARCHES,
        runs=float(np.mean(runs)),
    )  # fmt: skip
    return 100 * right / SEARCHES, share


def _draw(rng: np.random.Generator, changes: Sequence[float], thresholds: Sequence[float]) -> Sequence[Decision]:
    centres = -np.log1p(np.array(changes))[:, np.newaxis]
    return _decide(rng.normal(centres, SCATTER, (len(changes), BLOCKS)), thresholds)


def _decide(differences: Floats, thresholds: Sequence[float]) -> Sequence[Decision]:
    return decide_many(list(differences), [Rule(delta=math.log1p(one), last=BLOCKS) for one in thresholds])


def _compare(decision: Decision) -> Comparison:
    """What a study would say of it."""
    return Comparison(
        environment="level", cell="cell", metric="tps", verdict=decision.verdict,
        effect=math.exp(decision.estimate.centre) if decision.estimate else None, interval=None,
        equivalence_interval=None, confidence=0.955, blocks=decision.n, planned_blocks=BLOCKS, runs=2 * decision.n,
        invalid=0, value=None, baseline_value=None, exploratory=False, control=False,
        decided_at=decision.n if decision.decided else None,
    )  # fmt: skip
