"""The rule on a table of results: one look at all there is, because nobody looked while they were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pgstrata.compare.foreign.answer import Finding, ForeignAnswer, ForeignQuestion
from pgstrata.compare.foreign.arms import (
    Heaps,
    Pairs,
    heap_values,
    middle_value,
    pair_blocks,
    sort_by_block,
    sort_by_place,
)
from pgstrata.compare.foreign.doubts import doubt_heaps, doubt_pairs, doubt_table
from pgstrata.compare.foreign.steps import find_table_axes
from pgstrata.compare.foreign.table import Table
from pgstrata.errors import UsageError
from pgstrata.model.answer import ALL_CELLS, Comparison, Interval, Verdict
from pgstrata.model.metrics import METRICS
from pgstrata.stats.anomaly import judge_differences
from pgstrata.stats.boundaries import C_DIFF, GRID
from pgstrata.stats.family import benjamini_hochberg, step_down
from pgstrata.stats.rule import Decision, LogInterval, Rule, decide_once
from pgstrata.stats.unpaired import decide_unpaired
from pgstrata.units import Direction

MOST_HEADLINES: Final = round(C_DIFF.alpha / GRID[-1])
"""So many can share the error probability: each gets the smallest level there is."""

_MOST_NAMED: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """What all comparisons of a table have in common; `blocks` are those of the table."""

    table: Table
    direction: Direction
    threshold: float
    baseline: str
    environments: tuple[str, ...]
    cells: tuple[str, ...]
    blocks: tuple[str, ...]

    @property
    def sign(self) -> float:
        """Turns ln(value / baseline value) so that above zero is better."""
        return self.direction.sign

    def rules(self, number: int, level: float) -> list[Rule]:
        """The rule of this level, so many times."""
        return [Rule(delta=math.log1p(self.threshold), alpha=level)] * number


def decide_table(table: Table, question: ForeignQuestion) -> ForeignAnswer:
    """Every environment of a table against the baseline.

    With blocks: differences within blocks, the headline of an environment over the geometric mean of all cells, the
    cells behind it exploratory. Without blocks the unpaired form, each cell a headline of its own, because nothing ties
    a run in one cell to a run in another. Headlines share the error probability (`step_down`). Steps along ordered
    environments are told beside them and change none of them.

    Raises:
        UsageError: there is no such baseline, nothing to compare with it, too much of it, too few levels of an ordered
            axis, or the direction asked for contradicts the metric's own.
    """
    terms = _make_terms(table, question)
    names = tuple(dict.fromkeys(row.environment for row in table.rows))
    axes = (
        find_table_axes(
            table.rows, metric=table.metric, cells=terms.cells, paired=bool(terms.blocks), source=table.source
        )
        if question.ordered
        else ()
    )
    headlines, explored = _decide_paired(terms) if terms.blocks else (_decide_unpaired(terms), ())
    most_blocks = max(finding.comparison.blocks for finding in headlines)
    return ForeignAnswer(
        source=table.source,
        metric=table.metric,
        direction=terms.direction,
        threshold=terms.threshold,
        baseline=terms.baseline,
        baseline_named=question.baseline is not None,
        environments=terms.environments,
        cells=terms.cells if "cell" in table.columns else (),
        paired=bool(terms.blocks),
        blocks=len(terms.blocks),
        headlines=headlines,
        explored=explored,
        warnings=doubt_table(
            metric=table.metric, direction=terms.direction, ignored=table.ignored, paired=bool(terms.blocks),
            most_blocks=most_blocks, ordered=names if question.ordered else (),
        ),
        levels=names if question.ordered else (),
        axes=axes,
    )  # fmt: skip


def _make_terms(table: Table, question: ForeignQuestion) -> _Terms:
    names = tuple(dict.fromkeys(row.environment for row in table.rows))
    if question.baseline is not None and question.baseline not in names:
        known = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
        raise UsageError(f"{table.source} has no environment {question.baseline!r}", where="--baseline",
                         remedy=f"choose one of {known}")  # fmt: skip
    if len(names) == 1:
        raise UsageError(f"{names[0]} is the only environment: there is nothing to compare it with",
                         where=table.source, remedy="add the rows of another one")  # fmt: skip
    baseline = question.baseline or names[0]
    terms = _Terms(
        table=table,
        direction=_choose_direction(table.metric, lower_is_better=question.lower_is_better),
        threshold=question.threshold,
        baseline=baseline,
        environments=tuple(name for name in names if name != baseline),
        cells=tuple(dict.fromkeys(row.cell for row in table.rows)),
        blocks=tuple(dict.fromkeys(row.block for row in table.rows)) if "block" in table.columns else (),
    )
    _refuse_many(terms)
    return terms


def _choose_direction(metric: str, *, lower_is_better: bool) -> Direction:
    """That of a known metric; of others higher values are better unless the question says otherwise."""
    known = METRICS.get(metric)
    if known is None:
        return Direction.LOWER if lower_is_better else Direction.HIGHER
    if lower_is_better and known.direction is Direction.HIGHER:
        raise UsageError(f"{metric} is {known.title}, and higher values of it are better", where="--lower-is-better",
                         remedy="leave the option out, or rename the metric if it is another quantity")  # fmt: skip
    return known.direction


def _refuse_many(terms: _Terms) -> None:
    number = len(terms.environments) * (1 if terms.blocks else len(terms.cells))
    if number > MOST_HEADLINES:
        remedy = "split the file: fewer environments in each"
        if not terms.blocks:
            remedy = "number the blocks, so that all cells of an environment are one headline, or split the file"
        raise UsageError(
            f"{number:,} headlines are too many: at most {MOST_HEADLINES} can share an error probability of "
            f"{C_DIFF.alpha * 100:g} %", where=terms.table.source, remedy=remedy,
        )  # fmt: skip


# ------------------------------------------------------------------------------------------------ with blocks


def _decide_paired(terms: _Terms) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Headlines over all cells, and where there are several each of these, exploratory."""
    places = sort_by_block(terms.table.rows)

    def pair(environment: str, cells: tuple[str, ...]) -> Pairs:
        return pair_blocks(places, environment, terms.baseline, cells, terms.blocks)

    whole = [pair(environment, terms.cells) for environment in terms.environments]
    samples = [pairs.differences(terms.sign) for pairs in whole]

    def decide(chosen: Sequence[int], level: float) -> Sequence[Decision]:
        return decide_once([samples[place] for place in chosen], terms.rules(len(chosen), level))

    headlines = _find(terms, whole, step_down(len(whole), decide), exploratory=False)
    if len(terms.cells) == 1:
        return headlines, ()
    single = [pair(environment, (cell,)) for environment in terms.environments for cell in terms.cells]
    rules = terms.rules(len(single), C_DIFF.alpha)
    decisions = decide_once([pairs.differences(terms.sign) for pairs in single], rules)
    return headlines, _find(terms, single, decisions, exploratory=True)


