"""Metrics say what a recorder told, and nothing that a stranger wrote."""

import os
import subprocess
import sys

import pytest

from archives import START, behind, counted, session, use
from openmetrics import read_openmetrics
from pgstrata.app.watching.cost import Cost, CostReader, process_cost
from pgstrata.app.watching.metrics import FAMILIES, MOST_SERIES, measure
from pgstrata.app.watching.recent import OTHER, WINDOW, Recent
from pgstrata.model.archive import ArchiveEvent, EventKind, SessionsLook
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.incidents import Incident, IncidentKind
from pgstrata.ports.recording import RecordedSecond
from pgstrata.report.live.openmetrics import FamilyType, MetricsFormat, render_metrics

COST = Cost(cpu=1.5, resident=60_000_000, archive=5_000_000)
LOCK = session("update", "Lock/tuple")
RUNNING = session("select")
SECRET = "s3cret"


def look(counts, blocked=None):
    return SessionsLook(counts=counts, blocked=blocked or {})


def second(number, counts=None, *, commits=100.0, blocked=None, **more):
    """A second with a look, and with commits unless these are None."""
    rates = {} if commits is None else {"commits": commits, "rollbacks": 1.0, "connections": 12.0}
    found = None if counts is None else look(counts, blocked)
    return RecordedSecond(moment=START + number, look=found, server=rates, server_seconds=1.0, took=0.02, **more)


def told(*seconds, events=()):
    recent = Recent()
    recent.begin({}, ())
    for each in seconds:
        recent.follow(each)
    for kind in events:
        recent.note(ArchiveEvent(moment=START, kind=kind, detail=SECRET))
    return recent


def read(recent, at, cost=COST):
    """Samples by name and label, at a second; the output has to be OpenMetrics."""
    text = render_metrics(measure(recent.read(float(START + at)), cost), MetricsFormat.OPENMETRICS)
    return {
        (name, *(value for _, value in labels)): number
        for name, family in read_openmetrics(text).items()
        for labels, number in family.samples.items()
    }


def test_load_is_a_mean_over_the_last_seconds_by_wait_class():
    recent = told(*(second(number, {LOCK: 4, RUNNING: 1} if number % 2 else {RUNNING: 1}) for number in range(20)))
    found = read(recent, 20)
    # seconds 6 to 19: seven of fourteen with locks
    assert found["pgstrata_load", "Lock"] == pytest.approx(2.0)
    assert found["pgstrata_load", "running"] == 1
    assert found["pgstrata_load", "IO"] == 0
    assert found["pgstrata_active_session_seconds", "Lock"] == 40
    assert found["pgstrata_active_session_seconds", "running"] == 20
    assert found["pgstrata_up",] == 1


def test_time_per_transaction_is_load_by_throughput():
    found = read(told(*(second(number, {RUNNING: 3}, commits=50.0) for number in range(30))), 29)
    assert found["pgstrata_time_per_transaction_seconds",] == pytest.approx(3 / 50)
    assert found["pgstrata_transactions",] == pytest.approx(1500)
    assert found["pgstrata_rollbacks",] == pytest.approx(30)


def test_rates_over_longer_intervals_count_for_all_their_seconds():
    seconds = [second(number, {RUNNING: 3}, commits=None) for number in range(20)]
    seconds[10] = RecordedSecond(
        moment=START + 10, look=look({RUNNING: 3}), server={"commits": 6.0}, server_seconds=10.0
    )
    found = read(told(*seconds), 19)
    assert found["pgstrata_transactions",] == 60
    assert found["pgstrata_time_per_transaction_seconds",] == pytest.approx(3 / 6)


def test_without_a_commit_there_is_no_time_per_transaction():
    found = read(told(*(second(number, {LOCK: 3}, commits=0.0) for number in range(5))), 4)
    assert ("pgstrata_time_per_transaction_seconds",) not in found
    assert found["pgstrata_transactions",] == 0


def test_what_was_never_counted_is_absent():
    found = read(told(second(0, {RUNNING: 1}, commits=None)), 0)
    assert not {name for name, *_ in found} & {
        "pgstrata_transactions", "pgstrata_statement_calls", "pgstrata_statement_seconds", "pgstrata_host_cpu_seconds",
        "pgstrata_connections", "pgstrata_archive_saved_seconds",
    }  # fmt: skip


