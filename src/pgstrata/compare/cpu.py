"""Differences by CPU: the ratio of server CPU to client CPU per transaction, as a test of "nothing differs".

What a machine does to a run, it does to server and client alike, so that their ratio scatters less than throughput. In
600 recorded runs of one environment against itself the SD of D was 2.5 % instead of 14 where cells only read, and 15
instead of 10 where they wrote (`bench/noise`). The ratio is no measure of size, since a client that waits for a slower
server needs more CPU too. So it finds differences at an error probability of its own, and the sizes are those of
server CPU and throughput. No verdict depends on it, and nothing is measured because of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pgstrata.compare.pairing.arms import Arms, sort_runs
from pgstrata.compare.pairing.pairs import Pairing, over_cells, pair_cells, to_interval, to_ratio
from pgstrata.compare.verdicts.judging import ask, judge_each
from pgstrata.model.answer import ALL_CELLS, Comparison, CpuFinding, Size
from pgstrata.model.experiment import Environment, Experiment, ServerKind
from pgstrata.model.metrics import CLIENT_CPU, SERVER_CPU, TPS
from pgstrata.model.plan import HORIZON, Plan
from pgstrata.model.runs import RunRecord
from pgstrata.stats.boundaries import ALPHA_CPU
from pgstrata.stats.family import DifferenceSeries, decide_family
from pgstrata.stats.rule import Decision, Rule

_METRICS: Final = (SERVER_CPU.name, CLIENT_CPU.name, TPS.name)
_CLIENT_LAYERS: Final = ("cpu.client",)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One environment against the baseline, over the cells that only read, by each metric."""

    environment: Environment
    pairings: Mapping[str, Pairing]
    series: DifferenceSeries


def find_by_cpu(plan: Plan, runs: Sequence[RunRecord], comparisons: Sequence[Comparison]) -> tuple[CpuFinding, ...]:
    """What server and client CPU say of each environment, at the number of blocks that there is.

    Environments share the error probability `ALPHA_CPU`, as headlines share theirs; each control has it for itself.

    Args:
        plan: what was to be measured, by throughput.
        runs: with throughput, server CPU and client CPU; as for `compare_study`.
        comparisons: those of `compare_study`, whose figures are the sizes where it has them.

    Returns:
        By environment in the order of the plan; none without a block in which both CPUs are known.

    Raises:
        ValueError: a run is there twice.
    """
    cells, environments = reading_cells(plan), _comparable(plan.experiment)
    if plan.experiment.metric != TPS.name or not cells or not environments:
        return ()
    arms = sort_runs(runs, frozenset(_METRICS))
    cases = [_make_case(plan, arms, environment, cells) for environment in environments]
    asked = [case for case in cases if case.environment.control is None]
    families = [asked, *([case] for case in cases if case.environment.control is not None)]
    decisions = {
        case.environment.name: decision
        for family in families
        for case, decision in zip(family, _decide(plan, family), strict=True)
    }
    return tuple(
        _find(case, decisions[case.environment.name], plan, comparisons) for case in cases if case.series.blocks
    )


def reading_cells(plan: Plan) -> tuple[str, ...]:
    """Cells in which the ratio helps: nothing is written, and clients ask as fast as they are answered.

    A fixed rate leaves CPUs idle, where waking them up costs either side as it happens.
    """
    cells = plan.experiment.cells
    return tuple(each.identity for each in cells if not each.paced and plan.design(each.identity).only_reads)


def rule_by_cpu(blocks: int, horizon: int = HORIZON) -> Rule:
    """The rule for the ratio over so many blocks; without a threshold nothing is called equal or negligible."""
    return Rule(delta=0.0, alpha=ALPHA_CPU, last=min(max(blocks, 1), horizon), horizon=horizon)


def _decide(plan: Plan, family: Sequence[_Case]) -> tuple[Decision, ...]:
    """Decisions on environments that share the error probability."""
    rule = rule_by_cpu(len(plan.blocks), plan.horizon)
    return decide_family([case.series for case in family], [rule] * len(family)) if family else ()


def _comparable(experiment: Experiment) -> list[Environment]:
    """Environments whose clients do the same as the baseline's, on the machine of their servers."""
    base = experiment.environment(experiment.baseline)
    if not _is_seen(base):
        return []
    others = [each for each in experiment.environments if each.name != base.name]
    return [each for each in others if _is_seen(each) and _client_side(each) == _client_side(base)]


def _is_seen(environment: Environment) -> bool:
    return not environment.apart and environment.server.kind is not ServerKind.DSN


def _client_side(environment: Environment) -> tuple[str | None, ...]:
    return (environment.host.text, environment.connection, *(environment.layers.get(key) for key in _CLIENT_LAYERS))


def _make_case(plan: Plan, arms: Arms, environment: Environment, cells: tuple[str, ...]) -> _Case:
    pairings = {
        name: over_cells(pair_cells(arms, replace(ask(plan, name), cells=cells), environment.name)) for name in _METRICS
    }
    return _Case(
        environment=environment,
        pairings=pairings,
        series=subtract(pairings[SERVER_CPU.name], pairings[CLIENT_CPU.name]),
    )


def subtract(server: Pairing, client: Pairing) -> DifferenceSeries:
    """Differences of the ratio of two metrics, oriented as they are, in the blocks that have both."""
    if not (server.is_estimable and client.is_estimable):
        return DifferenceSeries(blocks=(), d=np.empty(0))
    blocks = tuple(sorted(set(server.blocks) & set(client.blocks)))
    ours, theirs = (each.differences[np.searchsorted(each.blocks, blocks)] for each in (server, client))
    return DifferenceSeries(blocks=blocks, d=ours - theirs)


def _find(case: _Case, decision: Decision, plan: Plan, comparisons: Sequence[Comparison]) -> CpuFinding:
    sign, estimate = SERVER_CPU.sign, decision.estimate
    server, client, throughput = (_size(case.pairings[name], plan, comparisons) for name in _METRICS)
    return CpuFinding(
        environment=case.environment.name,
        cells=case.pairings[TPS.name].question.cells,
        verdict=decision.verdict,
        effect=to_ratio(sign * estimate.centre) if estimate else None,
        interval=to_interval(estimate.interval, sign) if estimate else None,
        level=decision.alpha,
        repeated_p=decision.repeated_p,
        blocks=decision.n,
        decided_at=decision.n if decision.decided else None,
        control=case.environment.control is not None,
        server_cpu=server,
        client_cpu=client,
        throughput=throughput,
    )


def _size(pairing: Pairing, plan: Plan, comparisons: Sequence[Comparison]) -> Size:
    """The size of a difference as the answer shows it; judged alike where the answer compares other cells."""
    partial = pairing.cell == ALL_CELLS and len(pairing.question.cells) < len(plan.experiment.cells)
    key = (pairing.environment, pairing.cell, pairing.metric)
    for known in () if partial else comparisons:
        if (known.environment, known.cell, known.metric) == key:
            return Size(metric=known.metric, verdict=known.verdict, effect=known.effect, interval=known.interval)
    (judged,) = judge_each([pairing])
    found = judged.decision.estimate
    return Size(
        metric=pairing.metric,
        verdict=judged.decision.verdict,
        effect=pairing.ratio(found.centre) if found else None,
        interval=pairing.interval(found.interval) if found else None,
    )
