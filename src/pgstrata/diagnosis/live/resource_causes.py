"""Causes that lie in reading, writing, WAL and caches, and in waits for others. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pgstrata.diagnosis.live.case import (
    LOCK,
    READ_EVENTS,
    RUNNING,
    TEMPORARY_EVENTS,
    WAL_EVENTS,
    WRITE_EVENTS,
    Case,
    Pair,
    changed_evidence,
    evidence,
    is_one_of,
    rate_evidence,
    wait_evidence,
)
from pgstrata.diagnosis.live.host import held_up_by_work, is_starved
from pgstrata.diagnosis.live.work import Work, reads_more, touches_more
from pgstrata.model.archive import EventKind
from pgstrata.model.causes import Cause, CauseKind, Evidence, EvidenceCode

_MORE_WAL: Final = 2.0
_MORE_TEMPORARY: Final = 3.0
_LEAST_TEMPORARY: Final = 8192.0
"""Bytes of temporary files per transaction that come to it at least."""
_WRITERS: Final = 0.2
"""Share of the additional WAL from which on a statement is one of those that write it."""
_BOTH: Final = 0.1
"""Share of the extra load from which on waits for data and for WAL count as waits for one disk."""
_MANY_EVENTS: Final = 3
_CHECKPOINTS: Final = "IPC/Checkpoint"
_STANDBY: Final = "IPC/SyncRep"
_CLIENT: Final = "Client/"
_NAMED: Final = (*READ_EVENTS, *WRITE_EVENTS, *WAL_EVENTS, *TEMPORARY_EVENTS, LOCK, _STANDBY, _CLIENT, RUNNING)


def cache_causes(case: Case, work: Work) -> Iterator[Cause]:
    """More blocks are read for the same blocks touched: what was in shared buffers is no longer there."""
    if not reads_more(work) or touches_more(work):
        return
    load = case.extra_on(*READ_EVENTS, *WRITE_EVENTS, RUNNING, *held_up_by_work(case))
    if load > 0:
        restarts = sum(event.kind is EventKind.RESTARTED for event in case.value.events)
        yield case.cause(
            CauseKind.CACHE, load,
            evidence(EvidenceCode.READS, work.reads),
            Evidence(code=EvidenceCode.RESTARTED, value=restarts) if restarts else None,
            *wait_evidence(case, *READ_EVENTS, *WRITE_EVENTS),
            evidence(EvidenceCode.RUNNING, case.load_on(RUNNING)),
        )  # fmt: skip


def burst_causes(case: Case) -> Iterator[Cause]:
    """Much more WAL per transaction: waits for WAL and disks, and the load of those who write it."""
    wal = case.each("wal_bytes")
    if wal is None or wal.ratio < _MORE_WAL:
        return
    writers = _writers(case)
    events = (*WAL_EVENTS, *READ_EVENTS, *WRITE_EVENTS, _CHECKPOINTS)
    own = case.new & writers.keys()
    new = case.load(
        lambda event, key: key in case.new and (is_one_of(event, events) or (key in own and not event.startswith(LOCK)))
    )
    load = case.extra_on(*events) + case.extra_of(new)
    if load > 0:
        told = [evidence(EvidenceCode.WAL_OF, pair, key) for key, pair in list(writers.items())[:1]]
        yield case.cause(
            CauseKind.WAL_BURST, load, *rate_evidence(case, "wal_bytes"), *told, *_checkpoints(case),
            *wait_evidence(case, *events), statements=tuple(writers),
        )  # fmt: skip


def _checkpoints(case: Case) -> tuple[Evidence | None, ...]:
    due = case.rate("checkpoints_due")
    return rate_evidence(case, "checkpoints_due") if due is not None and due.ratio >= _MORE_WAL else ()


def _writers(case: Case) -> dict[str, Pair]:
    """Statements with most of the additional WAL, bytes per second, the largest first."""
    seconds, before = case.value.counted, case.reference.counted
    if not seconds or not before:
        return {}
    theirs = case.reference.statements
    found = {
        key: Pair(
            value=use.wal_bytes / seconds, reference=theirs[key].wal_bytes / before if key in theirs else 0.0
        )
        for key, use in case.value.statements.items()
    }  # fmt: skip
    added = sum(max(0.0, pair.difference) for pair in found.values())
    chosen = [(key, pair) for key, pair in found.items() if added > 0 and pair.difference >= _WRITERS * added]
    return dict(sorted(chosen, key=lambda item: -item[1].difference))


def disk_causes(case: Case, work: Work) -> Iterator[Cause]:
    """Waits for data and for WAL rose while transactions read and wrote no more: each of them took longer."""
    wal = case.each("wal_bytes")
    if case.has_more_demand or is_starved(case) or (wal is not None and wal.ratio >= _MORE_WAL):
        return
    events: tuple[str, ...] = () if _spills(case) else TEMPORARY_EVENTS
    if not (reads_more(work) or touches_more(work)):
        events = (*READ_EVENTS, *WRITE_EVENTS, *events)
    load, wal_load = case.extra_on(*events), case.extra_on(*WAL_EVENTS)
    host = (*rate_evidence(case, "disk_await", "io_stalled"), *changed_evidence(case, "group_io_stalled"))
    if load >= _BOTH * case.extra:
        if wal_load >= _BOTH * case.extra:
            load, events = load + wal_load, (*events, *WAL_EVENTS)
        reads = evidence(EvidenceCode.READS, work.reads)
        yield case.cause(CauseKind.SLOW_IO, load, *wait_evidence(case, *events), reads, *host)
    elif wal_load > 0:
        bytes_each = evidence(EvidenceCode.EACH, wal, "wal_bytes")
        yield case.cause(CauseKind.SLOW_WAL, wal_load, *wait_evidence(case, *WAL_EVENTS), bytes_each, *host)


def spill_causes(case: Case) -> Iterator[Cause]:
    """Sorts and hashes that no longer fit into work_mem."""
    load = case.extra_on(*TEMPORARY_EVENTS)
    if load > 0 and _spills(case):
        told = evidence(EvidenceCode.EACH, case.each("temporary_bytes"), "temporary_bytes")
        yield case.cause(CauseKind.SPILL, load, told, *wait_evidence(case, *TEMPORARY_EVENTS))


def _spills(case: Case) -> bool:
    spilled = case.each("temporary_bytes")
    return spilled is not None and spilled.ratio >= _MORE_TEMPORARY and spilled.difference >= _LEAST_TEMPORARY


def waiting_causes(case: Case) -> Iterator[Cause]:
    """Waits for a standby, for clients, and for events that no other kind explains."""
    for kind, event in ((CauseKind.STANDBY, _STANDBY), (CauseKind.CLIENT, _CLIENT)):
        load = case.extra_on(event)
        if load > 0:
            yield case.cause(kind, load, *wait_evidence(case, event), event=event.rstrip("/"))
    others = dict.fromkeys(event for event, _ in case.rows if not is_one_of(event, _NAMED))
    unexplained = [] if case.value.blocked else [LOCK]
    names = sorted((*others, *(name for beginning in unexplained for name in case.events(beginning))),
                   key=lambda name: -case.extra_on(name))  # fmt: skip
    for name in names[:_MANY_EVENTS]:
        if case.extra_on(name) > 0:
            keys = {key: pair for (event, key), pair in case.rows.items() if event == name and key}
            most = tuple(sorted(keys, key=lambda key: -case.extra_of(keys[key])))[:_MANY_EVENTS]
            yield case.cause(
                CauseKind.EVENT, case.extra_on(name), *wait_evidence(case, name), statements=most, event=name
            )
