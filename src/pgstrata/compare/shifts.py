"""The shift function: by how much each percentile of latency moved (Doksum 1974), block by block.

Latency is not a number but a distribution: a change may help the median and hurt the tail. Percentiles are those of
single runs; they are never averaged, and runs are never pooled. Each is judged by the same rule as everything else,
with its own threshold and an interval of its own (pointwise). Intervals for all of them together would need a level of
0.045 / 11 (Bonferroni), at which there is none before the eleventh block, though neighbouring percentiles are nearly
the same data: so they are exploratory, and the reader is told.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgstrata.compare.pairing.arms import sort_runs
from pgstrata.compare.pairing.pairs import Pairing, median, pair_all
from pgstrata.compare.verdicts.judging import ask, judge_each
from pgstrata.model.answer import QuantileShift, Verdict
from pgstrata.model.metrics import LATENCY_QUANTILES
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.stats.rule import Decision


def find_shifts(plan: Plan, runs: Sequence[RunRecord]) -> tuple[QuantileShift, ...]:
    """Every percentile that at least one of two environments has, of each environment against the baseline.

    Args:
        plan: what was to be measured.
        runs: with their measurements of `LATENCY_QUANTILES`.

    Returns:
        By environment and cell in the order of the plan, then from the lowest percentile to the highest.

    Raises:
        ValueError: a run is there twice.
    """
    names = tuple(LATENCY_QUANTILES)
    pairings = pair_all(sort_runs(runs, frozenset(names)), [ask(plan, name) for name in names])
    return tuple(_shift(judged.pairing, judged.decision) for judged in judge_each(pairings))


def _shift(pairing: Pairing, decision: Decision) -> QuantileShift:
    used = decision.n if pairing.is_estimable else len(pairing.blocks)
    found = decision.estimate
    return QuantileShift(
        environment=pairing.environment,
        cell=pairing.cell,
        metric=pairing.metric,
        quantile=LATENCY_QUANTILES[pairing.metric],
        threshold=pairing.question.threshold,
        verdict=Verdict.COLLAPSED if pairing.collapsed_in else decision.verdict,
        effect=pairing.ratio(found.centre) if found else None,
        interval=pairing.interval(found.interval) if found else None,
        level=decision.alpha,
        blocks=used,
        value=median(pairing.values[:used]),
        baseline_value=median(pairing.base_values[:used]),
    )
