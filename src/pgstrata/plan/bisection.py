"""The search along ordered levels for the step between two of them: which level is next, and what is known.

A level is measured against the first end, with half of the difference of the ends as the threshold, and belongs to the
end that the centre of its interval is nearer to. Of 600 drawn steps of each kind (block differences with a standard
deviation of 1.5 %, at most 24 blocks, by `stats.rule`; `ONLY=bisection make bench`) so many were judged wrongly, left
open, and took so many runs:

| true change | middle is like | against the first end | by its verdict alone | against both ends at once |
|---|---|---|---|---|
| 3 % | first | 0.2 %, 6.0 %, 27 runs | 2.3 %, 6.0 %, 27 | 0.0 %, 6.0 %, 41 |
| 3 % | last  | 0.7 %, 0.0 %, 15 runs | 0.0 %, 0.0 %, 15 | 0.2 %, 5.5 %, 40 |
| 5 % | first | 0.0 %, 0.2 %, 16 runs | 1.0 %, 0.2 %, 16 | 0.0 %, 0.2 %, 24 |
| 5 % | last  | 0.2 %, 0.0 %, 14 runs | 0.0 %, 0.0 %, 14 | 0.0 %, 0.0 %, 23 |

Both ends at once are hardly surer, and cost half as much again or more. Of 400 whole searches over nine levels with one
step, all ended at the right one where the change was 5 or 10 %, in 58 and 56 runs; where it was 3 %, the threshold
itself, 90 % did, 10 % were left open, none of them ended at another one, in 75 runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Self

from pgstrata.errors import UsageError
from pgstrata.model.answer import Comparison, Verdict
from pgstrata.model.experiment import Environment, Experiment

FEWEST_LEVELS: Final = 3
_DECIDED: Final = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.EQUIVALENT, Verdict.NEGLIGIBLE})
_CHANGED: Final = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.COLLAPSED})
_SAME: Final = frozenset({Verdict.EQUIVALENT, Verdict.NEGLIGIBLE})


class LevelSide(StrEnum):
    """What a level was found to be."""

    FIRST = "first"
    LAST = "last"
    UNDECIDED = "undecided"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search over `count` levels, at least two, of which the ends are known to differ.

    `found` says what came of each level that was looked at, by its place.
    """

    count: int
    found: Mapping[int, LevelSide] = field(default_factory=dict)

    @property
    def first(self) -> int:
        """The last place that is known to be like the first end."""
        return max((place for place, side in self.found.items() if side is LevelSide.FIRST), default=0)

    @property
    def last(self) -> int:
        """The first place that is known to be like the last end."""
        return min((place for place, side in self.found.items() if side is LevelSide.LAST), default=self.count - 1)

    @property
    def next(self) -> int | None:
        """The level to look at: the nearest to the middle that was not skipped, the earlier of two; None at the end."""
        if LevelSide.UNDECIDED in self.found.values():
            return None
        left = [place for place in range(self.first + 1, self.last) if place not in self.found]
        return min(left, key=lambda place: abs(2 * place - self.first - self.last), default=None)

    @property
    def is_exact(self) -> bool:
        """Whether two neighbours are left."""
        return self.last - self.first == 1

    def learn(self, place: int, side: LevelSide) -> Self:
        """The search with what came of a level.

        Raises:
            ValueError: the level was looked at, or lies outside of what is still open.
        """
        if place in self.found or not self.first < place < self.last:
            raise ValueError(f"level {place} is not between {self.first} and {self.last}, or is known")
        return replace(self, found={**self.found, place: side})


def side_of_ends(ends: Comparison) -> LevelSide:
    """The comparison of both ends: LAST if the last differs from the first, FIRST if it does not, or UNDECIDED."""
    if ends.verdict in _SAME:
        return LevelSide.FIRST
    measured = ends.verdict is Verdict.COLLAPSED or (ends.effect is not None and ends.effect not in {0.0, 1.0})
    return LevelSide.LAST if ends.verdict in _CHANGED and measured else LevelSide.UNDECIDED


def side_of(level: Comparison, ends: Comparison) -> LevelSide:
    """Which end a level is nearer to, in log units; both comparisons are with the first end.

    Where the last end collapsed, so has what is like it. A level that alone collapsed is like neither.
    """
    if level.verdict is Verdict.COLLAPSED:
        return LevelSide.LAST if ends.verdict is Verdict.COLLAPSED else LevelSide.SKIPPED
    if level.verdict not in _DECIDED or not level.effect:
        return LevelSide.UNDECIDED
    if ends.verdict is Verdict.COLLAPSED or not ends.effect:
        return LevelSide.FIRST
    return LevelSide.LAST if math.log(level.effect) / math.log(ends.effect) > 1 / 2 else LevelSide.FIRST


def half_threshold(ends: Comparison, otherwise: float) -> float:
    """Half of the difference of the ends in log units, as a ratio; `otherwise` where it has no size."""
    if ends.verdict is Verdict.COLLAPSED or not ends.effect:
        return otherwise
    return round(math.expm1(abs(math.log(ends.effect)) / 2), 6)


def levels_along(experiment: Experiment, factor: str | None) -> tuple[str, tuple[Environment, ...]]:
    """The factor, and its environments in the order of the file; all else is as in the baseline.

    Args:
        experiment: the whole question.
        factor: the key; None where there is only one.

    Raises:
        UsageError: there is no such factor, or it has too few levels.
    """
    names = ", ".join(experiment.factors)
    if factor is None and len(experiment.factors) == 1:
        factor = experiment.factors[0]
    if factor is None or factor not in experiment.factors:
        what = "the experiment has several factors" if factor is None else f"there is no factor {factor!r}"
        remedy = f"choose one of {names}" if names else "add one with three levels or more, such as server"
        raise UsageError(what if names else "the experiment has no factor", where="--factor", remedy=remedy)
    base = _others(experiment.environment(experiment.baseline), factor)
    along = tuple(one for one in experiment.environments if one.control is None and _others(one, factor) == base)
    if len(along) < FEWEST_LEVELS:
        raise UsageError(
            f"{factor} has {len(along)} levels, and there is nothing between its ends to look for",
            where="--factor",
            remedy="give it three or more, in their order; `pgstrata run` compares two",
        )
    return factor, along


def _others(environment: Environment, factor: str) -> dict[str, str]:
    return {level.factor: level.value for level in environment.levels if level.factor != factor}


def pair_experiment(
    experiment: Experiment, factor: str, pair: tuple[Environment, Environment], threshold: float
) -> Experiment:
    """The question whether the second of a pair differs from the first, without controls and without a budget."""
    first, second = (_name(one, factor) for one in pair)
    note = f"# A step of a search along {factor}, with a threshold of {threshold * 100:.3g} %: {first} and {second}\n"
    return replace(
        experiment,
        question=f"Does {second} differ from {first}?",
        threshold=threshold,
        budget=None,
        baseline=pair[0].name,
        environments=pair,
        factors=(factor,),
        text=note + experiment.text,
    )


def _name(environment: Environment, factor: str) -> str:
    return next((level.value for level in environment.levels if level.factor == factor), environment.name)
