"""Causes that lie in the CPUs, the memory and the connections of the host. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pgstrata.diagnosis.live.case import (
    READ_EVENTS,
    RUNNING,
    WAL_EVENTS,
    WRITE_EVENTS,
    Case,
    Pair,
    changed_evidence,
    evidence,
    rate_evidence,
    wait_evidence,
)
from pgstrata.diagnosis.live.host import (
    CPUS,
    HELD_UP,
    THROTTLED,
    are_more,
    cpus_used,
    is_crowded,
    is_starved,
    is_throttled,
    new_take_cpus,
    other_tasks,
)
from pgstrata.diagnosis.live.work import MORE_WORK, Work, reads_more, touches_more
from pgstrata.model.archive import COMMITS, PARALLEL
from pgstrata.model.causes import Cause, CauseKind, Evidence, EvidenceCode

_STOLEN: Final = 0.1
"""CPUs that the hypervisor took more, and their share of the CPUs in use, from which on it is a cause."""
_FELL: Final = 0.9
_USED_MORE: Final = 1.25
_OWN: Final = 0.5
"""Share of the CPUs used more for which sessions that ran more have to account, for the use to be theirs."""
_MEMORY: Final = 0.1
_MEMORY_MORE: Final = 3.0
_CONNECTIONS: Final = 1.3
_FEWEST_CONNECTIONS: Final = 5.0
_FAULTS: Final = 2.0
"""Times as many page faults: each new connection is a new process."""
_STARTING: Final = 0.5
_STARTS: Final = "starting"
_SNAPSHOTS: Final = "LWLock/ProcArray"
_TAKEN: Final = frozenset({CauseKind.CPU_LIMIT, CauseKind.NEIGHBOUR, CauseKind.STOLEN_CPU})


def cpu_causes(case: Case, work: Work) -> Iterator[Cause]:
    """Sessions ran or were ready for longer while transactions did no more."""
    if reads_more(work) or touches_more(work) or (work.calls is not None and work.calls.ratio >= MORE_WORK):
        return
    special = list(_memory(case)) or list(_connections(case))
    yield from special
    if new_take_cpus(case):
        return
    kind, told = _kind(case)
    events = _waits_for(case, kind)
    load = case.extra_on(RUNNING, *events)
    if load > 0 and not special:
        running = evidence(EvidenceCode.RUNNING, case.load_on(RUNNING))
        held_up = wait_evidence(case, *events)[:1] if events else ()
        yield case.cause(kind, load, *held_up, running, *told, evidence(EvidenceCode.BLOCKS, work.blocks))


def _waits_for(case: Case, kind: CauseKind) -> tuple[str, ...]:
    """Waits that have the same cause as longer running: for those that were stopped, or for what many ask for."""
    if kind is CauseKind.DEMAND:
        return (*READ_EVENTS, *WRITE_EVENTS, *WAL_EVENTS)
    return HELD_UP if kind in _TAKEN and is_starved(case) else ()


def _kind(case: Case) -> tuple[CauseKind, tuple[Evidence | None, ...]]:
    """Who had the CPUs.

    The kernel counts what the hypervisor took and what limits of control groups withheld. What is ready and is no
    session belongs to others. Without them the CPUs in use tell: fewer than before, although sessions were ready, are a
    limit; more per transaction are used by the transactions.
    """
    used = cpus_used(case)
    if used is None:
        return CauseKind.DEMAND if case.has_more_demand else CauseKind.CPU, ()
    stolen, others = case.rate("host_steal_cpu"), other_tasks(case)
    busy, limit = rate_evidence(case, *CPUS[:2]), changed_evidence(case, "cpu_limit")
    if stolen is not None and stolen.difference >= max(_STOLEN, _STOLEN * used.value):
        return CauseKind.STOLEN_CPU, rate_evidence(case, "host_steal_cpu")
    if is_throttled(case):
        return CauseKind.CPU_LIMIT, (
            *rate_evidence(case, THROTTLED), *limit, *rate_evidence(case, "cpu_stalled", *CPUS[:2])
        )  # fmt: skip
    if others is not None and (are_more(others) or is_crowded(case, others)) and used.value > _FELL * used.reference:
        return CauseKind.NEIGHBOUR, (evidence(EvidenceCode.OTHERS, others), *busy)
    limited = (*limit, *rate_evidence(case, "cpu_stalled", *CPUS[:2]))
    if used.value < _FELL * used.reference:
        return CauseKind.CPU_LIMIT, limited
    expected = case.growth * used.reference
    if used.value > _USED_MORE * expected and case.extra_on(RUNNING) >= _OWN * (used.value - expected):
        return CauseKind.CPU_EACH, busy
    if case.has_more_demand:
        return CauseKind.DEMAND, (evidence(EvidenceCode.RATE, _throughput(case), COMMITS), *busy)
    return CauseKind.CPU_LIMIT, limited


def _throughput(case: Case) -> Pair:
    return Pair(value=case.found.throughput.value, reference=case.found.throughput.reference)


def _memory(case: Case) -> Iterator[Cause]:
    """The host has too little memory: everything that runs or reads is slower."""
    stalled = case.rate("memory_stalled")
    if stalled is None or stalled.value < max(_MEMORY, _MEMORY_MORE * stalled.reference):
        return
    load = case.extra_on(RUNNING, *READ_EVENTS, *WRITE_EVENTS)
    own = changed_evidence(case, "group_memory_stalled", "memory_limit_reached")
    told = (*rate_evidence(case, "memory_stalled"), *own, *rate_evidence(case, "memory_available", "page_faults"))
    yield case.cause(CauseKind.MEMORY, load, *told)


def _connections(case: Case) -> Iterator[Cause]:
    """Many new connections: each is a process that has to be started, and that snapshots have to look at."""
    level, faults, starting = _clients(case), case.rate("page_faults"), _starting(case)
    more = level is not None and level.difference >= _FEWEST_CONNECTIONS and level.ratio >= _CONNECTIONS
    forks = faults is not None and faults.ratio >= _FAULTS
    if not (more and forks) and starting.difference < _STARTING:
        return
    # all of LWLock has that of snapshots in it
    load = case.extra_on(RUNNING, *(HELD_UP if is_starved(case) else (_SNAPSHOTS,)))
    if load > 0:
        told = rate_evidence(case, "connections", "page_faults", "host_system_cpu")
        running = evidence(EvidenceCode.RUNNING, case.load_on(RUNNING))
        yield case.cause(CauseKind.CONNECTIONS, load, *told, running, *wait_evidence(case, _SNAPSHOTS))


def _clients(case: Case) -> Pair | None:
    """Sessions connected, without parallel workers, which the server counts with them."""
    level = case.rate("connections")
    if level is None:
        return None
    workers = [
        sum(sum(counts) for session, counts in window.sessions.items() if session.kind == PARALLEL)
        / max(1, sum(window.looks))
        for window in (case.value, case.reference)
    ]
    return Pair(value=level.value - workers[0], reference=level.reference - workers[1])


def _starting(case: Case) -> Pair:
    """Sessions that were being started; servers before 18 do not show them."""
    sides = [
        sum(sum(counts) for session, counts in window.sessions.items() if session.state == _STARTS)
        / max(1, sum(window.looks))
        for window in (case.value, case.reference)
    ]
    return Pair(value=sides[0], reference=sides[1])
