"""Row versions that pile up because an old transaction keeps vacuum from removing them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from pgstrata.diagnosis.live.case import Case, Pair, evidence
from pgstrata.diagnosis.live.statement_causes import blocks_evidence, load_of_slower, touching_more
from pgstrata.diagnosis.live.work import Work
from pgstrata.model.archive import CLIENT, COMMITS, ArchiveWindow, Horizon, SessionClass
from pgstrata.model.causes import Cause, CauseKind, Evidence, EvidenceCode

_MORE_BLOCKS: Final = 1.3
"""Times as many blocks a call; they come slowly, so fewer than of another plan."""
_FEWEST_BLOCKS: Final = 1.0
_GREW: Final = 1.1
"""Times as many blocks per transaction in the last third of the window as in the middle one."""
_ALWAYS: Final = 0.95
"""Share of the cells in which a session is there that never went away."""
_LONG: Final = 0.5
_OLDEST: Final = 1000
"""Transactions for which a slot or a standby holds back vacuum at least."""
_FEWEST_CELLS: Final = 9
_MOST: Final = 3


def old_transactions(case: Case, work: Work) -> Iterator[Cause]:
    """Statements that touch ever more blocks a call, while something old holds back vacuum.

    That is the holder of the oldest snapshot that was recorded. Where none was, it is a session that stayed in its
    transaction for the whole window.
    """
    horizon, session = _old_horizon(case), None if case.value.horizons else _staying(case)
    grown = _growth(case.value)
    changes = touching_more(case, _MORE_BLOCKS, _FEWEST_BLOCKS)
    if (horizon is None and session is None) or grown is None or grown.ratio < _GREW or not changes:
        return
    found = case.cause(
        CauseKind.OLD_TRANSACTION,
        load_of_slower(case, work, changes),
        *_hold(case, horizon, session),
        evidence(EvidenceCode.GREW, grown),
        *blocks_evidence(changes[0]),
        statements=tuple(change.statement for change in changes[:_MOST]),
    )
    yield replace(found, session=session, horizon=horizon)


def _hold(case: Case, horizon: Horizon | None, session: SessionClass | None) -> Iterator[Evidence]:
    """How long it has held back vacuum."""
    if horizon is not None and horizon.held:
        yield Evidence(code=EvidenceCode.OPEN, value=horizon.held)
    if horizon is not None:
        yield Evidence(code=EvidenceCode.AGE, value=horizon.age)
    elif session is not None:
        yield Evidence(code=EvidenceCode.PRESENT, value=_present(case, session))


def _old_horizon(case: Case) -> Horizon | None:
    """What held back vacuum most, if for long: half of the window, or half of its transactions."""
    seconds, throughput = case.value.span.seconds, case.found.throughput.value
    for horizon in case.value.horizons:
        if horizon.held >= _LONG * seconds:
            return horizon
        if not horizon.held and horizon.age >= max(_OLDEST, _LONG * seconds * throughput):
            return horizon
    return None


def _staying(case: Case) -> SessionClass | None:
    """What never went away: idle in a transaction, or in a statement of which no call ended; the longest."""
    found = [
        session
        for session, counts in case.value.sessions.items()
        if session.kind == CLIENT and _may_be_old(case, session) and _is_steady(case.value, counts)
    ]
    return max(found, key=lambda each: (_present(case, each), each.is_idle_in_transaction), default=None)


def _may_be_old(case: Case, session: SessionClass) -> bool:
    if session.is_idle_in_transaction:
        return True
    use = case.value.statements.get(session.statement)
    return session.is_load and bool(session.statement) and (use is None or use.calls == 0)


def _is_steady(window: ArchiveWindow, counts: tuple[int, ...]) -> bool:
    """Whether the same number of sessions was there at every look: those of a busy application come and go."""
    looks = np.asarray(window.looks, dtype=np.float64)
    each = np.asarray(counts, dtype=np.float64)[looks > 0] / looks[looks > 0]
    usual = np.round(np.median(each)) if each.size else 0.0
    return bool(usual >= 1 and np.mean(np.isclose(each, usual)) >= _ALWAYS)


def _present(case: Case, session: SessionClass) -> float:
    """Seconds for which it was seen without a pause before the end of the window."""
    counts = case.reference.sessions.get(session, ())
    cells = 0
    for seen, looks in zip(reversed(counts), reversed(case.reference.looks[: len(counts)]), strict=True):
        if looks and not seen:
            break
        cells += 1
    return case.value.span.seconds + cells * float(case.reference.cell)


def _growth(window: ArchiveWindow) -> Pair | None:
    """Blocks per transaction in the last third of the window and in the middle one."""
    names = ("blocks_hit", "blocks_read", COMMITS)
    hit, read, commits = (np.asarray(window.rates.get(name, ()), dtype=np.float64) for name in names)
    if not hit.size == read.size == commits.size or commits.size < _FEWEST_CELLS:
        return None
    known = np.isfinite(hit) & np.isfinite(read) & np.isfinite(commits)
    third = commits.size // 3
    means = []
    for part in (slice(-third, None), slice(-2 * third, -third)):
        chosen = known[part]
        done = commits[part][chosen].sum()
        if done <= 0:
            return None
        means.append(float((hit[part][chosen] + read[part][chosen]).sum() / done))
    return Pair(value=means[0], reference=means[1])
