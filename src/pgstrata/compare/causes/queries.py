"""Statements of two environments as their servers counted them, paired by block."""

from __future__ import annotations

from collections.abc import Sequence

from pgstrata.diagnosis.queries import query_changes
from pgstrata.model.queries import QueriesCompared, QueryCounts
from pgstrata.model.runs import RunRecord
from pgstrata.sources.runs import may_enter


def compare_queries(
    runs: Sequence[RunRecord], *, environment: str, reference: str, cell: str
) -> QueriesCompared | None:
    """What each statement adds to the difference; None where no block has counts of both.

    Only runs that may enter an estimate count, and of them only those of which nothing was lost.
    """
    counted = [run for run in runs if run.cell == cell and run.queries is not None]
    ours, theirs = (_by_block(counted, name) for name in (environment, reference))
    both = [block for block in ours if block in theirs]
    pairs = [(ours[block], theirs[block]) for block in both]
    whole = [pair for pair in pairs if not any(side.lost for side in pair)]
    if not pairs:
        return None
    lost = dict.fromkeys(side.lost for pair in pairs for side in pair if side.lost)
    return QueriesCompared(
        environment=environment,
        reference=reference,
        cell=cell,
        blocks=len(whole),
        changes=query_changes(whole) if whole else (),
        lost=tuple(lost),
    )


def _by_block(runs: Sequence[RunRecord], environment: str) -> dict[int, QueryCounts]:
    return {
        run.block: run.queries
        for run in runs
        if run.environment == environment and run.queries is not None and may_enter(run)
    }
