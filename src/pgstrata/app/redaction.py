"""A study to be shown to others: hashes stand for texts of queries, the same ones that `query_text = false` keeps."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Final

from pgstrata.diagnosis.query_text import hash_query, normalise
from pgstrata.model.answer import Study
from pgstrata.model.queries import QueryCounts
from pgstrata.model.runs import RunRecord

_HASH: Final = re.compile(r"q[0-9a-f]{12}")
_NO_QUERIES: Final = frozenset(
    {"prepared transaction", "client backend", "autovacuum worker", "walsender", "parallel worker", "background worker"}
)
"""What may stand for the query of those that block, where they have none."""


def hide_texts(study: Study) -> Study:
    """The study without any text of a query: sampled, counted or given by the driver's scripts; and without plans.

    The experiment stays as its author wrote it, with its scripts.
    """
    return replace(study, runs=tuple(map(_hide_run, study.runs)), query_plans=())


def _hide_run(run: RunRecord) -> RunRecord:
    return replace(
        run,
        sessions=tuple(
            replace(count, query=_hash(count.query), blocker=_hash(count.blocker)) for count in run.sessions
        ),
        processes=tuple(replace(count, query=_hash(count.query)) for count in run.processes),
        statements=tuple(replace(each, text=_hash(each.text)) for each in run.statements),
        query_plans=(),
        queries=None if run.queries is None else _hide_counts(run.queries),
    )


def _hide_counts(counts: QueryCounts) -> QueryCounts:
    return replace(counts, queries=tuple(replace(count, query=_hash(count.query)) for count in counts.queries))


@lru_cache(maxsize=4096)
def _hash(text: str) -> str:
    """A text that is a hash already, because no other was kept, stays."""
    return text if _HASH.fullmatch(text) or text in _NO_QUERIES else hash_query(normalise(text))
