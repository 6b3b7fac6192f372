"""Factors: which step along an ordered one brought the change, what crossed ones do, and what that depends on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from pgstrata.compare.factors.axes import group_levels
from pgstrata.compare.headlines import DIFFERENT
from pgstrata.compare.pairing.arms import sort_runs
from pgstrata.compare.pairing.levels import read_levels
from pgstrata.compare.pairing.pairs import to_ratio
from pgstrata.compare.verdicts.judging import ask
from pgstrata.model.answer import ALL_CELLS, Answer, AxisStep, EffectKind, FactorEffect, OrderedAxis, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import METRICS
from pgstrata.report.sentences.names import count, name_factor, name_where, say_on
from pgstrata.report.sentences.verdicts import (
    render_between,
    render_figures,
    render_interval,
    render_threshold,
    verdict_label,
)
from pgstrata.stats.ordered import LEVEL
from pgstrata.units import render_names, render_percent_change

_MOST_NAMED: Final = 4
# Two levels alone are told where they differ by so much from the step, and by more than half of it.
_FAR_FROM_STEP: Final = math.log(1.1)
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
        head += say_on(name_where(axis.cell, experiment))
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
    named = render_names(axis.out_of_reach, _MOST_NAMED)
    return f"; too few values to show a step at {named} alone"


def _say_doubt(step: AxisStep) -> str:
    """Whether the step is small, or its place unsure, and the p of a step anywhere."""
    said = STEP_WORDS.get(step.verdict)
    return f"{f'{said}, ' if said else ''}p = {step.p:.2g}{say_beside(step)}"


def say_step(step: AxisStep) -> str:
    """+4.2 % [+3.1, +5.3]."""
    return f"{render_percent_change(step.effect)} {render_interval(step.interval)}".rstrip()


def say_beside(step: AxisStep) -> str:
    """What the two levels at a step show alone, where that is far from the step; empty where it is not."""
    if step.beside is None or not (step.beside > 0 and step.effect > 0):
        return ""
    effect, beside = math.log(step.effect), math.log(step.beside)
    if abs(beside - effect) <= max(_FAR_FROM_STEP, abs(effect) / 2):
        return ""
    return f"; {step.after} against {step.before} alone: {render_percent_change(step.beside)}"


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
                LevelPoint(place=place, block=block, ratio=to_ratio(mean - centre)) for place, mean in enumerate(means)
            ]
    return tuple(points)


_MOST_SENTENCES = 6


def name_contrast(effect: FactorEffect) -> str:
    """For tables: pages: 2MB against 4kB; of an interaction also where it is looked at."""
    text = f"{name_factor(effect.factor)}: {effect.level} against {effect.reference}"
    if effect.given is None:
        return text
    factor, level, reference = effect.given
    return f"{text}; with {name_factor(factor)} {level} instead of {reference}"


def primary_effects(answer: Answer) -> list[FactorEffect]:
    """All contrasts by the primary metric: main effects first, those over all cells before those of single ones."""
    found = [effect for effect in answer.effects if effect.metric == answer.study.plan.experiment.metric]
    return sorted(found, key=lambda effect: (effect.cell != ALL_CELLS, effect.kind is EffectKind.INTERACTION))


def label_contrast(effect: FactorEffect) -> str:
    """The verdict in a word or two; an interaction is no gain and no loss."""
    if effect.given is None:
        return verdict_label(effect)
    words = {
        Verdict.BETTER: "depends",
        Verdict.WORSE: "depends",
        Verdict.NEGLIGIBLE: "hardly depends",
        Verdict.EQUIVALENT: "does not depend",
    }
    return words.get(effect.verdict, verdict_label(effect))


def contrast_sentences(answer: Answer) -> list[str]:
    """What each factor does over all cells (or in the only one), and what that depends on; a table holds the rest."""
    found = primary_effects(answer)
    together = [effect for effect in found if effect.cell == ALL_CELLS]
    shown = together or (found if len({effect.cell for effect in found}) == 1 else [])
    mains = [effect for effect in shown if effect.kind is EffectKind.MAIN]
    if len(mains) > _MOST_SENTENCES:
        differing = sum(effect.verdict in DIFFERENT for effect in mains)
        return [
            f"factors, exploratory: {differing} of {count(len(mains), 'main effect')} differ from zero; see their table"
        ]
    return [_say_main(effect, _depending(effect, shown), answer.study.plan.experiment) for effect in mains]


def _depending(main: FactorEffect, effects: Sequence[FactorEffect]) -> tuple[FactorEffect, ...]:
    key = (main.factor, main.level, main.reference)
    return tuple(
        effect
        for effect in effects
        if effect.kind is EffectKind.INTERACTION and (effect.factor, effect.level, effect.reference) == key
    )


def _say_main(effect: FactorEffect, depending: Sequence[FactorEffect], experiment: Experiment) -> str:
    """A main effect with the interactions that say what it depends on."""
    limit = render_threshold(experiment.threshold)
    head = f"effect of {name_factor(effect.factor)}, {effect.level} against {effect.reference} (exploratory)"
    depends = "".join(f"; {text}" for item in depending for text in _say_dependence(item, limit))
    return f"{head}: {_say_size(effect, limit)}{depends}"


def _say_size(effect: FactorEffect, limit: str) -> str:
    match effect.verdict:
        case Verdict.EQUIVALENT:
            return f"no difference larger than {limit}"
        case Verdict.INCONCLUSIVE:
            return f"inconclusive, {render_between(effect.interval)}"
        case Verdict.INSUFFICIENT:
            return f"too early to tell, after {count(effect.blocks, 'block')}"
        case Verdict.UNSTABLE | Verdict.COLLAPSED:
            return str(effect.verdict)
        case _:
            return f"{render_figures(effect)}, {verdict_label(effect)}"


def _say_dependence(effect: FactorEffect, limit: str) -> list[str]:
    """Whether a main effect depends on another factor; nothing where it is too early to say."""
    assert effect.given is not None
    factor, level, reference = effect.given
    on = name_factor(factor)
    match effect.verdict:
        case Verdict.BETTER | Verdict.WORSE:
            return [f"it depends on {on}: {render_figures(effect)} comes on top with {on} = {level}"]
        case Verdict.NEGLIGIBLE:
            return [f"it hardly depends on {on}: {render_figures(effect)} comes on top with {on} = {level}"]
        case Verdict.EQUIVALENT:
            return [f"it does not depend on {on} by more than {limit} ({level} instead of {reference})"]
        case Verdict.INCONCLUSIVE:
            between = render_between(effect.interval)
            return [f"whether it depends on {on} cannot be told: {between} with {level} instead of {reference}"]
        case _:
            return []
