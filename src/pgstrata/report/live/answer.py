"""The answer of an explanation, in sentences without full stops."""

from __future__ import annotations

from collections.abc import Iterator

from pgstrata.model.explanation import Explained
from pgstrata.report.live.causes import cause_sentences
from pgstrata.report.live.plans import plan_sentences
from pgstrata.report.live.runs import say_run_outcome
from pgstrata.report.live.words import detail_sentences, say_outcome


def answer_sentences(found: Explained) -> Iterator[str]:
    """Whether it was slower, the most likely cause, plans that changed, then the details."""
    yield say_run_outcome(found) if found.cell else say_outcome(found)
    yield from cause_sentences(found.explanation, found.texts)
    yield from plan_sentences(found.explanation, found.texts)
    yield from detail_sentences(found)
