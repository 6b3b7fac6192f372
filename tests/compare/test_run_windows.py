"""Runs of an environment as a window: one cell a run, and nothing of it is lost or counted twice."""

import math
from dataclasses import replace

import pytest

from pgstrata.compare.causes.run_windows import make_run_window, shared_runs, statement_key
from pgstrata.diagnosis.live.explain import explain_runs
from pgstrata.model.activity import ProcessCount, SessionCount, SessionState
from pgstrata.model.archive import SessionClass
from pgstrata.model.explanation import Outcome
from pgstrata.model.metrics import Series
from pgstrata.model.queries import QueryCount, QueryCounts
from pgstrata.model.query_plans import PlannedWith, PlanUse, QueryPlan
from pgstrata.model.runs import RunStatus, Validity
from studies import BASE, CELL, OTHER, make_experiment, make_run, noisy

UPDATE, SELECT = "update t set a = ?", "select ?"
EXPERIMENT = make_experiment()
(SHAPE,) = EXPERIMENT.cells
"""Four clients."""


def seen(state, samples, event="", query="", blocker=""):
    wait_type, _, name = event.partition("/")
    return SessionCount(state=state, wait_type=wait_type, event=name, query=query, samples=samples, blocker=blocker)


def counts(waiting, running, idle):
    """Samples of 600 looks at four clients: these numbers of sessions on average."""
    return (
        seen(SessionState.WAITING, round(600 * waiting), "IO/WalSync", UPDATE),
        seen(SessionState.AWAKE, round(600 * running), query=SELECT),
        seen(SessionState.CLIENT, round(600 * idle)),
    )


def runs(environment, rates, sessions, **more):
    return [
        replace(make_run(environment, block, tps=rate), sessions=sessions, **more)
        for block, rate in enumerate(rates, start=1)
    ]


def window(found, plans=()):
    return make_run_window(found, SHAPE, plans).window


def test_load_is_that_of_sessions_in_a_statement_and_looks_are_at_all_clients():
    found = window(runs(BASE, noisy(1000, 3), counts(1.0, 0.5, 2.5)))
    assert found.looks == (600, 600, 600)
    load = {each: sums for each, sums in found.sessions.items() if each.is_load}
    assert {(each.event, sums) for each, sums in load.items()} == {("WalSync", (600,) * 3), ("", (300,) * 3)}
    assert {each.application for each in load} == {SHAPE.driver}
    assert found.rates["commits"] == tuple(noisy(1000, 3))


def test_figures_by_the_second_become_means_of_runs_and_a_single_disk_is_not_all_disks():
    series = (
        Series(metric="host_user_cpu", times=(1, 2, 3), values=(1.0, math.nan, 2.0)),
        Series(metric="disk_iops", times=(1,), values=(7.0,), subject="sda"),
    )
    found = window(runs(BASE, (1000, 1000), counts(1, 1, 2), series=series))
    assert found.rates["host_user_cpu"] == (1.5, 1.5)
    assert "disk_iops" not in found.rates


def test_statements_are_sums_over_the_transactions_of_runs_of_which_nothing_was_lost():
    query = QueryCount(query=UPDATE, calls=2.0, seconds=0.003, rows=2.0, blocks_hit=8.0, blocks_read=0.5)
    whole, lost = (QueryCounts(queries=(query,), lost=text) for text in ("", "evicted"))
    records = [*runs(BASE, (1000, 1000), counts(1, 1, 2), queries=whole)]
    records += [replace(run, queries=lost) for run in runs(BASE, (1000,), counts(1, 1, 2))]
    found = window(records)
    assert (found.counted, found.transactions) == (120.0, 120_000.0)
    use = found.statements[statement_key(UPDATE)]
    assert (use.calls, use.seconds, use.blocks_hit) == pytest.approx((240_000, 360, 960_000))


def test_processes_are_beside_the_load_and_parallel_workers_are_part_of_it():
    processes = (
        ProcessCount(
            kind="parallel worker", state=SessionState.AWAKE, wait_type="", event="", query=SELECT, samples=60
        ),
        ProcessCount(
            kind="checkpointer", state=SessionState.WAITING, wait_type="IO", event="DataFileSync", query="", samples=6
        ),
    )
    found = window(runs(BASE, (1000,), counts(1, 1, 2), processes=processes))
    kinds = {each.kind: each.is_load for each in found.sessions if each.kind != "client backend"}
    assert kinds == {"parallel worker": True, "checkpointer": False}


