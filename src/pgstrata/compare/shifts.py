"""The shift function: by how much each percentile of latency moved (Doksum 1974), block by block.

Latency is not a number but a distribution: a change may help the median and hurt the tail. Percentiles are those of
single runs; they are never averaged, and runs are never pooled. All percentiles of an environment in a cell have one
simultaneous band (`stats.bands`): a difference anywhere along it is one, however many percentiles were looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pgstrata.compare.pairing.arms import sort_runs
from pgstrata.compare.pairing.pairs import Pairing, median, pair_all
from pgstrata.compare.verdicts.judging import ask, make_rule
from pgstrata.model.answer import QuantileShift, Verdict
from pgstrata.model.metrics import LATENCY_QUANTILES
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.stats.bands import estimate_band
from pgstrata.stats.rule import judge


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
    groups: dict[tuple[str, str], list[Pairing]] = {}
    for pairing in pair_all(sort_runs(runs, frozenset(names)), [ask(plan, name) for name in names]):
        groups.setdefault((pairing.environment, pairing.cell), []).append(pairing)
    return tuple(shift for pairings in groups.values() for shift in _shift_all(pairings))


def _shift_all(pairings: Sequence[Pairing]) -> Iterator[QuantileShift]:
    """The percentiles of one environment in one cell, at all blocks that there are."""
    last = make_rule(pairings[0].question).last
    band = estimate_band([pairing.sample[:last] for pairing in pairings], horizon=pairings[0].question.horizon)
    for pairing, found in zip(pairings, band.estimates, strict=True):
        used = min(last, len(pairing.blocks))
        verdict = judge(found, delta=math.log1p(pairing.question.threshold))
        yield QuantileShift(
            environment=pairing.environment,
            cell=pairing.cell,
            metric=pairing.metric,
            quantile=LATENCY_QUANTILES[pairing.metric],
            threshold=pairing.question.threshold,
            verdict=Verdict.COLLAPSED if pairing.collapsed_in else verdict,
            effect=pairing.ratio(found.centre) if found else None,
            interval=pairing.interval(found.interval) if found else None,
            level=band.level,
            blocks=used,
            value=median(pairing.values[:used]),
            baseline_value=median(pairing.base_values[:used]),
        )
