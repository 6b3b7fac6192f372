"""The first cause of a slowdown: each kind is first where it was made, and not where one sign of it is missing."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archives import BLOCKER, behind, session
from pgstrata.diagnosis.live.causes import LEAST_SHARE
from pgstrata.diagnosis.live.explain import explain
from pgstrata.model.archive import (
    ArchiveEvent,
    ArchiveWindow,
    EventKind,
    Holder,
    HolderKind,
    Horizon,
    SessionClass,
    Span,
    StatementUse,
)
from pgstrata.model.causes import CauseKind, EvidenceCode
from pgstrata.model.explanation import Outcome

SELECT, UPDATE = session("select"), session("update")
READ, TUPLE = session("select", "IO/DataFileRead"), session("update", "Lock/tuple")
QUEUED = session("update", "Lock/transactionid")
SYNC = session("update", "IO/WalSync")
BULK = session("bulk")
PREPARED = SessionClass(kind="", state="(prepared transaction)")


@dataclass
class Side:
    """A window: mean sessions by class, transactions and rates per second, blocks (hit, read) and WAL a call."""

    load: dict = field(default_factory=lambda: {SELECT: 2.0, UPDATE: 1.0})
    commits: float = 200.0
    blocked: dict = field(default_factory=dict)
    rates: dict = field(default_factory=dict)
    calls: dict = field(default_factory=lambda: {"select": 4, "update": 1})
    seconds: dict = field(default_factory=lambda: {"select": 0.0025, "update": 0.005})
    hit: dict = field(default_factory=lambda: {"select": 10.0, "update": 20.0})
    read: dict = field(default_factory=lambda: {"select": 0.1, "update": 0.1})
    wal: dict = field(default_factory=lambda: {"update": 500.0})
    counted: bool = True
    events: tuple = ()


HOST = {
    "host_user_cpu": 1.5, "host_system_cpu": 0.4, "host_interrupt_cpu": 0.1, "host_steal_cpu": 0.0,
    "run_queue_length": 4.0, "cpu_stalled": 0.1, "memory_stalled": 0.0, "page_faults": 500.0, "connections": 20.0,
}  # fmt: skip


def make(side, size, seed):
    """The window of so many seconds; numbers scatter a little, what is given as a list is as it is."""
    draws = np.random.default_rng(seed)
    rates = {"wal_bytes": 500.0 * side.commits, "checkpoints_due": 0.01, **HOST, **side.rates}
    made = {
        name: tuple(value) if isinstance(value, list) else tuple((value * draws.normal(1, 0.03, size)).tolist())
        for name, value in rates.items()
    }
    commits = tuple((side.commits * draws.normal(1, 0.03, size)).tolist())
    blocks = {"blocks_hit": side.hit, "blocks_read": side.read}
    for name, each in blocks.items():
        per = sum(side.calls[key] * each.get(key, 0.0) for key in side.calls)
        made.setdefault(name, tuple(per * rate for rate in commits))
    done = side.commits * size
    statements = {
        key: StatementUse(
            calls=calls * done, seconds=calls * done * side.seconds[key], rows=calls * done,
            blocks_hit=calls * done * side.hit.get(key, 0.0), blocks_read=calls * done * side.read.get(key, 0.0),
            wal_bytes=calls * done * side.wal.get(key, 0.0),
        )
        for key, calls in side.calls.items()
    }  # fmt: skip
    return ArchiveWindow(
        span=Span(begin=0, end=size), unit=1, cell=1, looks=(1,) * size,
        sessions={
            each: tuple(mean) if isinstance(mean, list) else tuple(draws.poisson(mean, size).tolist())
            for each, mean in side.load.items()
        },
        rates={"commits": commits, **made}, events=side.events,
        blocked={each: round(mean * size) for each, mean in side.blocked.items()},
        statements=statements if side.counted else {}, counted=float(size) if side.counted else None,
        transactions=done if side.counted else 0.0,
    )  # fmt: skip


def found(value, reference=None, *, size=120):
    return explain(make(value, size, 1), make(reference or Side(), 2 * size, 2))


def kinds(value, reference=None, **more):
    return [cause.kind for cause in found(value, reference, **more).causes]


def slower(factor=3.0):
    """Seconds of a call when all calls take so many times as long."""
    return {"select": 0.0025 * factor, "update": 0.005 * factor}


def running(factor, commits=200.0, **more):
    """Sessions run so many times as long, and nothing else differs."""
    return Side(load={SELECT: 2.0 * factor, UPDATE: 1.0 * factor}, commits=commits, seconds=slower(factor), **more)


# ------------------------------------------------------------------------------------------------- locks


def locked(root, *, waiting=QUEUED, commits=60.0, load=8.0, pid=4711, held=30, others=None):
    blocked = dict.fromkeys(behind(waiting, root, pid, held), load)
    return Side(
        load={SELECT: 0.6, UPDATE: 0.3, waiting: load, **(others or {})}, commits=commits, blocked=blocked,
        seconds={"select": 0.0025, "update": 0.13},
    )  # fmt: skip


def test_a_session_idle_in_its_transaction_is_the_cause_of_what_waits_behind_it():
    cause = found(locked(BLOCKER)).causes[0]
    assert (cause.kind, cause.session, cause.pids) == (CauseKind.IDLE_IN_TRANSACTION, BLOCKER, (4711,))
    assert cause.share > 0.9
    told = {each.code: each for each in cause.evidence}
    assert told[EvidenceCode.BEHIND].value == pytest.approx(8.0)
    assert told[EvidenceCode.OPEN].value == 30


def test_it_is_also_the_cause_where_no_transaction_ends():
    stalled = found(locked(BLOCKER, commits=0.0))
    assert stalled.outcome is Outcome.STALLED
    assert stalled.causes[0].kind is CauseKind.IDLE_IN_TRANSACTION


def test_a_prepared_transaction_is_told_from_a_session():
    assert kinds(locked(PREPARED, pid=0, held=0))[0] is CauseKind.PREPARED


def test_a_hot_row_is_held_by_sessions_at_work_also_if_their_clients_are_asked_in_between():
    side = locked(SYNC)
    idle = session("update", "Client/ClientRead", state="idle in transaction")
    side.blocked = {**dict.fromkeys(behind(QUEUED, UPDATE, 1), 6.0), **dict.fromkeys(behind(QUEUED, idle, 2), 2.0)}
    cause = found(side).causes[0]
    assert cause.kind is CauseKind.LOCK_HELD
    assert cause.statements == ("update",)
    assert cause.pids == (1, 2)


@pytest.mark.parametrize(
    ("idle", "held", "kind"),
    [
        (5.0, 30, CauseKind.IDLE_IN_TRANSACTION),
        (5.0, 1, CauseKind.LOCK_HELD),
        (7.5, 1, CauseKind.IDLE_IN_TRANSACTION),
        (3.0, 30, CauseKind.LOCK_HELD),
    ],
)
def test_short_pauses_between_statements_are_no_idle_transaction_unless_nearly_all_heads_pause(idle, held, kind):
    side = locked(SYNC)
    pausing = session("update", "Client/ClientRead", state="idle in transaction")
    side.blocked = {
        **dict.fromkeys(behind(QUEUED, UPDATE, 1, held), 8.0 - idle),
        **dict.fromkeys(behind(QUEUED, pausing, 2, held), idle),
    }
    assert kinds(side)[0] is kind


def test_heads_that_were_gone_count_as_sessions_at_work():
    side = locked(None, pid=0, held=0)
    assert kinds(side)[0] is CauseKind.LOCK_HELD
    side.blocked.update(dict.fromkeys(behind(QUEUED, UPDATE, 1), 2.0))
    assert kinds(side)[:1] == [CauseKind.LOCK_HELD]
    assert found(side).causes[0].share > 0.9


def test_a_lock_on_a_table_is_told_from_a_lock_on_a_row():
    waiting = session("select", "Lock/relation")
    ddl = session("alter table", "", application="migrate")
    assert kinds(locked(ddl, waiting=waiting))[0] is CauseKind.RELATION_LOCK
    assert kinds(locked(ddl))[0] is CauseKind.LOCK_HELD


def test_of_two_blockers_the_one_with_more_sessions_behind_it_comes_first():
    side = locked(BLOCKER)
    other = session("vacuum full", application="cron")
    side.blocked = {**dict.fromkeys(behind(QUEUED, BLOCKER), 3.0), **dict.fromkeys(behind(QUEUED, other, 9), 5.0)}
    first, second = found(side).causes[:2]
    assert (first.session, second.session) == (other, BLOCKER)
    assert first.share + second.share <= 1.001


def test_what_was_blocked_before_as_well_is_no_cause():
    before = Side(load={SELECT: 2.0, QUEUED: 4.0}, blocked=dict.fromkeys(behind(QUEUED, BLOCKER), 4.0))
    now = replace(before, load={SELECT: 9.0, QUEUED: 4.0}, seconds=slower(2.5))
    assert CauseKind.IDLE_IN_TRANSACTION not in kinds(now, before)


def test_locks_that_are_held_longer_because_of_slow_flushes_are_no_cause_of_their_own():
    side = locked(SYNC, load=6.0, others={SYNC: 3.0})
    before = Side(load={SELECT: 2.0, UPDATE: 1.0, SYNC: 0.3})
    assert kinds(side, before)[0] is CauseKind.SLOW_WAL
    # no flush takes longer
    side.load[SYNC] = 0.1
    assert kinds(side, before)[0] is CauseKind.LOCK_HELD


def test_waits_for_locks_without_a_head_are_named_by_their_event():
    side = locked(BLOCKER)
    side.blocked = {}
    assert found(side).causes[0].event == "Lock/transactionid"


# -------------------------------------------------------------------------------------------- statements


def flipped(blocks=4000.0):
    return Side(
        load={SELECT: 9.0, UPDATE: 1.2}, commits=150.0, hit={"select": blocks, "update": 20.0},
        seconds={"select": 0.015, "update": 0.006},
    )  # fmt: skip


def test_a_statement_that_touches_more_blocks_a_call_is_the_cause():
    cause = found(flipped()).causes[0]
    assert cause.kind is CauseKind.MORE_BLOCKS
    assert cause.statements == ("select",)
    told = next(each for each in cause.evidence if each.code is EvidenceCode.BLOCKS)
    assert (told.value, told.reference) == (pytest.approx(4000.1), pytest.approx(10.1))
    assert CauseKind.CPU_LIMIT not in kinds(flipped())


def test_where_no_statement_touches_more_nothing_that_is_blocked_counts_for_that():
    before = Side(load={SELECT: 2.0, UPDATE: 0.2})
    side = locked(UPDATE, load=4.0, others={UPDATE: 4.0}, commits=150.0)
    assert CauseKind.MORE_BLOCKS not in kinds(side, before)


def test_waits_for_a_lock_are_no_part_of_a_statement_that_also_touches_more_blocks():
    side = locked(UPDATE)
    side.hit = {"select": 10.0, "update": 50.0}
    assert kinds(side) == [CauseKind.LOCK_HELD]


def busy(**stalls):
    """The share of a statement that touches more blocks, where others wait for WAL."""
    side = flipped()
    side.load = {SELECT: 4.0, UPDATE: 1.0, session("update", "LWLock/WALWrite"): 6.0}
    side.rates = {"cpu_stalled": 0.9, "io_stalled": 0.04, "host_user_cpu": 1.7, **stalls}
    side.seconds["select"] = 0.006
    causes = found(side, Side(rates={"cpu_stalled": 0.3, "io_stalled": 0.04})).causes
    return next((cause.share for cause in causes if cause.kind is CauseKind.MORE_BLOCKS), 0.0)


def test_what_waits_because_a_statement_that_touches_more_keeps_the_cpus_busy_counts_for_that():
    assert busy() > 0.9
    assert busy(io_stalled=0.7) < 0.5
    assert busy(run_queue_length=25.0) < 0.5


def test_a_few_more_blocks_are_no_other_plan():
    assert CauseKind.MORE_BLOCKS not in kinds(flipped(12.0))


def old(*, grows=True, steady=True):
    """Blocks a call that grow within the window, beside a session that stays."""
    draws = np.random.default_rng(8)
    opened = session("report", "Client/ClientRead", application="psql", state="idle in transaction")
    rates = {"blocks_hit": (200.0 * np.linspace(60, 300, 120) if grows else np.full(120, 36_000.0)).tolist()}
    side = replace(flipped(400.0), commits=200.0, rates={**rates, "blocks_read": [20.0] * 120})
    side.load[opened] = [1] * 120 if steady else draws.poisson(1.5, 120).tolist()
    side.hit["update"] = 200.0
    return side


def test_a_transaction_that_stays_open_while_blocks_a_call_grow_is_the_cause():
    cause = found(old()).causes[0]
    assert cause.kind is CauseKind.OLD_TRANSACTION
    assert cause.session.application == "psql"
    assert CauseKind.MORE_BLOCKS not in kinds(old())


SLOT = Holder(kind=HolderKind.SLOT, name="gone")


@pytest.mark.parametrize(
    ("horizon", "kind"),
    [
        (
            Horizon(holder=Holder(kind=HolderKind.SESSION, name="dump", pid=7), age=9000, held=600),
            CauseKind.OLD_TRANSACTION,
        ),
        (Horizon(holder=Holder(kind=HolderKind.SESSION, name="shop", pid=8), age=90, held=1), CauseKind.MORE_BLOCKS),
        (Horizon(holder=SLOT, age=1_000_000, held=0), CauseKind.OLD_TRANSACTION),
        (Horizon(holder=SLOT, age=100, held=0), CauseKind.MORE_BLOCKS),
    ],
)
def test_what_holds_back_vacuum_for_long_is_the_cause_of_blocks_that_grow(horizon, kind):
    value, reference = make(old(steady=False), 120, 1), make(Side(), 240, 2)
    cause = explain(replace(value, horizons=(horizon,)), reference).causes[0]
    assert cause.kind is kind
    assert cause.horizon == (horizon if kind is CauseKind.OLD_TRANSACTION else None)


@pytest.mark.parametrize("signs", [{"grows": False}, {"steady": False}])
def test_blocks_that_rose_at_once_or_without_an_old_transaction_are_another_plan(signs):
    assert kinds(old(**signs))[0] is CauseKind.MORE_BLOCKS


def test_statements_that_were_not_there_before_are_named():
    side = Side(load={SELECT: 2.0, UPDATE: 1.0, BULK: 6.0})
    explained = found(side)
    assert explained.outcome is Outcome.OTHER_MIX
    assert [cause.kind for cause in explained.causes] == [CauseKind.NEW_STATEMENTS]
    assert explained.causes[0].statements == ("bulk",)


def test_a_statement_whose_first_calls_were_counted_before_the_window_is_new_all_the_same():
    report = session("report", "IO/DataFileRead")
    side = Side(load={SELECT: 4.0, UPDATE: 2.0, report: 8.0}, commits=150.0)
    side.calls["report"], side.seconds["report"] = 0.02, 2.5
    before = Side()
    before.calls["report"], before.seconds["report"] = 0.001, 1.0
    cause = found(side, before).causes[0]
    assert (cause.kind, cause.statements) == (CauseKind.NEW_STATEMENTS, ("report",))
    assert cause.share == pytest.approx(0.65, abs=0.1)
    # it was called as often
    before.calls["report"] = 0.02
    assert CauseKind.NEW_STATEMENTS not in kinds(side, before)


def test_where_no_transaction_ends_statements_that_were_there_before_are_not_new():
    side = Side(load={SELECT: 0.1, session("update", "LWLock/BufferContent"): 8.0}, commits=0.0)
    before = Side(load={SELECT: 1.0, UPDATE: 0.05})
    stalled = found(side, before)
    assert stalled.outcome is Outcome.STALLED
    assert [(cause.kind, cause.event) for cause in stalled.causes] == [(CauseKind.EVENT, "LWLock/BufferContent")]
    del before.calls["update"], before.load[UPDATE]
    assert kinds(side, before) == [CauseKind.NEW_STATEMENTS]


def test_what_runs_longer_because_new_statements_take_the_cpus_counts_for_them():
    side = Side(load={SELECT: 6.0, UPDATE: 3.0, BULK: 2.0}, commits=150.0, rates={"run_queue_length": 12.0})
    cause = found(side).causes[0]
    assert cause.kind is CauseKind.NEW_STATEMENTS
    assert cause.share > 0.9
    side.rates["run_queue_length"] = 25.0
    assert kinds(side)[0] is CauseKind.NEIGHBOUR


def test_what_new_statements_read_and_run_is_no_sign_of_a_slow_disk_or_cpu():
    reads, runs = session("bulk", "IO/DataFileRead"), session("bulk", kind="parallel worker")
    side = Side(load={SELECT: 2.0, UPDATE: 1.0, reads: 4.0, runs: 4.0})
    assert {cause.kind for cause in found(side).causes} == {CauseKind.NEW_STATEMENTS}
    assert not {CauseKind.SLOW_IO, CauseKind.CPU_EACH} & set(kinds(replace(side, commits=150.0)))


def test_more_calls_in_each_transaction_are_told():
    side = Side(load={SELECT: 8.0, UPDATE: 1.0}, calls={"select": 16, "update": 1})
    cause = found(side).causes[0]
    assert cause.kind is CauseKind.MORE_CALLS
    assert cause.statements == ("select",)
    assert cause.evidence[0].value / cause.evidence[0].reference == pytest.approx(4, rel=0.05)


# ------------------------------------------------------------------------------- reading, writing and WAL


def reading(reads, **more):
    return Side(
        load={SELECT: 2.5, UPDATE: 1.0, READ: 6.0}, commits=150.0, seconds=slower(), read={"select": reads},
        **more,
    )  # fmt: skip


def test_more_reads_for_the_same_blocks_are_a_cache_that_is_too_small():
    assert kinds(reading(4.0))[0] is CauseKind.CACHE
    assert CauseKind.SLOW_IO not in kinds(reading(4.0))


def test_a_restart_is_told_where_the_cache_is_empty():
    restart = ArchiveEvent(moment=3, kind=EventKind.RESTARTED)
    assert EvidenceCode.RESTARTED in {each.code for each in found(reading(4.0, events=(restart,))).causes[0].evidence}


def test_as_many_reads_that_take_longer_are_slow_io():
    assert kinds(reading(0.1))[0] is CauseKind.SLOW_IO
    assert CauseKind.CACHE not in kinds(reading(0.1))


def test_without_counted_statements_reads_are_those_of_the_server():
    for reads, kind in ((4.0, CauseKind.CACHE), (0.1, CauseKind.SLOW_IO)):
        assert kinds(reading(reads, counted=False), Side(counted=False))[0] is kind


def flushing(wal, **more):
    return Side(
        load={SELECT: 2.0, UPDATE: 1.0, SYNC: 4.0, session("update", "LWLock/WALWrite"): 4.0}, commits=150.0,
        seconds={"select": 0.0025, "update": 0.06}, rates={"wal_bytes": wal, **more},
    )  # fmt: skip


def test_waits_for_wal_that_is_no_more_are_slow_flushes():
    assert kinds(flushing(75_000.0))[0] is CauseKind.SLOW_WAL


def test_waits_for_data_and_for_wal_together_are_one_slow_disk():
    side = flushing(75_000.0)
    side.load[READ] = 4.0
    assert kinds(side)[0] is CauseKind.SLOW_IO
    assert CauseKind.SLOW_WAL not in kinds(side)
    assert found(side).causes[0].share > 0.9


def test_much_more_wal_with_checkpoints_is_a_burst_and_names_who_writes_it():
    side = flushing(2e7, checkpoints_due=0.2)
    side.load[session("bulk", "LWLock/WALInsert")] = 1.0
    side.calls["bulk"], side.seconds["bulk"], side.wal["bulk"] = 0.01, 1.0, 1e7
    cause = found(side).causes[0]
    assert cause.kind is CauseKind.WAL_BURST
    assert cause.statements == ("bulk",)
    assert {"wal_bytes", "checkpoints_due"} <= {each.name for each in cause.evidence}
    assert not {CauseKind.SLOW_WAL, CauseKind.SLOW_IO} & set(kinds(side))


def test_waits_for_checkpoints_that_somebody_asks_for_are_part_of_a_burst():
    side = flushing(2e7, checkpoints_due=2.0)
    side.load = {SELECT: 2.0, UPDATE: 1.0, session("checkpoint", "IPC/CheckpointDone"): 5.0, SYNC: 1.0}
    assert kinds(side)[0] is CauseKind.WAL_BURST


def test_sorts_that_spill_are_told():
    side = Side(load={SELECT: 2.0, UPDATE: 1.0, session("select", "IO/BuffileWrite"): 5.0}, seconds=slower(),
                rates={"temporary_bytes": 2e7})  # fmt: skip
    assert kinds(side, Side(rates={"temporary_bytes": 0.0}))[0] is CauseKind.SPILL
    assert kinds(side, Side(rates={"temporary_bytes": 2e7}))[0] is CauseKind.SLOW_IO


# --------------------------------------------------------------------------------------------------- CPU


def test_less_cpu_for_sessions_that_are_ready_is_a_limit():
    side = running(3.0, 80.0, rates={"host_user_cpu": 0.6, "host_system_cpu": 0.15, "run_queue_length": 2.0})
    assert kinds(side)[0] is CauseKind.CPU_LIMIT


def test_cpu_that_a_control_group_withheld_is_a_limit_whatever_else_is_ready():
    before = Side(rates={"cpu_throttled": 0.0})
    side = running(2.5, 100.0, rates={"run_queue_length": 13.0, "cpu_throttled": 1.2})
    cause = found(side, before).causes[0]
    assert cause.kind is CauseKind.CPU_LIMIT
    assert cause.evidence[1].name == "cpu_throttled"
    side.rates["cpu_throttled"] = 0.01
    assert kinds(side, before)[0] is CauseKind.NEIGHBOUR


@pytest.mark.parametrize(("before", "told"), [(4.0, True), (2.0, False)])
def test_a_limit_is_told_with_its_cause_if_it_is_another_one_than_before(before, told):
    side = running(2.5, 100.0, rates={"cpu_throttled": 1.2, "cpu_limit": 2.0})
    cause = found(side, Side(rates={"cpu_throttled": 0.0, "cpu_limit": before})).causes[0]
    assert cause.kind is CauseKind.CPU_LIMIT
    assert [(each.value, each.reference) for each in cause.evidence if each.name == "cpu_limit"] == [
        (pytest.approx(2.0, rel=0.01), pytest.approx(4.0, rel=0.01))
    ] * told


def test_tasks_that_are_no_sessions_are_other_programs():
    side = running(2.5, 100.0, rates={"run_queue_length": 13.0})
    cause = found(side).causes[0]
    assert cause.kind is CauseKind.NEIGHBOUR
    others = next(each for each in cause.evidence if each.code is EvidenceCode.OTHERS)
    assert others.value - others.reference > 3


def test_cpu_that_the_hypervisor_took_is_told():
    assert kinds(running(2.5, 100.0, rates={"host_steal_cpu": 0.9, "host_user_cpu": 0.8}))[0] is CauseKind.STOLEN_CPU


def test_more_cpu_used_for_the_same_blocks_is_of_the_transactions():
    assert kinds(running(2.5, 100.0, rates={"run_queue_length": 8.5}))[0] is CauseKind.CPU_EACH


def test_more_transactions_than_the_cpus_serve_are_more_demand():
    side = running(4.0, 260.0, rates={"host_user_cpu": 1.55, "run_queue_length": 12.5})
    explained = found(side)
    assert explained.outcome is Outcome.SATURATED
    assert explained.causes[0].kind is CauseKind.DEMAND


def test_a_disk_of_which_more_transactions_ask_more_is_not_called_slow():
    side = Side(load={SELECT: 4.0, UPDATE: 2.0, READ: 9.0}, commits=300.0, seconds=slower())
    explained = found(side)
    assert explained.outcome is Outcome.SATURATED
    assert [cause.kind for cause in explained.causes][:1] == [CauseKind.DEMAND]
    assert CauseKind.SLOW_IO not in {cause.kind for cause in explained.causes}


def test_without_the_host_nobody_is_blamed_for_the_cpu():
    value, reference = make(running(2.5, 100.0), 120, 1), make(Side(), 240, 2)
    value, reference = (replace(each, rates={"commits": each.rates["commits"]}) for each in (value, reference))
    assert explain(value, reference).causes[0].kind is CauseKind.CPU


def test_memory_that_is_short_is_told_before_cpu_and_disks():
    assert kinds(running(3.0, 120.0, rates={"memory_stalled": 0.4}))[0] is CauseKind.MEMORY


def test_many_new_processes_and_connections_are_a_storm():
    rates = {"connections": 90.0, "page_faults": 40_000.0, "host_system_cpu": 1.0, "run_queue_length": 30.0}
    assert kinds(running(3.0, 120.0, rates=rates))[0] is CauseKind.CONNECTIONS
    # a pool that grew because of the slowdown
    assert CauseKind.CONNECTIONS not in kinds(running(3.0, 120.0, rates={**rates, "page_faults": 500.0}))
    # another program that forks
    assert CauseKind.CONNECTIONS not in kinds(running(3.0, 120.0, rates={**rates, "connections": 20.0}))


def test_parallel_workers_of_a_statement_that_reads_more_are_no_storm_of_connections():
    side = flipped()
    side.rates = {"connections": 26.0, "page_faults": 40_000.0, "run_queue_length": 30.0}
    side.load[replace(SELECT, kind="parallel worker")] = 9.0
    causes = found(side).causes
    assert causes[0].kind is CauseKind.MORE_BLOCKS
    assert causes[0].share > 0.9
    assert CauseKind.CONNECTIONS not in {cause.kind for cause in causes}


def test_sessions_that_are_stopped_while_they_write_wal_are_short_of_cpu_and_not_of_a_disk():
    side = flushing(75_000.0, cpu_stalled=0.8, io_stalled=0.04, host_user_cpu=0.5, host_system_cpu=0.2)
    before = Side(rates={"cpu_stalled": 0.1, "io_stalled": 0.03})
    assert kinds(side, before)[0] is CauseKind.CPU_LIMIT
    assert found(side, before).causes[0].share > 0.9
    side.rates["io_stalled"] = 0.8
    assert kinds(side, before)[0] is CauseKind.SLOW_WAL


def test_sessions_that_a_limit_stopped_while_they_write_wal_are_short_of_cpu_whatever_disks_do():
    rates = {"cpu_stalled": 0.1, "io_stalled": 0.3, "host_user_cpu": 0.5, "host_system_cpu": 0.2}
    before = Side(rates={"cpu_stalled": 0.1, "io_stalled": 0.03, "cpu_throttled": 0.0})
    assert kinds(flushing(75_000.0, **rates, cpu_throttled=0.7), before)[0] is CauseKind.CPU_LIMIT
    assert kinds(flushing(75_000.0, **rates, cpu_throttled=0.0), before)[0] is CauseKind.SLOW_WAL


def test_on_a_crowded_host_waits_for_wal_that_the_host_does_not_see_are_no_slow_disk():
    crowded = {"cpu_stalled": 0.95, "run_queue_length": 14.0}
    before = Side(rates={**crowded, "io_stalled": 0.05})
    assert kinds(flushing(75_000.0, **crowded, io_stalled=0.05), before)[0] is CauseKind.NEIGHBOUR
    assert kinds(flushing(75_000.0, **crowded, io_stalled=0.9), before)[0] is CauseKind.SLOW_WAL
    # the disk is as slow, and nobody waits for a CPU
    calm = {"cpu_stalled": 0.1, "io_stalled": 0.05}
    assert kinds(flushing(75_000.0, **calm), Side(rates=calm))[0] is CauseKind.SLOW_WAL


# ------------------------------------------------------------------------------------------- other events


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ("IPC/SyncRep", CauseKind.STANDBY),
        ("Client/ClientWrite", CauseKind.CLIENT),
        ("LWLock/BufferContent", CauseKind.EVENT),
        ("IPC/MessageQueueReceive", CauseKind.EVENT),
    ],
)
def test_other_waits_are_named(event, kind):
    cause = found(Side(load={SELECT: 2.0, UPDATE: 1.0, session("update", event): 7.0}, seconds=slower())).causes[0]
    assert cause.kind is kind
    assert event.startswith(cause.event)


# -------------------------------------------------------------------------------------------- no causes


def test_equal_windows_have_no_cause():
    assert not found(Side()).causes


def test_more_demand_alone_has_no_cause():
    more = found(Side(load={SELECT: 4.0, UPDATE: 2.0}, commits=400.0))
    assert more.outcome is Outcome.MORE
    assert not more.causes


def test_nothing_is_told_where_nothing_explains_enough():
    events = [f"LWLock/Lock{number}" for number in range(8)]
    load = {SELECT: 2.0, UPDATE: 1.0, **{session("update", event): 1.0 for event in events}}
    explained = found(Side(load=load, seconds=slower()))
    assert explained.outcome is Outcome.INCIDENT
    assert not explained.causes


WAITS = ("", "IO/DataFileRead", "IO/WalSync", "Lock/tuple", "LWLock/BufferMapping", "Client/ClientWrite", "IPC/SyncRep")


@st.composite
def sides(draw):
    load = {
        session(draw(st.sampled_from(["select", "update", "bulk"])), wait): draw(st.integers(0, 5))
        for wait in draw(st.sets(st.sampled_from(WAITS)))
    }
    blocked = {
        key: draw(st.integers(0, 5))
        for root in draw(st.sets(st.sampled_from([BLOCKER, SYNC, UPDATE, PREPARED, None])))
        for key in behind(TUPLE, root, draw(st.integers(0, 3)))
    }
    rates = {name: draw(st.integers(0, 50)) for name in draw(st.sets(st.sampled_from(sorted(HOST))))}
    return Side(load=load, blocked=blocked, rates=rates, commits=draw(st.integers(0, 300)), counted=draw(st.booleans()),
                hit={"select": draw(st.integers(0, 1000))}, read={"select": draw(st.integers(0, 10))})  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(sides(), sides())
def test_shares_are_shares_and_the_first_explains_most(value, reference):
    causes = found(value, reference, size=30).causes
    assert all(LEAST_SHARE <= cause.share <= 1 for cause in causes)
    tenths = [round(cause.share * 10) for cause in causes]
    assert tenths == sorted(tenths, reverse=True)
    assert len({(cause.kind, cause.session, cause.event) for cause in causes}) == len(causes)