@pytest.mark.parametrize(
    ("blocker", "kind", "statement"),
    [
        (UPDATE, "client backend", statement_key(UPDATE)),
        ("prepared transaction", "", ""),
        ("walsender", "walsender", ""),
    ],
)
def test_who_blocked_is_known_by_its_statement(blocker, kind, statement):
    sessions = (seen(SessionState.WAITING, 60, "Lock/tuple", UPDATE, blocker), seen(SessionState.CLIENT, 2340))
    ((blocking, number),) = window(runs(BASE, (1000, 1000), sessions)).blocked.items()
    assert (blocking.root.kind, blocking.root.statement, number) == (kind, statement, 120)
    assert isinstance(blocking.root, SessionClass)


def test_texts_are_known_by_their_hashes_and_hashes_stay_as_they_are():
    hidden = statement_key(SELECT)
    assert statement_key(hidden) == hidden
    found = make_run_window(runs(BASE, (1000,), counts(1, 1, 2)), SHAPE, ())
    assert found.texts == {statement_key(UPDATE): UPDATE, hidden: SELECT}


def planned(*shape, statement="UPDATE t SET a = $1", error="", environment=BASE):
    plan = QueryPlan(statement=statement, planned_with=PlannedWith.PARAMETERS, shape=shape, text="", error=error)
    return PlanUse(environment=environment, cell=CELL, plan=plan, runs=5)


def test_the_usual_plan_of_a_statement_is_that_of_its_window():
    found = window(runs(BASE, (1000,), counts(1, 1, 2)), (planned("Seq Scan on t"), planned("Index Scan using a on t")))
    ((plan),) = found.plans
    assert (plan.statement, plan.plan.outline) == (statement_key(UPDATE), ("Seq Scan on t",))


def test_only_blocks_of_both_with_samples_and_valid_runs_count():
    records = [
        *runs(BASE, noisy(1000, 5), counts(1, 1, 2)),
        *runs(OTHER, noisy(1000, 4), counts(1, 1, 2)),
    ]
    records[0] = replace(records[0], validity=Validity.INVALID)
    records[1] = replace(records[1], status=RunStatus.FAILED)
    records[2] = replace(records[2], sessions=())
    ours, theirs = shared_runs(records, CELL, OTHER, BASE)
    assert [run.block for run in ours] == [run.block for run in theirs] == [4]


def compare(rate, sessions, *, number=8, before=None, paced=False, effect=0.03):
    ours = window(runs(OTHER, noisy(rate, number), sessions), (planned("Seq Scan on t"),))
    theirs = window(
        runs(BASE, noisy(1000, number, 1), before or counts(1.0, 0.5, 2.5)), (planned("Index Scan using a on t"),)
    )
    return explain_runs(ours, theirs, effect=effect, paced=paced)


def test_an_environment_that_waits_longer_is_slower_and_rows_add_up():
    found = compare(500, counts(2.5, 0.3, 1.2))
    assert found.outcome is Outcome.INCIDENT
    assert found.rows[0].event == "IO/WalSync"
    assert sum(row.difference for row in found.rows) == pytest.approx(found.load.value - found.load.reference)
    assert found.load.value == pytest.approx(2.8)


def test_clients_that_wait_for_their_transactions_make_no_demand():
    assert compare(1500, counts(0.6, 0.5, 2.9)).outcome is Outcome.FASTER
    assert compare(1500, counts(1.5, 0.75, 1.75)).outcome is Outcome.MORE
    assert compare(1500, counts(0.6, 0.5, 2.9), paced=True).outcome is Outcome.MORE


def test_what_is_below_the_threshold_of_the_experiment_is_no_difference():
    sessions = counts(1.05, 0.525, 2.425)
    assert compare(1000, sessions, effect=0.03).outcome is Outcome.INCIDENT
    assert compare(1000, sessions, effect=0.2).outcome is Outcome.SAME


def test_too_few_runs_give_no_interval():
    assert compare(500, counts(2.5, 0.3, 1.2), number=4).outcome is Outcome.UNKNOWN


def test_plans_that_differ_have_no_time():
    (change,) = compare(500, counts(2.5, 0.3, 1.2)).plans.changes
    assert (change.after, change.by) == (None, None)
    assert change.changes == ("Index Scan using a on t -> Seq Scan on t",)