def test_blocked_sessions_are_the_most_of_the_last_seconds():
    calm, blocked = {RUNNING: 1}, behind(LOCK, held=30, sessions=2) | behind(LOCK, pid=12, held=90, sessions=3)
    recent = told(second(0, calm), second(1, {LOCK: 5}, blocked=blocked), *(second(n, calm) for n in range(2, 30)))
    found = read(recent, 29)
    assert (found["pgstrata_blocked_sessions",], found["pgstrata_oldest_blocker_held_seconds",]) == (0, 0)
    recent = told(second(0, calm), second(1, {LOCK: 5}, blocked=blocked), second(2, calm))
    found = read(recent, 2)
    assert (found["pgstrata_blocked_sessions",], found["pgstrata_oldest_blocker_held_seconds",]) == (5, 90)


def test_idle_in_transaction_is_no_load():
    idle = session("update", "Client/ClientRead", state="idle in transaction")
    found = read(told(second(0, {idle: 4}), second(1, {idle: 2})), 1)
    assert found["pgstrata_idle_in_transaction_sessions",] == 3
    assert found["pgstrata_load", "Client"] == 0


def test_a_server_that_does_not_answer_is_down_and_its_gap_is_counted():
    recent = told(*(second(number, {RUNNING: 1}) for number in range(10)), second(10, commits=None))
    assert read(recent, 13)["pgstrata_up",] == 1
    assert read(recent, 14)["pgstrata_up",] == 0
    for number in range(11, 40):
        recent.follow(second(number, commits=None))
    found = read(recent, 39)
    assert found["pgstrata_up",] == 0
    assert found["pgstrata_gap_seconds",] == 30
    assert found["pgstrata_recorder_looks",] == 10
    assert found["pgstrata_recorder_look_seconds",] == pytest.approx(0.2)
    assert not {name for name, *_ in found} & {"pgstrata_load", "pgstrata_connections", "pgstrata_blocked_sessions"}


def test_seconds_that_the_recorder_left_out_are_a_gap():
    assert read(told(second(0, {}), second(5, {})), 5)["pgstrata_gap_seconds",] == 4


def test_a_recorder_that_has_stopped_telling_has_no_server_that_is_up():
    recent = told(*(second(number, {RUNNING: 1}) for number in range(10)))
    found = read(recent, 9 + WINDOW)
    assert found["pgstrata_up",] == 0
    assert ("pgstrata_load", "running") not in found


def test_statements_are_summed_up():
    uses = counted({"42": use(calls=10, seconds=2.0), "(others)": use(calls=5, seconds=0.5)})
    found = read(told(second(0, {}, counted=uses), second(10, {}, counted=uses)), 10)
    assert found["pgstrata_statement_calls",] == 30
    assert found["pgstrata_statement_seconds",] == pytest.approx(5.0)


def test_cpu_of_the_host_is_known_where_it_was_read():
    rates = {"host_user_cpu": 1.5, "host_steal_cpu": 0.25, "run_queue_length": 7.0}
    seconds = [second(number, {}, host=rates, host_seconds=float(size)) for number, size in ((0, 1), (1, 1), (3, 2))]
    found = read(told(*seconds), 3)
    assert found["pgstrata_host_cpu_seconds", "user"] == 6
    assert found["pgstrata_host_cpu_seconds", "steal"] == 1
    assert ("pgstrata_host_cpu_seconds", "system") not in found


def test_cpu_of_the_host_does_not_count_for_a_time_in_which_it_was_not_read():
    rates = {"host_user_cpu": 1.5}
    first, again = (second(number, {}, host=rates, host_seconds=1.0) for number in (0, 600))
    assert read(told(first, again), 600)["pgstrata_host_cpu_seconds", "user"] == 3


def test_a_clock_that_is_set_back_takes_nothing_from_a_counter_and_leaves_no_old_seconds_in_a_mean():
    before = [second(3600 + number, {LOCK: 9}) for number in range(20)]
    recent = told(*before, *(second(number, {RUNNING: 1}) for number in range(3)))
    found = read(recent, 2)
    assert found["pgstrata_gap_seconds",] == 0
    assert (found["pgstrata_load", "Lock"], found["pgstrata_load", "running"]) == (0, 1)


def test_events_are_counted_by_kind_without_their_detail():
    found = read(told(second(0, {}), events=[EventKind.RESTARTED, EventKind.LOST, EventKind.RESTARTED]), 0)
    assert found["pgstrata_events", "server_restarted"] == 2
    assert found["pgstrata_events", "connection_lost"] == 1
    assert found["pgstrata_events", "statistics_reset"] == 0


def test_the_recorders_own_cost_is_told():
    recent = told(second(0, {}))
    recent.saved(START)
    found = read(recent, 0)
    assert found["pgstrata_recorder_cpu_seconds",] == 1.5
    assert found["pgstrata_recorder_resident_bytes",] == 60_000_000
    assert found["pgstrata_archive_bytes",] == 5_000_000
    assert found["pgstrata_archive_saved_seconds",] == START


