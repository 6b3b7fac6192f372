"""The primary metric judged: which rule holds for which comparison, and what all of them came to together.

The answer and the loop that measures both ask here, so that what is shown as decided is what is not measured any more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pgstrata.compare.pairing.arms import Arms
from pgstrata.compare.pairing.pairs import Pairing, over_cells, pair_cells
from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import METRICS
from pgstrata.model.plan import Plan
from pgstrata.model.question import Question
from pgstrata.model.thresholds import DEFAULT_THRESHOLD, OWN_THRESHOLDS, own_threshold
from pgstrata.stats.family import DifferenceSeries, decide_family
from pgstrata.stats.rule import Decision, Rule, decide_many


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A comparison with its decision; `headline` unless it is one of several cells, which are exploratory."""

    pairing: Pairing
    decision: Decision
    headline: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Primary:
    """The comparisons by the primary metric.

    `headlines`, by environment, hold every environment but the baseline: over all cells, or in the only one. `cells`,
    by environment and cell, are exploratory, and there is none where the only cell is the headline.
    """

    headlines: Mapping[str, Judged]
    cells: Mapping[tuple[str, str], Judged]


def threshold_of(experiment: Experiment, metric: str) -> float:
    """The practical threshold of a metric as a ratio (0.03).

    The experiment's for the primary metric; metrics that are noisier by nature have their own, never a smaller one.
    Where the primary metric has its own, the others have theirs: 15 % of p99 say nothing about throughput.
    """
    if metric == experiment.metric:
        return experiment.threshold
    taken = experiment.threshold == own_threshold(experiment.metric)
    return max(DEFAULT_THRESHOLD if taken else experiment.threshold, OWN_THRESHOLDS.get(metric, 0.0))


def ask(plan: Plan, metric: str | None = None) -> Question:
    """What a plan asks of its runs by a metric, the primary one where none is named."""
    experiment = plan.experiment
    name = metric or experiment.metric
    others = [each for each in experiment.environments if each.name != experiment.baseline]
    return Question(
        metric=name,
        direction=METRICS[name].direction,
        threshold=threshold_of(experiment, name),
        baseline=experiment.baseline,
        environments=tuple(each.name for each in others),
        cells=tuple(cell.identity for cell in experiment.cells),
        blocks=len(plan.blocks),
        controls={each.name: each.control for each in others if each.control is not None},
        floors={cell: floor.s0 for cell, floor in plan.floors.items() if floor.valid and floor.metric == name},
        run_seconds={cell.identity: cell.run for cell in experiment.cells},
        primary=name == experiment.metric,
        horizon=plan.horizon,
    )


def make_rule(question: Question) -> Rule:
    """The rule for one comparison alone."""
    last = min(max(question.blocks, 1), question.horizon)
    return Rule(delta=math.log1p(question.threshold), last=last, horizon=question.horizon)


def judge_primary(question: Question, arms: Arms) -> Primary:
    """Every comparison by the primary metric, at the number of blocks that there is.

    Headlines of controls are judged alone, those of all other environments as one family; cells each alone.
    """
    cells = [pair_cells(arms, question, name) for name in question.environments]
    several = len(question.cells) > 1
    heads = [over_cells(pairings) for pairings in cells]
    family = judge_family([head for head in heads if head.control is None])
    controls = [head for head in heads if head.control is not None]
    beside = [replace(each, headline=True) for each in judge_each(controls)]
    explored = judge_each([pairing for pairings in cells for pairing in pairings if several])
    heads_by_name = {each.pairing.environment: each for each in (*family, *beside)}
    return Primary(
        headlines={name: heads_by_name[name] for name in question.environments},
        cells={(each.pairing.environment, each.pairing.cell): each for each in explored},
    )


def judge_each(pairings: Sequence[Pairing]) -> list[Judged]:
    """Comparisons judged each alone, exploratory."""
    rules = [make_rule(pairing.question) for pairing in pairings]
    decisions = decide_many([pairing.sample for pairing in pairings], rules)
    return [
        Judged(pairing=pairing, decision=decision, headline=False)
        for pairing, decision in zip(pairings, decisions, strict=True)
    ]


def judge_family(heads: Sequence[Pairing]) -> list[Judged]:
    """Judge headlines that share the error probability; one that collapsed keeps its share, but finds nothing."""
    series = [DifferenceSeries(blocks=head.blocks if head.is_estimable else (), d=head.sample) for head in heads]
    rules = [make_rule(head.question) for head in heads]
    decisions = decide_family(series, rules) if heads else ()
    return [
        Judged(pairing=head, decision=decision, headline=True) for head, decision in zip(heads, decisions, strict=True)
    ]


def find_floor(pairing: Pairing) -> float | None:
    """The floor s0 that holds for a comparison, in log units; None if there is no valid one.

    Over all cells the floor of the mean itself where it was measured, else sqrt(sum s0^2) / k of the k cells: their
    runs are made one after the other, each with its own noise.
    """
    floors = pairing.question.floors
    if pairing.cell != ALL_CELLS:
        return floors.get(pairing.cell)
    if ALL_CELLS in floors and not pairing.left_out:
        return floors[ALL_CELLS]
    cells = [cell for cell in pairing.question.cells if cell not in pairing.left_out]
    known = [floors[cell] for cell in cells if cell in floors]
    if not known or len(known) < len(cells):
        return None
    return math.sqrt(sum(s0**2 for s0 in known)) / len(known)
