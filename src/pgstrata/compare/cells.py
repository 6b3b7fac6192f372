"""Each cell judged alone, at the number of blocks that there is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from pgstrata.compare.doubts import find_doubts
from pgstrata.compare.pairs import Pairing, median, pair_metrics, sort_runs
from pgstrata.model.answer import Comparison, Verdict
from pgstrata.model.metrics import METRICS
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.stats.boundaries import C_DIFF
from pgstrata.stats.rule import Estimate, estimate_many, judge

SECONDARY_METRICS: Final = (
    "tps",
    "server_cpu_per_tx",
    "client_cpu_per_tx",
    "latency_p50",
    "latency_p95",
    "latency_p99",
)


def compare_study(
    plan: Plan, runs: Sequence[RunRecord], *, metrics: Sequence[str] = SECONDARY_METRICS
) -> tuple[Comparison, ...]:
    """Compare every environment with the baseline, in every cell, at the number of blocks that there is.

    Each cell is judged alone. The primary metric comes first; `metrics` are secondary and exploratory, judged by the
    same threshold, and left out where neither arm has a measurement of them. A block is a pair if both arms have a
    completed run that is not invalid, with a finite value above zero. `runs` of a comparison are all that were made in
    both arms, `invalid` those of them that failed or are invalid; a collapsed run is neither.

    Args:
        plan: what was to be measured; its experiment fixes the baseline, the primary metric and the threshold.
        runs: what was measured so far, in any order; runs that the plan does not know are ignored.
        metrics: names of secondary metrics.

    Returns:
        Comparisons by environment, cell and metric, in the order of the plan.

    Raises:
        ValueError: a metric is unknown, a run is there twice, or there are more pairs than the boundaries allow.
    """
    experiment = plan.experiment
    names = tuple(dict.fromkeys((experiment.metric, *metrics)))
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise ValueError(f"unknown metric: {', '.join(unknown)}")
    arms = sort_runs(runs, frozenset(names))
    pairings = [
        pairing
        for environment in experiment.environments
        if environment.name != experiment.baseline
        for cell in experiment.cells
        for pairing in pair_metrics(arms, environment, experiment.baseline, cell.identity, names)
    ]
    paired = [place for place, pairing in enumerate(pairings) if pairing.values.size]
    estimates = dict(
        zip(paired, estimate_many([pairings[place].differences for place in paired]), strict=True),
    )
    return tuple(_compare(plan, pairing, estimates.get(place)) for place, pairing in enumerate(pairings))


def _compare(plan: Plan, pairing: Pairing, estimate: Estimate | None) -> Comparison:
    arm, base = pairing.arm, pairing.base
    # Of an environment that collapsed only the luckier runs are left: no honest estimate comes from those.
    shown = None if arm.has_collapsed or base.has_collapsed else estimate
    collapsed = arm.has_collapsed and not base.has_collapsed
    verdict = Verdict.COLLAPSED if collapsed else judge(shown, delta=math.log1p(plan.experiment.threshold))
    return Comparison(
        environment=pairing.environment.name,
        cell=pairing.cell,
        metric=pairing.metric,
        verdict=verdict,
        effect=pairing.ratio(shown.centre) if shown else None,
        interval=pairing.interval(shown.interval) if shown else None,
        equivalence_interval=pairing.interval(shown.equivalence) if shown else None,
        confidence=1 - C_DIFF.alpha,
        blocks=pairing.values.size,
        planned_blocks=len(plan.blocks),
        runs=arm.made + base.made,
        invalid=arm.invalid + base.invalid,
        value=median(pairing.values),
        baseline_value=median(pairing.base_values),
        exploratory=pairing.metric != plan.experiment.metric,
        control=pairing.environment.control is not None,
        warnings=find_doubts(plan, pairing, shown, verdict),
    )