def an_incident(begin=START):
    return Incident(
        kind=IncidentKind.SLOWER, begin=begin, begin_interval=ValueInterval(low=begin - 3, high=begin + 2),
        found=begin + 40, factor=2.0, peak=3.0, throughput=50.0, usual_throughput=100.0, load=8.0, usual_load=8.0,
    )  # fmt: skip


def test_an_incident_is_told_while_it_lasts():
    recent = told(second(0, {}))
    assert read(recent, 0)["pgstrata_incident",] == 0
    recent.alarm(an_incident())
    recent.alarm(an_incident(START - 7))
    found = read(recent, 0)
    assert (found["pgstrata_incident",], found["pgstrata_incident_begin_seconds",]) == (1, START - 7)
    recent.alarm(None)
    found = read(recent, 0)
    assert found["pgstrata_incident",] == 0
    assert ("pgstrata_incident_begin_seconds",) not in found


def everything():
    """A recorder that was told texts of strangers wherever there may be some."""
    strange = session(SECRET, f"{SECRET}/{SECRET}", application=SECRET, kind="client backend", state="active")
    recent = Recent()
    recent.begin({"database": SECRET}, (SECRET,))
    recent.learn({"42": SECRET})
    rates = dict.fromkeys(
        ("host_user_cpu", "host_system_cpu", "host_interrupt_cpu", "host_iowait_cpu", "host_steal_cpu"), 1.0
    )
    uses = counted({SECRET: use(calls=10, seconds=2.0)})
    recent.follow(
        second(0, {strange: 2}, blocked=behind(strange, root=strange), host=rates, host_seconds=1.0, counted=uses)
    )
    recent.note(ArchiveEvent(moment=START, kind=EventKind.MISSED, detail=SECRET))
    recent.alarm(an_incident())
    recent.saved(START)
    return recent


@pytest.mark.parametrize("form", MetricsFormat)
def test_no_text_of_a_stranger_becomes_a_metric(form):
    found = everything().read(float(START))
    assert SECRET not in render_metrics(measure(found, COST), form)
    assert found.sums.sessions[OTHER] == 2


def test_the_number_of_series_is_bounded():
    measured = measure(everything().read(float(START)), COST)
    assert tuple(each.family for each in measured) == FAMILIES
    for each in measured:
        assert set(each.values) == set(each.family.values or ("",)), each.family.name
    assert sum(len(each.values) for each in measured) == MOST_SERIES <= 100


def test_counters_end_in_total_and_names_in_their_unit():
    for family in FAMILIES:
        assert family.name.startswith("pgstrata_")
        assert family.name.endswith("_total") == (family.type is FamilyType.COUNTER)
        assert family.base.endswith(f"_{family.unit}" if family.unit else "")
        assert bool(family.label) == bool(family.values)
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_the_cost_of_this_process_and_of_the_archive_is_read(tmp_path):
    (tmp_path / "archive.sqlite").write_bytes(b"x" * 100_000)
    before = sum(os.times()[:4])
    cost = CostReader(archive=tmp_path, psql=lambda: None).read()
    # each of the four times is counted in ticks of 10 ms
    assert before - 0.05 <= cost.cpu <= sum(os.times()[:4]) + 0.05
    assert cost.resident > 10_000_000
    assert 100_000 <= cost.archive < 200_000
    assert CostReader(archive=tmp_path / "missing", psql=lambda: None).read().archive == 0


def test_the_cost_of_a_child_is_read_and_of_no_other_process():
    words = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()  # a process that was just started may not have its memory counted yet
        found = process_cost(child.pid, parent=os.getpid())
        elsewhere = process_cost(child.pid, parent=os.getppid())
        child.communicate(b"\n")
    assert found is not None
    assert found.resident > 0
    assert elsewhere is None
    assert process_cost(2**31, parent=os.getpid()) is None


def test_cpu_of_a_psql_that_has_ended_is_not_taken_back(tmp_path, monkeypatch):
    from pgstrata.app.watching import cost as module

    used = {1: 5.0}
    monkeypatch.setattr(
        module, "process_cost", lambda pid, parent=None: module.ProcessCost(cpu=used.get(pid, 0.0), resident=1)
    )
    pid = [1]
    reader = CostReader(archive=tmp_path, psql=lambda: pid[0])
    before = reader.read().cpu
    pid[0] = None
    assert reader.read().cpu >= before >= 5.0
