"""Transactions for the money in a table of other tools' results: its comparisons, divided by the ratio of prices.

A price is a known number. So the logarithm of every ratio is shifted by a constant, and so are the estimate and both
ends of its intervals, which keep their coverage (an interval of a location moves with the data: Lehmann & Romano,
Testing Statistical Hypotheses, 2005, section 5.4). `stats.rule.judge` makes the verdict of them, as for throughput.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pgstrata.compare.one_look import ImportAnswer
from pgstrata.model.answer import Comparison, Interval, Verdict
from pgstrata.model.metrics import METRICS
from pgstrata.model.price import Cost, Price, ValueFinding, Worth
from pgstrata.stats.rule import Estimate, LogInterval, is_decided, judge
from pgstrata.units import Unit


def find_table_worth(answer: ImportAnswer, prices: Mapping[str, Price]) -> Worth:
    """Values against the baseline, and costs of cells if the metric is known to be a number per second.

    With too few values there is an effect without an interval, and the verdict is `insufficient`. Costs have no
    intervals, because it is not known when each value was measured.
    """
    question = answer.question
    names = (question.baseline, *question.environments)
    known = METRICS.get(question.metric)
    counted = known is not None and known.unit is Unit.PER_SECOND
    return Worth(
        costs=tuple(_costs(answer, prices)) if counted else (),
        findings=tuple(_findings(answer, prices)),
        unpriced=tuple(name for name in names if name not in prices),
    )


def _findings(answer: ImportAnswer, prices: Mapping[str, Price]) -> Iterator[ValueFinding]:
    base = prices.get(answer.question.baseline)
    for item in answer.comparisons:
        price = prices.get(item.environment)
        if base is not None and price is not None:
            yield _scale(item, price.amount / base.amount, answer.question.threshold)


def _scale(item: Comparison, ratio: float, threshold: float) -> ValueFinding:
    effect = None if item.effect is None else item.effect / ratio
    interval, inner = _divide(item.interval, ratio), _divide(item.equivalence_interval, ratio)
    estimate = (
        None
        if effect is None
        else Estimate(n=item.blocks, centre=_log(effect), interval=_span(interval), equivalence=_span(inner))
    )
    found = judge(estimate, delta=math.log1p(threshold))
    # an environment that collapsed or is unstable has no single percentage, and so none for the money
    verdict = item.verdict if item.verdict in {Verdict.COLLAPSED, Verdict.UNSTABLE} else found
    return ValueFinding(
        environment=item.environment,
        cells=(item.cell,),
        metric=item.metric,
        price_ratio=ratio,
        verdict=verdict,
        effect=effect,
        interval=inner if interval is None and verdict is Verdict.EQUIVALENT else interval,
        blocks=item.blocks,
        decided_at=item.decided_at if is_decided(verdict) else None,
        repeated_p=None,
    )


def _divide(interval: Interval | None, ratio: float) -> Interval | None:
    return None if interval is None else Interval(low=interval.low / ratio, high=interval.high / ratio)


def _span(interval: Interval | None) -> LogInterval | None:
    return None if interval is None else LogInterval(low=_log(interval.low), high=_log(interval.high))


def _log(ratio: float) -> float:
    """The logarithm of a ratio; minus infinity if the ratio was too small for a float."""
    return math.log(ratio) if ratio > 0 else -math.inf


def _costs(answer: ImportAnswer, prices: Mapping[str, Price]) -> Iterator[Cost]:
    """Costs in each cell, the baseline's first; a mean over several cells has no cost."""
    seen: set[tuple[str, str]] = set()
    for item in answer.comparisons:
        if item.cell not in answer.question.cells:
            continue
        sides = ((answer.question.baseline, item.baseline_value), (item.environment, item.value))
        for name, value in sides:
            if value is None or name not in prices or (name, item.cell) in seen:
                continue
            seen.add((name, item.cell))
            yield Cost(
                environment=name,
                cells=(item.cell,),
                price=prices[name],
                blocks=item.blocks,
                rate=value,
                interval=None,
                confidence=None,
            )
