"""Ordered axes (versions, kernels): which step brought the change, in sentences and as what a chart is drawn from."""

import math
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from pgstrata.compare.factors.axes import group_levels
from pgstrata.compare.pairing.arms import sort_runs
from pgstrata.compare.pairing.levels import read_levels
from pgstrata.compare.verdicts.judging import ask
from pgstrata.model.answer import ALL_CELLS, Answer, AxisStep, OrderedAxis, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import METRICS
from pgstrata.report.sentences.names import count, name_factor, name_where
from pgstrata.report.sentences.verdicts import render_interval
from pgstrata.stats.ordered import LEVEL
from pgstrata.units import render_percent_change

_MOST_NAMED: Final = 4
STEP_WORDS: Final = {Verdict.NEGLIGIBLE: "real, but negligible", Verdict.INCONCLUSIVE: "place unsure"}
"""What is said of steps that are neither better nor worse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelPoint:
    """One level in one block: its value / the geometric mean of the block over all levels."""

    place: int
    block: int
    ratio: float


def primary_axes(answer: Answer) -> tuple[OrderedAxis, ...]:
    """Axes by the primary metric, those over all cells first."""
    metric = answer.study.plan.experiment.metric
    found = [axis for axis in answer.axes if axis.metric == metric]
    return tuple(sorted(found, key=lambda axis: axis.cell != ALL_CELLS))


def step_sentences(answer: Answer) -> list[str]:
    """Which level brought a change, for axes over all cells (or in the only one)."""
    axes = primary_axes(answer)
    together = [axis for axis in axes if axis.cell == ALL_CELLS]
    shown = together or (axes if len({axis.cell for axis in axes}) == 1 else ())
    return [say_axis(axis, answer.study.plan.experiment) for axis in shown]


def say_axis(axis: OrderedAxis, experiment: Experiment) -> str:
    """Along server: 17 brought +4.2 % [+3.1, +5.3] (p = 0.002), over 9 blocks; without a step, that none stands out."""
    head = f"along {name_factor(axis.factor)}"
    if axis.cell != ALL_CELLS and len(experiment.cells) > 1:
        head += f" on {name_where(axis.cell, experiment)}"
    over = f", over {count(axis.blocks, 'block')}"
    if axis.steps:
        what = METRICS[axis.metric].title
        steps = ", ".join(f"{step.after} brought {say_step(step)} {what} ({_say_doubt(step)})" for step in axis.steps)
        return f"{head}: {steps}{over}{say_out_of_reach(axis)}"
    ends = f"{head} from {axis.levels[0]} to {axis.levels[-1]}"
    if axis.smallest_p is not None and axis.smallest_p > LEVEL:
        few = count(axis.blocks, "block")
        return f"{ends}: too early for any step, the clearest one in {few} has p = {axis.smallest_p:.2g}"
    chance = f" (p = {axis.p:.2g})" if axis.p is not None else ""
    return f"{ends}: no step stands out{chance}{over}{say_trend(axis)}{say_out_of_reach(axis)}"


def say_trend(axis: OrderedAxis) -> str:
    """What follows where no step stands out: empty, or that Page's test finds a trend."""
    if axis.trend_p is None or axis.trend_p > LEVEL:
        return ""
    return f"; but there is a trend (p = {axis.trend_p:.2g}, Page's test)"


def say_out_of_reach(axis: OrderedAxis) -> str:
    """At which levels so few values could not show a step; empty where they could at all."""
    if not axis.out_of_reach:
        return ""
    named = ", ".join(axis.out_of_reach[:_MOST_NAMED]) + (", ..." if len(axis.out_of_reach) > _MOST_NAMED else "")
    return f"; a step at {named} alone could not be shown by so few values"


def _say_doubt(step: AxisStep) -> str:
    """Whether the step is small, or its place unsure, and the p of a step anywhere."""
    said = STEP_WORDS.get(step.verdict)
    return f"{f'{said}, ' if said else ''}p = {step.p:.2g}"


def say_step(step: AxisStep) -> str:
    """+4.2 % [+3.1, +5.3]."""
    return f"{render_percent_change(step.effect)} {render_interval(step.interval)}".rstrip()


# ------------------------------------------------------------------------------------------------ what is drawn


def level_points(answer: Answer, axis: OrderedAxis) -> tuple[LevelPoint, ...]:
    """Every level in every block that has all of them: the mean over the combinations of all other factors."""
    plan = answer.study.plan
    groups = group_levels(plan.experiment, axis.factor, axis.levels)
    runs = [run for run in answer.study.runs if axis.cell in {ALL_CELLS, run.cell}]
    arms = sort_runs(runs, frozenset({plan.experiment.metric}))
    logs = read_levels(arms, axis.metric, [name for group in groups for name in group], ask(plan).cells_of(axis.cell))
    blocks = sorted({block for found in logs.values() for block in found})
    points: list[LevelPoint] = []
    for block in blocks:
        if all(block in logs[name] for group in groups for name in group):
            means = [fmean(logs[name][block] for name in names) for names in zip(*groups, strict=True)]
            centre = fmean(means)
            points += [
                LevelPoint(place=place, block=block, ratio=math.exp(mean - centre)) for place, mean in enumerate(means)
            ]
    return tuple(points)
