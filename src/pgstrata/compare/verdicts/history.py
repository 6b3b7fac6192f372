"""How a verdict came about: the difference of each block, and the interval after each look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from pgstrata.compare.pairing.arms import sort_runs
from pgstrata.compare.pairing.pairs import Pairing
from pgstrata.compare.verdicts.judging import ask, judge_primary
from pgstrata.model.answer import Answer, Comparison, Interval, Verdict
from pgstrata.stats.boundaries import GRID, Boundaries, boundaries_of
from pgstrata.stats.rule import Estimate, LogInterval, estimate_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was known after `n` blocks: the last one's own ratio, the estimate, both intervals (None while too few).

    `counted` is False for blocks that came after the verdict and were not looked at.
    """

    n: int
    block: int
    ratio: float
    effect: float
    interval: Interval | None
    equivalence: Interval | None
    counted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A comparison with all its looks in order."""

    comparison: Comparison
    looks: tuple[Look, ...]


def tell_stories(answer: Answer, comparisons: Sequence[Comparison]) -> tuple[Story, ...]:
    """The looks of those of the comparisons, with the baseline by the primary metric, that have blocks.

    Intervals are those of the level that the verdict was reached at; the last one is the comparison's own.
    """
    plan = answer.study.plan
    judged = judge_primary(ask(plan), sort_runs(answer.study.runs, frozenset({plan.experiment.metric})))
    pairings = {
        (each.pairing.environment, each.pairing.cell): each.pairing
        for each in (*judged.headlines.values(), *judged.cells.values())
    }
    told = [
        (comparison, pairings[key])
        for comparison in comparisons
        for key in ((comparison.environment, comparison.cell),)
        if key in pairings and pairings[key].sample.size
    ]
    return tuple(
        Story(comparison=comparison, looks=_looks(comparison, pairing, estimates))
        for (comparison, pairing), estimates in zip(told, _estimate_all(told, boundaries_of(plan.horizon)), strict=True)
    )


def _estimate_all(told: Sequence[tuple[Comparison, Pairing]], boundaries: Boundaries) -> list[tuple[Estimate, ...]]:
    """The estimates after each block, all comparisons together: they are computed by number of blocks."""
    samples = [pairing.sample[: boundaries.last] for _, pairing in told]
    levels = [boundaries.at(max(comparison.level, GRID[-1])) for comparison, _ in told]
    looks = [
        (sample[:n], (level.critical(n), boundaries.equivalence.critical(n)))
        for sample, level in zip(samples, levels, strict=True)
        for n in range(1, len(sample) + 1)
    ]
    found = iter(estimate_at([sample for sample, _ in looks], [criticals for _, criticals in looks]))
    return [tuple(islice(found, len(sample))) for sample in samples]


def _looks(comparison: Comparison, pairing: Pairing, estimates: Sequence[Estimate]) -> tuple[Look, ...]:
    last = comparison.decided_at or comparison.blocks
    # what falls apart into groups has no percentage at any look
    silent = comparison.verdict is Verdict.UNSTABLE

    def early(estimate: Estimate, span: LogInterval | None) -> Interval | None:
        return None if silent or estimate.n > last else pairing.interval(span)

    return tuple(
        Look(
            n=estimate.n,
            block=block,
            ratio=pairing.ratio(float(d)),
            effect=pairing.ratio(estimate.centre),
            interval=comparison.interval if estimate.n == last else early(estimate, estimate.interval),
            equivalence=(
                comparison.equivalence_interval if estimate.n == last else early(estimate, estimate.equivalence)
            ),
            counted=estimate.n <= last,
        )
        for estimate, block, d in zip(estimates, pairing.blocks, pairing.sample, strict=False)
    )
