"""Crossed factors: what each of them does, and whether that depends on another one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pgstrata.compare.arms import sort_runs
from pgstrata.compare.judging import make_rule
from pgstrata.compare.levels import headline_cell, read_levels
from pgstrata.model.answer import EffectKind, FactorEffect, Interval
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import METRICS
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.stats.contrasts import Contrast, make_contrasts
from pgstrata.stats.rule import Decision, Span, decide_many


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
    cell, sign = headline_cell(plan), METRICS[experiment.metric].sign
    levels = read_levels(plan, arms, list(crossed), cell)
    logs = {name: {block: sign * value for block, value in found.items()} for name, found in levels.items()}
    contrasts = make_contrasts(crossed, logs, baseline=experiment.baseline).found
    rule = make_rule(plan, experiment.metric)
    decisions = decide_many([contrast.series.d for contrast in contrasts], [rule] * len(contrasts))
    return tuple(
        _to_effect(contrast, decision, cell, experiment.metric)
        for contrast, decision in zip(contrasts, decisions, strict=True)
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


def _to_effect(contrast: Contrast, decision: Decision, cell: str, metric: str) -> FactorEffect:
    change, *given = contrast.changes
    estimate = decision.estimate
    return FactorEffect(
        kind=EffectKind.INTERACTION if contrast.is_interaction else EffectKind.MAIN,
        factor=change.factor,
        level=change.level,
        reference=change.against,
        given=(given[0].factor, given[0].level, given[0].against) if given else None,
        cell=cell,
        metric=metric,
        verdict=decision.verdict,
        effect=math.exp(METRICS[metric].sign * estimate.centre) if estimate else None,
        interval=_ratios(estimate.interval, metric) if estimate else None,
        blocks=decision.n,
        repeated_p=decision.repeated_p,
        decided_at=decision.n if decision.decided else None,
    )


def _ratios(span: Span | None, metric: str) -> Interval | None:
    if span is None:
        return None
    low, high = sorted(math.exp(METRICS[metric].sign * end) for end in (span.low, span.high))
    return Interval(low=low, high=high)
