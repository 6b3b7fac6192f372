"""Crossed factors: what each of them does, and whether that depends on another one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pgstrata.compare.pairing.arms import sort_runs
from pgstrata.compare.pairing.levels import read_levels
from pgstrata.compare.pairing.pairs import to_interval, to_ratio
from pgstrata.compare.verdicts.judging import ask, make_rule
from pgstrata.model.answer import EffectKind, FactorEffect
from pgstrata.model.experiment import Experiment
from pgstrata.model.plan import Plan
from pgstrata.model.question import Question
from pgstrata.model.runs import RunRecord
from pgstrata.stats.contrasts import Contrast, make_contrasts
from pgstrata.stats.rule import Decision, decide_many


def find_effects(plan: Plan, runs: Sequence[RunRecord]) -> tuple[FactorEffect, ...]:
    """Main effects and two-way interactions by the primary metric, over all cells or in the only one; exploratory.

    Args:
        plan: nothing comes of it where its environments are not the full cross of at least two factors.
        runs: what was measured so far, with `COMPARED_SERIES`.

    Returns:
        Main effects, then interactions, each in the order of the factors and their levels.

    Raises:
        ValueError: a run is there twice.
    """
    experiment = plan.experiment
    crossed = _full_cross(experiment)
    if not crossed:
        return ()
    arms = sort_runs(runs, frozenset((experiment.metric,)))
    question = ask(plan)
    levels = read_levels(arms, question.metric, list(crossed), question.cells)
    logs = {name: {block: question.sign * value for block, value in found.items()} for name, found in levels.items()}
    contrasts = make_contrasts(crossed, logs, baseline=experiment.baseline)
    rule = make_rule(question)
    decisions = decide_many([contrast.series.d for contrast in contrasts], [rule] * len(contrasts))
    return tuple(
        _to_effect(contrast, decision, question) for contrast, decision in zip(contrasts, decisions, strict=True)
    )


def _full_cross(experiment: Experiment) -> Mapping[str, Mapping[str, str]]:
    """Levels by factor, by environment; empty unless at least two factors are crossed, each combination once."""
    asked = [each for each in experiment.environments if each.control is None]
    levels = {
        each.name: {level.factor: level.value for level in each.levels if level.factor in experiment.factors}
        for each in asked
    }
    sizes = [len({found.get(factor) for found in levels.values()}) for factor in experiment.factors]
    varied = [size for size in sizes if size > 1]
    places = {tuple(sorted(found.items())) for found in levels.values()}
    complete = all(len(found) == len(experiment.factors) for found in levels.values())
    if len(varied) > 1 and complete and len(places) == len(asked) == math.prod(varied):
        return levels
    return {}


def _to_effect(contrast: Contrast, decision: Decision, question: Question) -> FactorEffect:
    change, *given = contrast.changes
    estimate = decision.estimate
    return FactorEffect(
        kind=EffectKind.INTERACTION if contrast.is_interaction else EffectKind.MAIN,
        factor=change.factor,
        level=change.level,
        reference=change.against,
        given=(given[0].factor, given[0].level, given[0].against) if given else None,
        cell=question.headline_cell,
        metric=question.metric,
        verdict=decision.verdict,
        effect=to_ratio(question.sign * estimate.centre) if estimate else None,
        interval=to_interval(estimate.interval, question.sign) if estimate else None,
        blocks=decision.n,
        repeated_p=decision.repeated_p,
        decided_at=decision.n if decision.decided else None,
    )
