"""Ordered axes: along which factors levels have an order, and where along them the primary metric changed."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.compare.arms import Arms, sort_runs
from pgstrata.compare.judging import ask
from pgstrata.compare.levels import read_levels
from pgstrata.compare.pairs import to_interval, to_ratio
from pgstrata.model.answer import AxisStep, OrderedAxis
from pgstrata.model.experiment import Experiment
from pgstrata.model.plan import Plan
from pgstrata.model.question import Question
from pgstrata.model.runs import RunRecord
from pgstrata.stats.ordered import LevelStep, find_steps
from pgstrata.stats.ranks import FloatArray
from pgstrata.units import parse_bytes, parse_duration

FEWEST_LEVELS: Final = 3
# 16, 9.6.24, maven:9.6, 6.12.5: a number with dots behind the name of a supplier.
_VERSION: Final = re.compile(r"(?:[a-z]+:)?v?(\d+(?:\.\d+)*)")
_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.ASCII)
_VERSIONED: Final = frozenset({"server", "kernel"})

_Key = tuple[float, ...]


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


def order_levels(factor: str, levels: Sequence[str]) -> tuple[str, ...]:
    """Levels by what they mean: versions of servers and kernels, numbers, sizes, durations; else as they are."""
    for read in (_version,) if factor in _VERSIONED else (_number, _size, _duration):
        keys = {level: read(level) for level in levels}
        known = {level: key for level, key in keys.items() if key is not None}
        if len(set(known.values())) == len(levels):
            return tuple(sorted(levels, key=known.__getitem__))
    return tuple(levels)


def _version(level: str) -> _Key | None:
    found = _VERSION.fullmatch(level)
    return tuple(float(part) for part in found.group(1).split(".")) if found else None


def _number(level: str) -> _Key | None:
    return (float(level),) if _NUMBER.fullmatch(level) else None


def _size(level: str) -> _Key | None:
    return _quantity(parse_bytes, level)


def _duration(level: str) -> _Key | None:
    return _quantity(parse_duration, level)


def _quantity(parse: Callable[[str], float], level: str) -> _Key | None:
    """Nothing has no need of a unit."""
    if level.strip() == "0":
        return (0.0,)
    try:
        return (float(parse(level)),)
    except ValueError:
        return None


def _axes_of(experiment: Experiment) -> list[_Axis]:
    axes = []
    for factor in experiment.factors:
        groups: dict[frozenset[tuple[str, str]], dict[str, str]] = defaultdict(dict)
        for environment in experiment.environments:
            own = {level.factor: level.value for level in environment.levels}
            if environment.control is None and factor in own:
                rest = frozenset((key, value) for key, value in own.items() if key != factor)
                groups[rest].setdefault(own[factor], environment.name)
        levels = tuple(dict.fromkeys(level for group in groups.values() for level in group))
        whole = [group for group in groups.values() if len(group) == len(levels)]
        if len(levels) >= FEWEST_LEVELS and whole:
            ordered = order_levels(factor, levels)
            named = tuple(tuple(group[level] for level in ordered) for group in whole)
            axes.append(_Axis(factor=factor, levels=ordered, groups=named))
    return axes


def _measure(question: Question, arms: Arms, axis: _Axis, cell: str) -> OrderedAxis | None:
    """None before there is a block with two of the levels."""
    names = [name for group in axis.groups for name in group]
    logs = _matrix(read_levels(question, arms, names, cell), axis)
    if not logs.size:
        return None
    found = find_steps(logs)
    return OrderedAxis(
        factor=axis.factor,
        levels=axis.levels,
        cell=cell,
        metric=question.metric,
        steps=tuple(_to_step(axis, step) for step in found.steps),
        p=found.p,
        trend_p=found.trend.p if found.trend is not None else None,
        blocks=len(logs),
        smallest_p=found.smallest_p,
    )


def _matrix(levels: Mapping[str, Mapping[int, float]], axis: _Axis) -> FloatArray:
    """Shape (blocks, levels), NaN where a level is not there in all groups; blocks with at least two levels."""
    blocks = sorted({block for found in levels.values() for block in found})
    parts = [[[levels[name].get(block, math.nan) for name in group] for block in blocks] for group in axis.groups]
    logs = np.array(parts, dtype=np.float64).reshape(len(parts), len(blocks), len(axis.levels)).mean(axis=0)
    return np.asarray(logs[np.isfinite(logs).sum(axis=1) > 1], dtype=np.float64)


def _to_step(axis: _Axis, step: LevelStep) -> AxisStep:
    return AxisStep(
        before=axis.levels[step.before],
        after=axis.levels[step.after],
        effect=to_ratio(step.effect),
        interval=to_interval(step.interval),
        p=step.p,
    )