def _find(
    terms: _Terms, pairings: Sequence[Pairs], decisions: Sequence[Decision], *, exploratory: bool
) -> tuple[Finding, ...]:
    adjusted = benjamini_hochberg([decision.repeated_p for decision in decisions]) if exploratory else ()
    findings = []
    for place, (pairs, decision) in enumerate(zip(pairings, decisions, strict=True)):
        one_cell = exploratory or len(terms.cells) == 1
        d = pairs.differences(terms.sign)
        comparison = replace(
            _compare(terms, pairs.environment, pairs.cells[0] if one_cell else "", decision),
            blocks=len(pairs.blocks),
            runs=pairs.rows,
            value=middle_value(pairs.values),
            baseline_value=middle_value(pairs.base_values),
            exploratory=exploratory,
            adjusted_p=adjusted[place] if exploratory else None,
        )
        instability = judge_differences(d) if decision.verdict is not Verdict.INSUFFICIENT else None
        if instability is not None:
            comparison = replace(
                comparison, verdict=Verdict.UNSTABLE, effect=None, interval=None, equivalence_interval=None,
                decided_at=None,
            )  # fmt: skip
        comparison = replace(comparison, warnings=doubt_pairs(pairs, comparison, d, instability))
        findings.append(Finding(comparison=comparison, values=d.size, base_values=d.size))
    return tuple(findings)


# ------------------------------------------------------------------------------------------------ without blocks


def _decide_unpaired(terms: _Terms) -> tuple[Finding, ...]:
    """Every environment in every cell, all of them headlines."""
    places = sort_by_place(terms.table.rows)
    heaps = [
        heap_values(places, environment, terms.baseline, cell)
        for environment in terms.environments
        for cell in terms.cells
    ]
    higher = terms.direction is Direction.HIGHER

    def decide(chosen: Sequence[int], level: float) -> list[Decision]:
        return [
            decide_unpaired(heaps[place].values, heaps[place].base_values, rule=rule, higher_is_better=higher)
            for place, rule in zip(chosen, terms.rules(len(chosen), level), strict=True)
        ]

    decisions = step_down(len(heaps), decide)
    return tuple(_find_unpaired(terms, heap, decision) for heap, decision in zip(heaps, decisions, strict=True))


def _find_unpaired(terms: _Terms, heaps: Heaps, decision: Decision) -> Finding:
    comparison = replace(
        _compare(terms, heaps.environment, heaps.cell, decision),
        runs=heaps.values.size + heaps.base_values.size,
        value=middle_value(heaps.values[:, None]),
        baseline_value=middle_value(heaps.base_values[:, None]),
    )
    comparison = replace(comparison, warnings=doubt_heaps(heaps, comparison))
    return Finding(comparison=comparison, values=heaps.values.size, base_values=heaps.base_values.size)


# ------------------------------------------------------------------------------------------------ comparisons


def _compare(terms: _Terms, environment: str, cell: str, decision: Decision) -> Comparison:
    """What follows from the decision alone; the rest is filled in by whoever knows the arms."""
    estimate = decision.estimate
    return Comparison(
        environment=environment,
        cell=cell or ALL_CELLS,
        metric=terms.table.metric,
        verdict=decision.verdict,
        effect=_ratio(terms, estimate.centre) if estimate else None,
        interval=_interval(terms, estimate.interval) if estimate else None,
        equivalence_interval=_interval(terms, estimate.equivalence) if estimate else None,
        confidence=1 - decision.alpha,
        blocks=0,
        planned_blocks=len(terms.blocks),
        runs=0,
        invalid=0,
        value=None,
        baseline_value=None,
        exploratory=False,
        control=False,
        lane=decision.lane,
        decided_at=decision.n if decision.decided else None,
        repeated_p=decision.repeated_p,
        level=decision.alpha,
    )


def _ratio(terms: _Terms, d: float) -> float:
    """An oriented log difference as value / baseline value; infinite where no float can hold it."""
    try:
        return math.exp(terms.sign * d)
    except OverflowError:
        return math.inf


def _interval(terms: _Terms, span: LogInterval | None) -> Interval | None:
    if span is None:
        return None
    low, high = sorted((_ratio(terms, span.low), _ratio(terms, span.high)))
    return Interval(low=low, high=high)
