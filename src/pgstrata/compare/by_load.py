"""Differences that depend on the number of clients, and environments that slow down or collapse as clients are added.

A headline over all numbers of clients averages such findings away. All of them are exploratory and are looked at once,
at the blocks that there are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from pgstrata.compare.pairing.arms import Arms, find_arm, sort_runs
from pgstrata.compare.pairing.pairs import Pairing, over_cells, pair_metric, to_interval, to_ratio
from pgstrata.compare.verdicts.judging import ask, judge_each, make_rule
from pgstrata.model.answer import LoadDrop, LoadFinding, LoadRange, Verdict
from pgstrata.model.experiment import Cell, Experiment
from pgstrata.model.plan import Plan
from pgstrata.model.question import Question
from pgstrata.model.runs import RunRecord
from pgstrata.stats.ordered import LEVEL, find_steps
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.rule import decide_once

FEWEST_POINTS: Final = 3
# Permutations: enough for a level of 5 %, and a study may have many curves.
_DRAWS: Final = 999


def find_curves(
    experiment: Experiment, fewest: int = FEWEST_POINTS, axis: str = "clients"
) -> tuple[tuple[Cell, ...], ...]:
    """Curves over clients or scale: cells that differ in nothing else (but threads), the lowest level first.

    With several numbers of threads at the same level there is a curve for each.

    Args:
        experiment: its cells.
        fewest: points below which cells make no curve.
        axis: "clients" or "scale".
    """
    groups: list[list[Cell]] = []
    for cell in experiment.cells:
        alike = [group for group in groups if _continues(group, cell, axis)]
        same = [group for group in alike if group[0].threads == cell.threads]
        if alike:
            (same or alike)[0].append(cell)
        else:
            groups.append([cell])
    curves = (tuple(sorted(group, key=lambda cell: getattr(cell, axis))) for group in groups)
    return tuple(curve for curve in curves if len(curve) >= fewest)


def _continues(curve: Sequence[Cell], cell: Cell, axis: str) -> bool:
    """Whether a cell adds a level to a curve; a level that is there already, with other threads, starts another one."""
    level = getattr(cell, axis)
    return _without(curve[0], axis) == _without(cell, axis) and all(getattr(each, axis) != level for each in curve)


def _without(cell: Cell, axis: str) -> Cell:
    return replace(cell, scale=1, label="") if axis == "scale" else replace(cell, clients=1, threads=1, label="")


def find_by_load(plan: Plan, runs: Sequence[RunRecord]) -> tuple[LoadFinding, ...]:
    """A finding for each environment along each curve of at least three numbers of clients, the baseline first.

    Steps of the difference come from `stats.ordered.find_steps`: if nothing depends on the load, the differences of a
    block are exchangeable within it. Each range between steps is judged as a comparison over its cells. A drop is
    tested between neighbouring numbers of clients of one environment; all neighbours of a curve share the level
    (Bonferroni).

    Args:
        plan: fixes baseline, primary metric and threshold.
        runs: all runs so far, in any order.

    Raises:
        ValueError: a run is there twice.
    """
    experiment, question = plan.experiment, ask(plan)
    arms = sort_runs(runs, frozenset((question.metric,)))
    baseline = experiment.environment(experiment.baseline)
    others = [each for each in experiment.environments if each.name != baseline.name and each.control is None]
    return tuple(
        _find(question, arms, each.name, curve) for curve in find_curves(experiment) for each in (baseline, *others)
    )


def _find(question: Question, arms: Arms, environment: str, curve: Sequence[Cell]) -> LoadFinding:
    collapsed = [cell.clients for cell in curve if find_arm(arms, environment, cell.identity).has_collapsed]
    finding = LoadFinding(
        environment=environment,
        cells=tuple(cell.identity for cell in curve),
        clients=tuple(cell.clients for cell in curve),
        metric=question.metric,
        collapsed_from=min(collapsed, default=None),
        drops=tuple(_drops(question, arms, environment, curve)),
    )
    if environment == question.baseline:
        return finding
    pairs = [(cell, pair_metric(arms, question, environment, cell.identity)) for cell in curve]
    usable = [(cell, pairing) for cell, pairing in pairs if pairing.sample.size]
    if len(usable) < FEWEST_POINTS:
        return finding
    found = find_steps(_matrix([pairing for _, pairing in usable]), draws=_DRAWS)
    edges = [0, *(step.after for step in found.steps), len(usable)]
    return replace(
        finding,
        ranges=tuple(_judge_range(usable[first:last]) for first, last in itertools.pairwise(edges)),
        p=found.p,
        reachable=found.smallest_p <= LEVEL,
        blocks=max(len(pairing.blocks) for _, pairing in usable),
    )


def _matrix(pairings: Sequence[Pairing]) -> FloatArray:
    """Differences, shape (blocks, loads), NaN where a block lacks a load; blocks with at least two."""
    blocks = sorted({block for pairing in pairings for block in pairing.blocks})
    columns = [dict(zip(pairing.blocks, pairing.differences.tolist(), strict=True)) for pairing in pairings]
    rows = np.array([[column.get(block, math.nan) for column in columns] for block in blocks], dtype=np.float64)
    several = rows[np.isfinite(rows).sum(axis=1) > 1]
    return several if several.size else rows


def _judge_range(cells: Sequence[tuple[Cell, Pairing]]) -> LoadRange:
    (judged,) = judge_each([over_cells([pairing for _, pairing in cells])])
    estimate = judged.decision.estimate
    return LoadRange(
        first=cells[0][0].clients,
        last=cells[-1][0].clients,
        verdict=judged.decision.verdict,
        effect=judged.pairing.ratio(estimate.centre) if estimate else None,
        interval=judged.pairing.interval(estimate.interval) if estimate else None,
        blocks=judged.decision.n,
    )


def _drops(question: Question, arms: Arms, environment: str, curve: Sequence[Cell]) -> Iterator[LoadDrop]:
    """Neighbouring numbers of clients between which the environment's own figures get worse by the threshold."""
    rule = make_rule(question)
    rule = replace(rule, alpha=rule.alpha / (len(curve) - 1))
    levels = [find_arm(arms, environment, cell.identity).levels(question.metric) for cell in curve]
    samples = [question.sign * _changes(*neighbours) for neighbours in itertools.pairwise(levels)]
    decisions = decide_once(samples, [rule] * len(samples))
    for (fewer, more), decision in zip(itertools.pairwise(curve), decisions, strict=True):
        if decision.verdict is Verdict.WORSE and decision.estimate is not None:
            yield LoadDrop(
                fewer=fewer.clients,
                more=more.clients,
                effect=to_ratio(question.sign * decision.estimate.centre),
                interval=to_interval(decision.estimate.interval, question.sign),
                blocks=decision.n,
            )


def _changes(before: Mapping[int, float], after: Mapping[int, float]) -> FloatArray:
    """Log differences in the blocks that have both, in their order."""
    blocks = sorted(before.keys() & after.keys())
    d = np.array([math.log(after[block]) - math.log(before[block]) for block in blocks], dtype=np.float64)
    return d[np.isfinite(d)]
