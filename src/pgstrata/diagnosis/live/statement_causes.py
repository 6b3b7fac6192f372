"""Causes that are in the statements: more blocks a call, new statements, more calls. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from pgstrata.diagnosis.live.case import (
    LOCK,
    READ_EVENTS,
    RUNNING,
    WAL_EVENTS,
    WRITE_EVENTS,
    Case,
    Pair,
    evidence,
    is_one_of,
    sum_statements,
)
from pgstrata.diagnosis.live.host import held_up_by_work, new_take_cpus
from pgstrata.diagnosis.live.work import Work, touches_more
from pgstrata.model.archive import REST
from pgstrata.model.causes import Cause, CauseKind, Evidence, EvidenceCode
from pgstrata.model.explanation import CallsChange

MORE_BLOCKS: Final = 2.0
"""Times as many blocks a call from which on a statement's plan or data are said to differ."""
_FEWEST_BLOCKS: Final = 5.0
"""Blocks a call that come to it at least."""
_MORE_CALLS: Final = 1.5
_MOST: Final = 3


def slower_load(change: CallsChange) -> float:
    """Sessions that a statement adds because each of its calls takes longer, as counted."""
    return (change.latency - change.reference_latency) * change.calls if change.reference_calls else 0.0


def load_of_slower(case: Case, work: Work, changes: Sequence[CallsChange]) -> float:
    """Sessions that slower statements add, with others that wait because these keep the CPUs busy.

    Of each statement it is what was sampled, if that is more. Its waits for locks are not counted: they belong to what
    held these.

    Calls count when they end, and time of parallel workers does not count. Waits for locks, WAL and clients have
    nothing to do with blocks.
    """
    unrelated = (LOCK, *WAL_EVENTS, *WRITE_EVENTS, "Client/")
    sampled = case.load_by_statement(*unrelated)
    nothing = Pair(value=0.0, reference=0.0)
    locked = sum_statements({row: pair for row, pair in case.rows.items() if row[0].startswith(LOCK)})

    def own(change: CallsChange) -> float:
        waits = max(0.0, case.extra_of(locked.get(change.statement, nothing)))
        return max(slower_load(change) - waits, case.extra_of(sampled.get(change.statement, nothing)), 0.0)

    behind = sum(load for event, load in case.driven.items() if is_one_of(event, (RUNNING, *READ_EVENTS)))
    keys, events = {each.statement for each in changes}, held_up_by_work(case) if touches_more(work) else ()
    others = case.load(lambda event, key: is_one_of(event, events) and (key not in keys or is_one_of(event, unrelated)))
    return math.fsum(map(own, changes)) + behind + max(0.0, case.extra_of(others))


def touching_more(case: Case, times: float, least: float = _FEWEST_BLOCKS) -> list[CallsChange]:
    """Statements that touch so many times as many blocks a call and are slower, the largest part first."""
    found = [
        change
        for change in case.found.calls
        if change.reference_calls > 0
        and change.statement != REST
        and change.blocks_per_call >= times * change.reference_blocks_per_call
        and change.blocks_per_call - change.reference_blocks_per_call >= least
        and slower_load(change) > 0
    ]
    return sorted(found, key=lambda change: -slower_load(change))


def more_blocks(case: Case, work: Work) -> Iterator[Cause]:
    """Statements that touch more blocks a call: another plan, a dropped index, more row versions."""
    if not case.found.calls:
        yield from _other_plans(case, work)
        return
    changes = touching_more(case, MORE_BLOCKS)
    load = load_of_slower(case, work, changes)
    if changes and load > 0:
        keys = tuple(change.statement for change in changes[:_MOST])
        told = (*blocks_evidence(changes[0]), _plan_evidence(case, keys[0]))
        yield case.cause(CauseKind.MORE_BLOCKS, load, *told, statements=keys)


def _other_plans(case: Case, work: Work) -> Iterator[Cause]:
    """Statements with another plan, where none were counted and transactions touch more blocks."""
    if not touches_more(work):
        return
    loads = case.load_by_statement(LOCK, *WAL_EVENTS, "Client/")
    extra = {
        change.statement: case.extra_of(loads[change.statement])
        for change in case.found.plans.changes
        if change.statement in loads
    }
    keys = sorted((key for key in extra if extra[key] > 0), key=lambda key: -extra[key])
    if keys:
        told = (evidence(EvidenceCode.BLOCKS, work.blocks), _plan_evidence(case, keys[0]))
        load = math.fsum(extra[key] for key in keys)
        yield case.cause(CauseKind.MORE_BLOCKS, load, *told, statements=tuple(keys[:_MOST]))


def _plan_evidence(case: Case, statement: str) -> Evidence | None:
    """When its plan changed; None where it did not, or nobody knows."""
    change = next((each for each in case.found.plans.changes if each.statement == statement), None)
    if change is None:
        return None
    after = None if change.after is None else float(change.after)
    return Evidence(code=EvidenceCode.PLAN, value=float(change.by or 0), reference=after, name=statement)


def blocks_evidence(change: CallsChange) -> Sequence[Evidence | None]:
    """Blocks and time of a call."""
    blocks = Pair(value=change.blocks_per_call, reference=change.reference_blocks_per_call)
    time = Pair(value=change.latency, reference=change.reference_latency)
    return (
        evidence(EvidenceCode.BLOCKS, blocks, change.statement),
        evidence(EvidenceCode.TIME, time, change.statement),
    )


def new_statements(case: Case) -> Iterator[Cause]:
    """Statements that were not there before, or seldom; what they wait for locks is not theirs.

    If they keep the CPUs busy, what others run longer is due to them.
    """
    own = {key: pair for key, pair in case.load_by_statement(LOCK).items() if key in case.new}
    load = math.fsum(case.extra_of(pair) for pair in own.values())
    if new_take_cpus(case):
        load += max(0.0, case.extra_on(RUNNING, *held_up_by_work(case)))
    if load > 0:
        keys = sorted(own, key=lambda key: -own[key].value)
        told = evidence(EvidenceCode.LOAD, own[keys[0]], keys[0])
        yield case.cause(CauseKind.NEW_STATEMENTS, load, told, statements=tuple(keys[:_MOST]))


def more_calls(case: Case) -> Iterator[Cause]:
    """Statements that were there before and are called more often in each transaction."""
    if not case.growth:
        return
    changes = [
        change
        for change in case.found.calls
        if change.reference_calls > 0
        and change.statement not in case.new | {REST}
        and change.calls >= _MORE_CALLS * case.growth * change.reference_calls
    ]
    changes.sort(key=lambda change: -_added(case, change))
    load = math.fsum(_added(case, change) for change in changes)
    if load > 0:
        first, throughput = changes[0], case.found.throughput
        calls = Pair(
            value=first.calls / throughput.value, reference=first.reference_calls / throughput.reference
        )  # fmt: skip
        told = evidence(EvidenceCode.CALLS, calls, first.statement)
        keys = tuple(change.statement for change in changes[:_MOST])
        yield case.cause(CauseKind.MORE_CALLS, load, told, statements=keys)


def _added(case: Case, change: CallsChange) -> float:
    return (change.calls - case.growth * change.reference_calls) * change.reference_latency
