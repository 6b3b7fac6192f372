"""Which comparisons of an answer decide, which are exploratory, and which controls differ from their original."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pgstrata.model.answer import ALL_CELLS, Answer, Comparison, Verdict
from pgstrata.model.doubts import CountedDoubt, Doubt

DIFFERENT: Final = frozenset({Verdict.BETTER, Verdict.WORSE})
FAULTY: Final = DIFFERENT | {Verdict.COLLAPSED, Verdict.UNSTABLE}
"""Verdicts that a control must not have."""
_SEVERAL: Final = 2


def doubt_equivalences(comparisons: Iterable[Comparison]) -> tuple[Doubt, ...]:
    """A doubt where several headlines are equivalent: each is at its own level, which only differences share."""
    headlines = [item for item in comparisons if not item.exploratory and not item.control]
    number = sum(item.verdict is Verdict.EQUIVALENT for item in headlines)
    if number < _SEVERAL:
        return ()
    return (CountedDoubt(code="equivalences_uncorrected", number=number, of=len(headlines)),)


def primary_comparisons(answer: Answer) -> tuple[Comparison, ...]:
    """Comparisons with the baseline by the metric that was declared before the first run."""
    experiment = answer.study.plan.experiment
    # A single cell is its own headline.
    alone = len(experiment.cells) == 1 and any(item.cell != ALL_CELLS for item in answer.comparisons)
    return tuple(
        item
        for item in answer.comparisons
        if item.metric == experiment.metric and not (alone and item.cell == ALL_CELLS)
    )


def headline_comparisons(answer: Answer) -> tuple[Comparison, ...]:
    """Comparisons over all cells together; none where there is only one cell."""
    return tuple(item for item in primary_comparisons(answer) if item.cell == ALL_CELLS)


def lead_comparisons(answer: Answer) -> tuple[Comparison, ...]:
    """What answers the question: the headlines, and the cells of environments that have none."""
    headed = {item.environment for item in headline_comparisons(answer)}
    return tuple(
        item for item in primary_comparisons(answer) if item.cell == ALL_CELLS or item.environment not in headed
    )


def explored_comparisons(answer: Answer) -> tuple[Comparison, ...]:
    """Single cells beneath a headline: exploratory."""
    headed = {item.environment for item in headline_comparisons(answer)}
    return tuple(item for item in primary_comparisons(answer) if item.cell != ALL_CELLS and item.environment in headed)


def faulty_controls(answer: Answer) -> tuple[Comparison, ...]:
    """Controls that are not what their original is, which puts every other difference in doubt.

    Of a control with a headline that holds, single cells count only where so many cells do not differ by chance.
    """
    leads = tuple(item for item in lead_comparisons(answer) if item.control and item.verdict in FAULTY)
    told = {item.environment for item in leads}
    cells = (item for item in explored_comparisons(answer) if item.control and item.environment not in told)
    return (*leads, *(item for item in cells if is_beyond_chance(item)))


def is_beyond_chance(comparison: Comparison) -> bool:
    """Whether one of many cells of a control differs by more than so many cells allow by chance."""
    if comparison.verdict not in FAULTY:
        return False
    chance = comparison.adjusted_p if comparison.adjusted_p is not None else 0.0
    return comparison.verdict not in DIFFERENT or chance <= comparison.level
