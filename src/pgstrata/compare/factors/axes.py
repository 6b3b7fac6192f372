"""Ordered axes: along which factors levels have an order, and where along them the primary metric changed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.compare.pairing.arms import Arms, find_arm, sort_runs
from pgstrata.compare.pairing.levels import read_levels
from pgstrata.compare.pairing.pairs import to_interval, to_ratio
from pgstrata.compare.verdicts.judging import ask
from pgstrata.model.answer import ALL_CELLS, AxisStep, OrderedAxis, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.model.levels import LISTED, order_levels
from pgstrata.model.plan import Plan
from pgstrata.model.question import Question
from pgstrata.model.runs import RunRecord
from pgstrata.stats.ordered import DRAWS, LEVEL, LevelStep, Ordered, find_steps, find_steps_unpaired
from pgstrata.stats.ranks import FloatArray

FEWEST_LEVELS: Final = 3
_MOST_DRAWN: Final = 50_000_000
_FEWEST_DRAWS: Final = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """Environments along a factor: `groups` hold one for each of `levels`, all else being equal within a group."""

    factor: str
    levels: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]


def find_axes(plan: Plan, runs: Sequence[RunRecord]) -> tuple[OrderedAxis, ...]:
    """Every factor of at least three levels as an axis, by the primary metric: over all cells, then in each of them.

    Levels are in the order of their numbers (versions, sizes, durations), in that of the file where they are no
    numbers. Where other factors are crossed with it, the mean over their combinations stands for a level.

    The test takes the blocks as given, although decided headlines end them: false steps are at most a point more
    (`bench/ordered.py`).

    Args:
        plan: nothing comes of factors of fewer levels.
        runs: what was measured so far, with `COMPARED_SERIES`.

    Raises:
        ValueError: a run is there twice.
    """
    axes = _axes_of(plan.experiment)
    if not axes:
        return ()
    arms = sort_runs(runs, frozenset((plan.experiment.metric,)))
    question = ask(plan)
    cells = dict.fromkeys((question.headline_cell, *question.cells))
    found = [_measure(question, arms, axis, cell) for axis in axes for cell in cells]
    return tuple(axis for axis in found if axis is not None)


def _axes_of(experiment: Experiment) -> list[_Axis]:
    axes = []
    for factor in experiment.factors:
        found = find_groups(experiment, factor)
        levels = order_levels(factor, tuple(dict.fromkeys(level for group in found for level in group)))
        groups = _complete(found, levels)
        if len(levels) >= FEWEST_LEVELS and groups:
            axes.append(_Axis(factor=factor, levels=levels, groups=groups))
    return axes


def group_levels(experiment: Experiment, factor: str, levels: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Environments in the order of the levels, all else being equal within a group; only groups with all levels."""
    return _complete(find_groups(experiment, factor), levels)


def find_groups(experiment: Experiment, factor: str) -> list[dict[str, str]]:
    """Environments that differ in nothing but this factor, by its levels; without controls."""
    groups: dict[frozenset[tuple[str, str]], dict[str, str]] = defaultdict(dict)
    for environment in experiment.environments:
        own = {level.factor: level.value for level in environment.levels}
        if environment.control is None and factor in own:
            rest = frozenset((key, value) for key, value in own.items() if key != factor)
            groups[rest].setdefault(own[factor], environment.name)
    return list(groups.values())


def _complete(groups: Sequence[Mapping[str, str]], levels: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(group[level] for level in levels) for group in groups if set(levels) <= group.keys())


def _measure(question: Question, arms: Arms, axis: _Axis, cell: str) -> OrderedAxis | None:
    """None before there is a block with two of the levels."""
    names = [name for group in axis.groups for name in group]
    logs = _matrix(read_levels(arms, question.metric, names, question.cells_of(cell)), axis)
    return _to_axis(question, axis, cell, find_steps(logs), len(logs)) if logs.size else None


