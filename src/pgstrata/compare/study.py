"""Observations to comparisons: headlines, exploratory cells, secondary metrics; of a study all pairs on request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

from pgstrata.compare.pairing.arms import Arms, sort_observations, sort_runs
from pgstrata.compare.pairing.pairs import over_cells, pair_all, pair_cells
from pgstrata.compare.verdicts.comparisons import adjust, find, to_comparison
from pgstrata.compare.verdicts.doubts import find_doubts
from pgstrata.compare.verdicts.judging import Judged, ask, judge_each, judge_primary
from pgstrata.model.answer import Comparison
from pgstrata.model.metrics import METRICS
from pgstrata.model.observation import Observation
from pgstrata.model.plan import Plan
from pgstrata.model.question import Question
from pgstrata.model.runs import RunRecord

SECONDARY_METRICS: Final = (
    "tps",
    "server_cpu_per_tx",
    "client_cpu_per_tx",
    "latency_p50",
    "latency_p95",
    "latency_p99",
    "checkpoint_trough",
)


def compare_study(
    plan: Plan, runs: Sequence[RunRecord], *, metrics: Sequence[str] = SECONDARY_METRICS
) -> tuple[Comparison, ...]:
    """Compare every environment with the baseline, at the number of blocks that there is.

    With several cells each environment has a headline over all of them (`ALL_CELLS`), and its cells are exploratory;
    the only cell is the headline itself. `metrics` are secondary: by cell, exploratory, and left out where neither
    environment has a measurement of them. `runs` of a comparison are all that were made in both environments, `invalid`
    those of them that failed or are invalid; a collapsed run is neither. Runs need their `COMPARED_SERIES`.

    Args:
        plan: what was to be measured; its experiment fixes the baseline, the primary metric and the threshold.
        runs: what was measured so far, in any order; runs that the plan does not know are ignored.
        metrics: names of secondary metrics.

    Returns:
        By environment: the headline, then by cell the primary metric and the others, in the order of the plan.

    Raises:
        ValueError: a metric is unknown, or a run is there twice.
    """
    names = _metric_names(plan, metrics)
    return _compare_arms([ask(plan, name) for name in names], sort_runs(runs, frozenset(names)))


def compare_observations(questions: Sequence[Question], observations: Iterable[Observation]) -> tuple[Comparison, ...]:
    """As `compare_study`, of observations of any source, by the sequential rule: whoever made them looked as they came.

    Args:
        questions: the one that was declared before the first observation, then those asked beside it.
        observations: in any order, each with a key.
    """
    return _compare_arms(questions, sort_observations(observations))


def _compare_arms(questions: Sequence[Question], arms: Arms) -> tuple[Comparison, ...]:
    first, *others = questions
    primary = judge_primary(first, arms)
    beside = _judge_others(others, arms)
    comparisons: list[Comparison] = []
    for name, head in primary.headlines.items():
        if primary.cells:
            comparisons.append(_compare(head, over=_is_over(head)))
        for cell in first.cells:
            own = primary.cells.get((name, cell), head)
            comparisons.append(_compare(own, over=_is_over(own)))
            over = _is_over(own) and _is_over(head)
            comparisons += [_compare(other, over=over) for other in beside.get((name, cell), ())]
    return adjust(comparisons)


def _metric_names(plan: Plan, metrics: Sequence[str]) -> tuple[str, ...]:
    """The primary metric, then the others once each."""
    names = tuple(dict.fromkeys((plan.experiment.metric, *metrics)))
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise ValueError(f"unknown metric: {', '.join(unknown)}")
    return names


def _judge_others(questions: Sequence[Question], arms: Arms) -> Mapping[tuple[str, str], list[Judged]]:
    """Secondary metrics by environment and cell."""
    found: dict[tuple[str, str], list[Judged]] = {}
    for judged in judge_each(pair_all(arms, questions) if questions else ()):
        found.setdefault((judged.pairing.environment, judged.pairing.cell), []).append(judged)
    return found


def _is_over(judged: Judged) -> bool:
    """Whether nothing is left to be measured for it."""
    return judged.decision.decided or not judged.pairing.is_estimable


def _compare(judged: Judged, *, over: bool, reference: str = "") -> Comparison:
    finding = find(judged, over=over)
    return to_comparison(finding, find_doubts(finding), reference=reference)


def compare_pairs(plan: Plan, runs: Sequence[RunRecord]) -> tuple[Comparison, ...]:
    """Every pair of environments by the primary metric, over all cells or in the only one; exploratory.

    Of each pair the later in the plan is compared with the earlier, the baseline being the first of all: `reference`
    names it. Controls are left out. Environments that were decided early have fewer blocks in common.

    Raises:
        ValueError: a run is there twice.
    """
    experiment = plan.experiment
    arms = sort_runs(runs, frozenset((experiment.metric,)))
    asked = [each for each in experiment.environments if each.control is None]
    asked.sort(key=lambda each: each.name != experiment.baseline)
    question = ask(plan)
    pairings = [
        over_cells(pair_cells(arms, replace(question, baseline=reference.name), environment.name))
        for reference, environment in combinations(asked, 2)
    ]
    return adjust([_compare(each, over=True, reference=each.pairing.base.name) for each in judge_each(pairings)])
