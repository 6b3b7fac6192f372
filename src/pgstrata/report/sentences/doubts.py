"""What puts an answer in doubt, in sentences: the warnings of the study and of its comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pgstrata.compare.headlines import lead_comparisons, primary_comparisons
from pgstrata.model.answer import Answer, Comparison
from pgstrata.report.sentences.answer import SAID, capitalise
from pgstrata.report.sentences.comparisons import SMALL_AND_EARLY
from pgstrata.report.sentences.findings import say_doubt
from pgstrata.report.sentences.names import count, name_place

_MOST_PLACES = 2


def doubt_sentences(answer: Answer) -> tuple[str, ...]:
    """All warnings once, each with the cells that it concerns."""
    experiment = answer.study.plan.experiment
    primary = primary_comparisons(answer)
    leads = lead_comparisons(answer)
    places: dict[str, list[str]] = {}
    for comparison in primary:
        for text in _doubts(comparison, led=comparison in leads):
            found = places.setdefault(text, [])
            place = name_place(comparison.cell, experiment)
            if place not in found:
                found.append(place)
    cells = len({comparison.cell for comparison in primary})
    texts = [f"{text}{_where(found, cells)}" for text, found in places.items()]
    return tuple(capitalise(text) for text in (*map(say_doubt, answer.warnings), *texts))


def _doubts(comparison: Comparison, *, led: bool) -> Iterable[str]:
    """What the sentence of the answer does not say already."""
    said = SAID | {SMALL_AND_EARLY} if led else SAID
    return (say_doubt(doubt) for doubt in comparison.warnings if doubt.code not in said)


def _where(found: Sequence[str], cells: int) -> str:
    if cells <= 1 or len(found) == cells:
        return ""
    left = len(found) - _MOST_PLACES
    rest = f" and {count(left, 'other cell')}" if left > 0 else ""
    return f" ({'; '.join(found[:_MOST_PLACES])}{rest})"