def find_listed_axes(question: Question, arms: Arms, levels: Sequence[str]) -> tuple[OrderedAxis, ...]:
    """The environments themselves as levels of one axis, in their given order.

    With blocks: over the mean of all cells, then in each of several, exploratory. Without blocks: in each cell, which
    share the level (Bonferroni), by the unpaired form. Only levels with values count, and an axis without p has fewer
    than three of them.
    """
    if not question.blocks:
        share = LEVEL / len(question.cells)
        return tuple(_measure_loose(question, arms, levels, cell, share) for cell in question.cells)
    several = [(cell,) for cell in question.cells] if len(question.cells) > 1 else []
    return tuple(_measure_listed(question, arms, levels, cells) for cells in (question.cells, *several))


def _measure_listed(question: Question, arms: Arms, levels: Sequence[str], cells: Sequence[str]) -> OrderedAxis:
    listed = _list(levels)
    logs = _matrix(read_levels(arms, question.metric, levels, cells), listed)
    there = np.flatnonzero(np.isfinite(logs).any(axis=0)).tolist()
    axis = _list([levels[place] for place in there])
    enough = len(there) >= FEWEST_LEVELS
    found = find_steps(logs[:, there], draws=_draws(logs.size)) if enough else None
    return _to_axis(question, axis, ALL_CELLS if len(cells) > 1 else cells[0], found, len(logs))


def _measure_loose(question: Question, arms: Arms, levels: Sequence[str], cell: str, share: float) -> OrderedAxis:
    values = {name: find_arm(arms, name, cell).loose.get(question.metric) for name in levels}
    groups = {name: np.log(found) for name, found in values.items() if found}
    draws = _draws(sum(group.size for group in groups.values()))
    enough = len(groups) >= FEWEST_LEVELS
    found = find_steps_unpaired(list(groups.values()), level=share, draws=draws) if enough else None
    return _to_axis(question, _list(list(groups)), cell, found, 0)


def _list(levels: Sequence[str]) -> _Axis:
    return _Axis(factor=LISTED, levels=tuple(levels), groups=(tuple(levels),))


def _draws(size: int) -> int:
    """Fewer permutations of very many values; the test holds for any number of them."""
    return max(_FEWEST_DRAWS, min(DRAWS, _MOST_DRAWN // max(size, 1)))


def _to_axis(question: Question, axis: _Axis, cell: str, found: Ordered | None, blocks: int) -> OrderedAxis:
    return OrderedAxis(
        factor=axis.factor,
        levels=axis.levels,
        cell=cell,
        metric=question.metric,
        steps=tuple(_to_step(question, axis, step) for step in found.steps) if found else (),
        p=found.p if found else None,
        trend_p=found.trend.p if found and found.trend else None,
        blocks=blocks,
        smallest_p=found.smallest_p if found else None,
        out_of_reach=tuple(axis.levels[place] for place in found.out_of_reach) if found else (),
    )


def _matrix(levels: Mapping[str, Mapping[int, float]], axis: _Axis) -> FloatArray:
    """Shape (blocks, levels), NaN where a level is not there in all groups; blocks with at least two levels."""
    blocks = sorted({block for found in levels.values() for block in found})
    parts = [[[levels[name].get(block, math.nan) for name in group] for block in blocks] for group in axis.groups]
    logs = np.array(parts, dtype=np.float64).reshape(len(parts), len(blocks), len(axis.levels)).mean(axis=0)
    return np.asarray(logs[np.isfinite(logs).sum(axis=1) > 1], dtype=np.float64)


def _to_step(question: Question, axis: _Axis, step: LevelStep) -> AxisStep:
    return AxisStep(
        before=axis.levels[step.before],
        after=axis.levels[step.after],
        effect=to_ratio(step.effect),
        interval=to_interval(step.interval),
        p=step.p,
        verdict=_judge_step(question, step),
        beside=None if math.isnan(step.beside) else to_ratio(step.beside),
    )


def _judge_step(question: Question, step: LevelStep) -> Verdict:
    """As of a pair; without an interval a step that is smaller than the threshold is inconclusive."""
    delta = math.log1p(question.threshold)
    better = Verdict.BETTER if question.sign * step.effect > 0 else Verdict.WORSE
    if step.interval is None:
        return better if abs(step.effect) >= delta else Verdict.INCONCLUSIVE
    if not step.interval.excludes_zero:
        return Verdict.INCONCLUSIVE
    return Verdict.NEGLIGIBLE if step.interval.reach < delta else better
