"""The first cause of a slowdown: all candidates, ranked by the share of the extra load that each explains. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pgstrata.diagnosis.live.case import Case, make_case
from pgstrata.diagnosis.live.cpu_causes import cpu_causes
from pgstrata.diagnosis.live.lock_causes import lock_causes
from pgstrata.diagnosis.live.old_transactions import old_transactions
from pgstrata.diagnosis.live.resource_causes import (
    burst_causes,
    cache_causes,
    disk_causes,
    spill_causes,
    waiting_causes,
)
from pgstrata.diagnosis.live.statement_causes import more_blocks, more_calls, new_statements
from pgstrata.diagnosis.live.work import work_of
from pgstrata.model.archive import ArchiveWindow
from pgstrata.model.causes import Cause, CauseKind
from pgstrata.model.explanation import Explanation, Outcome

LEAST_SHARE: Final = 0.3
"""Share of the extra load below which nothing is called a cause."""
WITH_CAUSE: Final = frozenset({Outcome.INCIDENT, Outcome.STALLED, Outcome.SATURATED, Outcome.OTHER_MIX})
"""Outcomes that are asked for a cause: more demand alone is no slowdown."""
_OF_OTHER_MIX: Final = frozenset(
    {
        CauseKind.NEW_STATEMENTS, CauseKind.MORE_CALLS, CauseKind.WAL_BURST, CauseKind.CONNECTIONS,
        CauseKind.IDLE_IN_TRANSACTION, CauseKind.PREPARED, CauseKind.RELATION_LOCK, CauseKind.LOCK_HELD,
    }
)  # fmt: skip
"""Where transactions are as fast as before, nothing that slows them all is a cause."""
_ALIKE: Final = 10
"""Shares in steps of a tenth are alike: then the more specific kind comes first."""
_SPECIFIC: Final = {kind: place for place, kind in enumerate(CauseKind)}


def find_causes(value: ArchiveWindow, reference: ArchiveWindow, found: Explanation) -> tuple[Cause, ...]:
    """What explains most of the extra load, the largest share first; empty where nothing explains enough.

    Args:
        value: the window.
        reference: the comparison window.
        found: the explanation of both, whose `causes` are not looked at.
    """
    if found.outcome not in WITH_CAUSE:
        return ()
    case = make_case(value, reference, found)
    if case is None:
        return ()
    causes: Iterable[Cause] = _candidates(case)
    if found.outcome is Outcome.OTHER_MIX:
        causes = (cause for cause in causes if cause.kind in _OF_OTHER_MIX)
    enough = [cause for cause in causes if cause.share >= LEAST_SHARE]
    return tuple(sorted(enough, key=lambda cause: (-round(cause.share * _ALIKE), _SPECIFIC[cause.kind], -cause.share)))


def _candidates(case: Case) -> Iterator[Cause]:
    work = work_of(case)
    yield from lock_causes(case)
    old = list(old_transactions(case, work))
    yield from old
    if not old:
        yield from more_blocks(case, work)
    yield from burst_causes(case)
    yield from spill_causes(case)
    yield from cache_causes(case, work)
    yield from disk_causes(case, work)
    yield from cpu_causes(case, work)
    yield from waiting_causes(case)
    yield from new_statements(case)
    yield from more_calls(case)
