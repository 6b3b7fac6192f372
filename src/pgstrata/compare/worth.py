"""Transactions for the money: each environment against the baseline, and the cost of each environment by itself.

A price is a known number. So the interval of a ratio of throughputs, divided by the ratio of the prices, is the
interval of the ratio of transactions for the money. The rule that judges throughput judges the shifted differences, and
claims about value for money are as certain as those about throughput.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from statistics import median
from typing import Final

import numpy as np

from pgstrata.compare.by_load import find_curves
from pgstrata.compare.pairing.arms import Arms, sort_runs
from pgstrata.compare.pairing.pairs import Pairing, pair_cells
from pgstrata.compare.sustained import find_sustained_rates
from pgstrata.compare.verdicts.judging import ask, judge_each
from pgstrata.model.answer import SustainedRate, Verdict
from pgstrata.model.experiment import Cell
from pgstrata.model.metrics import SUSTAINED_RATE, TPS
from pgstrata.model.price import PEAK, Cost, Price, ValueFinding, Worth
from pgstrata.model.question import Question
from pgstrata.model.study import Study
from pgstrata.sources.runs import may_enter
from pgstrata.stats.medians import median_interval
from pgstrata.stats.peaks import peak_values

_FEWEST_CLIENTS: Final = 2
_MOST_RIVALS: Final = 16
_AS_FAST: Final = frozenset({Verdict.EQUIVALENT, Verdict.NEGLIGIBLE})


def find_worth(study: Study) -> Worth | None:
    """Costs and values by the prices of a study's experiment; None if it has no prices.

    Throughput is compared, or with an objective the highest rate within it. For a curve over clients its peak is
    compared as well as its cells: in each block the cell that was best in the blocks before it (`stats.peaks`), for
    each environment by itself. Cells at a fixed rate are left out, because all environments run at that rate.

    Raises:
        ValueError: a run occurs twice.
    """
    experiment = study.plan.experiment
    prices = experiment.prices
    if not prices:
        return None
    metric = SUSTAINED_RATE.name if experiment.metric == SUSTAINED_RATE.name else TPS.name
    question = ask(study.plan, metric)
    arms = sort_runs(study.runs, frozenset((metric,)))
    costs = _with_dominated(tuple(_costs(study, question, prices)), arms, question)
    asked = [each for each in experiment.environments if each.control is None]
    return Worth(
        costs=costs,
        findings=tuple(_findings(study, arms, question, prices)),
        unpriced=tuple(each.name for each in asked if each.name not in prices),
    )


def _places(study: Study) -> Sequence[tuple[Cell, ...]]:
    """Single cells, then curves over clients, which stand for their peak; none at a fixed rate."""
    experiment = study.plan.experiment
    cells = tuple(cell for cell in experiment.cells if not cell.paced)
    return (*((cell,) for cell in cells), *find_curves(replace(experiment, cells=cells), _FEWEST_CLIENTS))


# ------------------------------------------------------------------------------------------------ against the baseline


def _findings(study: Study, arms: Arms, question: Question, prices: Mapping[str, Price]) -> Iterator[ValueFinding]:
    if question.baseline not in prices:
        return
    names = [name for name in question.environments if name in prices and name not in question.controls]
    pairings = {name: {each.cell: each for each in pair_cells(arms, question, name)} for name in names}
    for cells in _places(study):
        for name in names:
            ratio = prices[name].amount / prices[question.baseline].amount
            yield _judge([pairings[name][cell.identity] for cell in cells], ratio)


def _judge(pairings: Sequence[Pairing], ratio: float) -> ValueFinding:
    pairing = pairings[0] if len(pairings) == 1 else _at_peak(pairings)
    (judged,) = judge_each([replace(pairing, differences=pairing.differences - math.log(ratio))])
    decision = judged.decision
    estimate = decision.estimate
    return ValueFinding(
        environment=pairing.environment,
        cells=tuple(each.cell for each in pairings),
        metric=pairing.metric,
        price_ratio=ratio,
        verdict=decision.verdict,
        effect=pairing.ratio(estimate.centre) if estimate else None,
        interval=pairing.interval(estimate.interval) if estimate else None,
        blocks=decision.n,
        decided_at=decision.n if decision.decided else None,
        repeated_p=decision.repeated_p,
    )


def _at_peak(pairings: Sequence[Pairing]) -> Pairing:
    """The peaks of both environments, over blocks that have all cells; no blocks if an environment collapsed."""
    first = pairings[0]
    blocks = sorted(set.intersection(*(set(each.blocks) for each in pairings)))
    if not all(each.is_estimable for each in pairings):
        blocks = []
    places = [[each.blocks.index(block) for block in blocks] for each in pairings]
    best, base = (
        peak_values(np.array([getattr(each, side)[at] for each, at in zip(pairings, places, strict=True)]))
        for side in ("levels", "base_levels")
    )
    return replace(
        first,
        cell=PEAK,
        blocks=tuple(blocks[len(blocks) - best.size :]),
        values=best,
        base_values=base,
        differences=first.question.sign * (np.log(best) - np.log(base)),
        levels=best,
        base_levels=base,
    )


# ------------------------------------------------------------------------------------------------ each by itself


def _costs(study: Study, question: Question, prices: Mapping[str, Price]) -> Iterator[Cost]:
    sustained = {(each.environment, each.cell): each for each in find_sustained_rates(study)}
    for cells in _places(study):
        for name in (question.baseline, *question.environments):
            if name in prices and name not in question.controls:
                rates = _rates(study, name, cells, question.metric)
                known = sustained.get((name, cells[0].identity)) if len(cells) == 1 else None
                cost = _cost(name, cells, prices[name], rates, known)
                if cost is not None:
                    yield cost


def _rates(study: Study, environment: str, cells: Sequence[Cell], metric: str) -> Sequence[float]:
    """The rate in each block that has all cells; of several cells at their peak, but for the first blocks."""
    found: dict[int, dict[str, float]] = {}
    names = [cell.identity for cell in cells]
    for run in study.runs:
        if run.environment == environment and run.cell in names and may_enter(run):
            value = run.value(metric)
            if value is not None and 0 < value < math.inf:
                found.setdefault(run.block, {})[run.cell] = value
    whole = [found[block] for block in sorted(found) if len(found[block]) == len(names)]
    if len(names) == 1 or not whole:
        return [values[names[0]] for values in whole]
    return [float(value) for value in peak_values(np.array([[values[name] for values in whole] for name in names]))]


def _cost(
    name: str, cells: Sequence[Cell], price: Price, rates: Sequence[float], known: SustainedRate | None
) -> Cost | None:
    """The cost at the median of the rates, or with an objective at the rate that all runs together sustain."""
    if not rates:
        return None
    enclosed = median_interval(rates)
    rate, interval, confidence = median(rates), None, None
    if enclosed is not None:
        interval, confidence = enclosed[:2], enclosed[2]
    if known is not None and known.value is not None and known.interval is not None:
        rate, confidence = known.value, known.confidence
        interval = known.interval.low, known.interval.high
    identities = tuple(cell.identity for cell in cells)
    return Cost(
        environment=name, cells=identities, price=price, blocks=len(rates), rate=rate, interval=interval,
        confidence=confidence,
    )  # fmt: skip


def _with_dominated(costs: Sequence[Cost], arms: Arms, question: Question) -> tuple[Cost, ...]:
    """Add to each cost the first environment in the same cells that certainly beats it.

    An environment beats another if it costs no more and is faster, or costs less and is as fast, by the verdict on
    throughput. Each pair is judged by itself, exploratory. With more than `_MOST_RIVALS` environments none is judged.
    """
    by_place: dict[tuple[str, ...], list[Cost]] = {}
    for cost in costs:
        by_place.setdefault(cost.cells, []).append(cost)
    pairs = [
        (one, other)
        for alike in by_place.values()
        if len(alike) <= _MOST_RIVALS
        for one, other in permutations(alike, 2)
        if one.price.amount <= other.price.amount
    ]
    pairings = [_pair(arms, question, one, other) for one, other in pairs]
    beaten: dict[int, str] = {}
    for (one, other), judged in zip(pairs, judge_each(pairings), strict=True):
        cheaper, verdict = one.price.amount < other.price.amount, judged.decision.verdict
        if verdict is Verdict.BETTER or (cheaper and verdict in _AS_FAST):
            beaten.setdefault(id(other), one.environment)
    return tuple(replace(cost, dominated_by=beaten.get(id(cost), "")) for cost in costs)


def _pair(arms: Arms, question: Question, one: Cost, other: Cost) -> Pairing:
    """The throughput of one environment against that of another, in the cells of their costs."""
    asked = replace(question, baseline=other.environment, cells=one.cells)
    pairings = pair_cells(arms, asked, one.environment)
    return pairings[0] if len(pairings) == 1 else _at_peak(pairings)
