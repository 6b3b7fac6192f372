"""Statements of cells with a profile: by how much the mean latency of each moved, block by block.

The statements of an environment in a cell are one family: they share the error probability, as headlines do
(`stats.family`), so that each verdict holds however many of them there are.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pgstrata.compare.pairing.arms import sort_observations
from pgstrata.compare.pairing.pairs import median, pair_metric
from pgstrata.compare.verdicts.judging import Judged, ask, judge_family
from pgstrata.model.answer import StatementShift, Verdict
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord, name_of_statement
from pgstrata.sources.runs import observe_runs

LEAST_SECONDS: Final = 10e-6
"""Drivers count whole microseconds: of less than this a difference would be made of rounding."""
_METRIC: Final = "latency_mean"


@dataclass(frozen=True, slots=True)
class _Key:
    """A statement; one that stands in the scripts several times is told apart by its number among them, from 0."""

    text: str
    number: int

    @property
    def metric(self) -> str:
        return f"{self.number} {self.text}"


def find_statement_shifts(plan: Plan, runs: Sequence[RunRecord]) -> tuple[StatementShift, ...]:
    """Every statement that takes long enough, of each environment against the baseline.

    Args:
        plan: what was to be measured; the threshold is that of `latency_mean`.
        runs: with their statements, in any order.

    Returns:
        By cell, then by environment, in the order of the scripts; nothing of cells without a profile.

    Raises:
        ValueError: a run is there twice.
    """
    return tuple(_to_shift(key, judged) for key, judged in _judge_all(plan, runs))


def open_statements(plan: Plan, runs: Sequence[RunRecord]) -> frozenset[tuple[str, str]]:
    """Environments and cells in which a statement with a name is not decided: by its name its author asks for it."""
    asked = _judge_all(plan, runs)
    return frozenset(
        (judged.pairing.environment, judged.pairing.cell)
        for key, judged in asked
        if name_of_statement(key.text) and judged.pairing.is_estimable and not judged.decision.decided
    )


def latencies_of(run: RunRecord) -> Mapping[tuple[str, int], float]:
    """Mean latency in seconds by the text of the statement and its number among those of the same text."""
    seen: dict[str, int] = defaultdict(int)
    found = {}
    for item in run.statements:
        if math.isfinite(item.seconds):
            found[item.text, seen[item.text]] = item.seconds
        seen[item.text] += 1
    return found


def _judge_all(plan: Plan, runs: Sequence[RunRecord]) -> Iterator[tuple[_Key, Judged]]:
    for cell in plan.experiment.cells:
        own = [run for run in runs if run.cell == cell.identity]
        if any(run.statements for run in own):
            yield from _judge_cell(plan, own, cell.identity)


def _judge_cell(plan: Plan, runs: Sequence[RunRecord], cell: str) -> Iterator[tuple[_Key, Judged]]:
    question = replace(ask(plan, _METRIC), floors={}, primary=False)
    latencies = [{_Key(*key): seconds for key, seconds in latencies_of(run).items()} for run in runs]
    observed = [
        replace(each, measurements={**each.measurements, **{key.metric: seconds for key, seconds in known.items()}})
        for each, known in zip(observe_runs(runs, frozenset()), latencies, strict=True)
    ]
    arms = sort_observations(observed)
    keys = dict.fromkeys(key for known in latencies for key in known)
    keys = {key: None for key in keys if _is_long(key, runs, latencies)}
    for environment in question.environments:
        pairs = [pair_metric(arms, replace(question, metric=key.metric), environment, cell) for key in keys]
        yield from zip(keys, judge_family(pairs), strict=True)


def _is_long(key: _Key, runs: Sequence[RunRecord], latencies: Sequence[Mapping[_Key, float]]) -> bool:
    """Whether it takes long enough in every environment that has it."""
    found: dict[str, list[float]] = defaultdict(list)
    for run, known in zip(runs, latencies, strict=True):
        if key in known:
            found[run.environment].append(known[key])
    return all(statistics.median(each) >= LEAST_SECONDS for each in found.values())


def _to_shift(key: _Key, judged: Judged) -> StatementShift:
    pairing, decision = judged.pairing, judged.decision
    estimate = decision.estimate if pairing.is_estimable else None
    used = slice(decision.n)
    return StatementShift(
        environment=pairing.environment,
        cell=pairing.cell,
        statement=key.text,
        number=key.number,
        metric=_METRIC,
        verdict=Verdict.COLLAPSED if pairing.collapsed_in else decision.verdict,
        effect=pairing.ratio(estimate.centre) if estimate else None,
        interval=pairing.interval(estimate.interval) if estimate else None,
        level=decision.alpha,
        blocks=decision.n,
        decided_at=decision.n if decision.decided else None,
        value=median(pairing.values[used]),
        baseline_value=median(pairing.base_values[used]),
    )
