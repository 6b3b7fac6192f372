"""Whether the difference from the baseline grows or shrinks along clients or scale.

All of it is exploratory and looked at once, at the blocks that there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pgstrata.compare.by_load import find_curves
from pgstrata.compare.pairing.arms import Arms, sort_runs
from pgstrata.compare.pairing.pairs import Pairing, pair_metric, to_interval, to_ratio
from pgstrata.compare.verdicts.judging import ask, make_rule
from pgstrata.model.answer import LoadTrend
from pgstrata.model.experiment import Cell
from pgstrata.model.plan import Plan
from pgstrata.model.question import Question
from pgstrata.model.runs import RunRecord
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.rule import decide_once

_FEWEST_LEVELS: Final = 2
AXES: Final = ("clients", "scale")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Course:
    """Differences of one environment along one axis.

    `d` are oriented log differences, shape (blocks, levels), of the blocks that have all levels.
    """

    environment: str
    axis: str
    cells: tuple[Cell, ...]
    d: FloatArray

    @property
    def levels(self) -> FloatArray:
        """Shape (levels,), ascending."""
        return np.array([getattr(cell, self.axis) for cell in self.cells], dtype=np.float64)


def find_trends(plan: Plan, runs: Sequence[RunRecord]) -> tuple[LoadTrend, ...]:
    """A trend for each axis, each curve along it and each environment but controls; by axis, then as environments are.

    In each block a line is fitted by least squares to the differences over the logarithm of the level. The change of
    the difference along that line, from the first level to the last, is one value of the block, because environments
    were compared side by side there. These values are judged by the rule for one comparison: signed ranks over blocks,
    so that no distribution is assumed. All trends of a study share the error probability (Bonferroni). Cells in which
    one of the two collapsed are left out, and blocks that lack one of the other cells.

    Args:
        plan: fixes baseline, primary metric and threshold.
        runs: all runs so far, in any order.

    Raises:
        ValueError: a run is there twice.
    """
    question = ask(plan)
    arms = sort_runs(runs, frozenset((question.metric,)))
    names = [name for name in question.environments if name not in question.controls]
    courses = [
        course
        for axis in AXES
        for curve in find_curves(plan.experiment, _FEWEST_LEVELS, axis)
        for name in names
        if (course := _follow(arms, question, name, axis, curve)) is not None
    ]
    return tuple(_judge(question, course, len(courses)) for course in courses)


def _follow(arms: Arms, question: Question, name: str, axis: str, curve: Sequence[Cell]) -> _Course | None:
    """None with fewer than two levels that can be compared, or without a block that has all of them."""
    pairs = [(cell, pair_metric(arms, question, name, cell.identity)) for cell in curve]
    usable = [(cell, pairing) for cell, pairing in pairs if pairing.sample.size]
    if len(usable) < _FEWEST_LEVELS:
        return None
    blocks = sorted(set.intersection(*(set(pairing.blocks) for _, pairing in usable)))
    if not blocks:
        return None
    d = np.array([_at_blocks(pairing, blocks) for _, pairing in usable], dtype=np.float64).T
    return _Course(environment=name, axis=axis, cells=tuple(cell for cell, _ in usable), d=d)


def _at_blocks(pairing: Pairing, blocks: Sequence[int]) -> FloatArray:
    return pairing.differences[np.searchsorted(pairing.blocks, blocks)]


def _judge(question: Question, course: _Course, tested: int) -> LoadTrend:
    rule = make_rule(question)
    rule = replace(rule, alpha=rule.alpha / tested)
    (decision,) = decide_once([changes_along(course.levels, course.d)], [rule])
    centre = decision.estimate.centre if decision.estimate else 0.0
    first, last = (to_ratio(question.sign * float(np.median(course.d[:, place]))) for place in (0, -1))
    return LoadTrend(
        environment=course.environment,
        axis=course.axis,
        cells=tuple(cell.identity for cell in course.cells),
        levels=tuple(getattr(cell, course.axis) for cell in course.cells),
        metric=question.metric,
        verdict=decision.verdict,
        effect=to_ratio(question.sign * centre),
        interval=to_interval(decision.estimate.interval, question.sign) if decision.estimate else None,
        first=first,
        last=last,
        blocks=decision.n,
    )


def changes_along(levels: FloatArray, d: FloatArray) -> FloatArray:
    """How much each row changes from the first level to the last, along its least-squares line over ln(level).

    Args:
        levels: ascending, at least two, shape (levels,).
        d: shape (blocks, levels).

    Returns:
        Shape (blocks,), in the unit of `d`.
    """
    x = np.log(levels)
    centred = x - x.mean()
    slopes = d @ centred / float(centred @ centred)
    return np.asarray(slopes * (x[-1] - x[0]), dtype=np.float64)
