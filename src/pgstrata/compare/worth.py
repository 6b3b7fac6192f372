"""What throughput costs: transactions for the money, against the baseline and for each environment alone.

A price is a known number, so that the interval of a ratio of throughputs, times the ratio of prices, is that of the
ratio of their quotients, and the rule that judges throughput judges the shifted differences. What is claimed of a price
is thus as sure as what is claimed of the throughput.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from pgstrata.compare.by_load import find_curves
from pgstrata.compare.pairing.arms import Arms, sort_runs
from pgstrata.compare.pairing.pairs import Pairing, pair_cells
from pgstrata.compare.sustained import find_sustained_rates
from pgstrata.compare.verdicts.judging import ask, judge_each
from pgstrata.model.answer import SustainedRate
from pgstrata.model.experiment import Cell
from pgstrata.model.metrics import SUSTAINED_RATE, TPS
from pgstrata.model.price import PEAK, Cost, Price, ValueFinding, Worth
from pgstrata.model.question import Question
from pgstrata.model.study import Study
from pgstrata.sources.runs import may_enter
from pgstrata.stats.medians import median_interval

_FEWEST_CLIENTS = 2


def find_worth(study: Study) -> Worth | None:
    """Costs and values by the prices of a study's experiment; None where it has none.

    Throughput is compared, or with an objective the highest rate within it. Of a curve over clients the peak is taken
    beside single cells: in each block the best cell of either environment. The best of several noisy values is too
    high, in both arms alike, so that the ratio is fair; costs at a peak are a little too low.

    Raises:
        ValueError: a run is there twice.
    """
    experiment = study.plan.experiment
    prices = experiment.prices
    if not prices:
        return None
    metric = SUSTAINED_RATE.name if experiment.metric == SUSTAINED_RATE.name else TPS.name
    question = ask(study.plan, metric)
    arms = sort_runs(study.runs, frozenset((metric,)))
    costs = _with_dominated(tuple(_costs(study, question, prices)))
    asked = [each for each in experiment.environments if each.control is None]
    return Worth(
        costs=costs,
        findings=tuple(_findings(study, arms, question, prices)),
        unpriced=tuple(each.name for each in asked if each.name not in prices),
    )


def _places(study: Study) -> Sequence[tuple[Cell, ...]]:
    """Single cells, then curves over clients with their peak."""
    experiment = study.plan.experiment
    return (*((cell,) for cell in experiment.cells), *find_curves(experiment, _FEWEST_CLIENTS))


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
    """In each block that has all cells, the best of either environment; nothing where one of them collapsed."""
    first = pairings[0]
    blocks = sorted(set.intersection(*(set(each.blocks) for each in pairings)))
    if not all(each.is_estimable for each in pairings):
        blocks = []
    places = [[each.blocks.index(block) for block in blocks] for each in pairings]
    best, base = (
        np.max([getattr(each, side)[at] for each, at in zip(pairings, places, strict=True)], axis=0)
        if blocks
        else np.empty(0)
        for side in ("values", "base_values")
    )
    return replace(
        first,
        cell=PEAK,
        blocks=tuple(blocks),
        values=best,
        base_values=base,
        differences=np.log(best) - np.log(base),
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
    """One for each block that has all the cells: the best of them."""
    found: dict[int, list[float]] = {}
    names = {cell.identity for cell in cells}
    for run in study.runs:
        if run.environment == environment and run.cell in names and may_enter(run):
            value = run.value(metric)
            if value is not None and 0 < value < math.inf:
                found.setdefault(run.block, []).append(value)
    return [max(values) for values in found.values() if len(values) == len(names)]


def _cost(
    name: str, cells: Sequence[Cell], price: Price, rates: Sequence[float], known: SustainedRate | None
) -> Cost | None:
    """By the median of the rates; within an objective by the rate at which the runs together keep it."""
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


def _with_dominated(costs: Sequence[Cost]) -> tuple[Cost, ...]:
    """Each with the first environment in the same cells that costs no more and does no less."""

    def better(one: Cost, other: Cost) -> bool:
        cheaper, faster = one.price.amount <= other.price.amount, one.rate >= other.rate
        return cheaper and faster and (one.price.amount, one.rate) != (other.price.amount, other.rate)

    return tuple(
        replace(
            cost,
            dominated_by=next((one.environment for one in costs if one.cells == cost.cells and better(one, cost)), ""),
        )
        for cost in costs
    )
