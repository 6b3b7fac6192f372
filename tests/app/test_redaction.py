"""A study without the texts of its queries: the same everywhere, whatever the texts were."""

from dataclasses import replace

from pgstrata.app.answer import hide_texts
from pgstrata.diagnosis.query_text import hash_query
from pgstrata.model.activity import ProcessCount, SessionCount, SessionState
from pgstrata.model.queries import QueryCount, QueryCounts
from pgstrata.model.query_plans import PlannedWith, PlanUse, QueryPlan
from pgstrata.model.runs import StatementLatency
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study
from studies import BASE, make_plan, make_run

TEXT = "select salary from staff where name = ?"
HASH = hash_query(TEXT)


def make_study():
    waiting = SessionCount(
        state=SessionState.WAITING, wait_type="Lock", event="tuple", query=TEXT, samples=3, blocker=TEXT
    )
    behind = replace(waiting, query=HASH, blocker="prepared transaction")
    worker = ProcessCount(
        kind="parallel worker", state=SessionState.RUNNING, wait_type="", event="", query=TEXT, samples=1
    )
    counted = QueryCount(query=TEXT, calls=1.0, seconds=1e-3, rows=1.0, blocks_hit=1.0, blocks_read=0.0)
    plan = QueryPlan(
        statement=TEXT, planned_with=PlannedWith.PARAMETERS, shape=("Seq Scan on staff",), text="Seq Scan on staff"
    )
    run = replace(
        make_run(BASE, 1, tps=100.0),
        sessions=(waiting, behind),
        processes=(worker,),
        query_plans=(plan,),
        queries=QueryCounts(queries=(counted,)),
        statements=(StatementLatency(text=f"{TEXT};", seconds=0.1),),
    )
    nothing = Fingerprint(facts={})
    return Study(
        name="s",
        plan=make_plan(),
        runs=(run,),
        host=nothing,
        client=nothing,
        environments={},
        created="",
        version="0",
        query_plans=(PlanUse(environment=BASE, cell=run.cell, plan=plan, runs=1),),
    )


def test_no_text_of_a_query_is_left_anywhere_and_equal_ones_stay_equal():
    hidden = hide_texts(make_study())
    assert "staff" not in repr(hidden)
    (run,) = hidden.runs
    assert {
        run.sessions[0].query,
        run.sessions[0].blocker,
        run.processes[0].query,
        run.queries.queries[0].query,
        run.statements[0].text,
    } == {HASH}


def test_what_is_no_text_stays():
    (run,) = hide_texts(make_study()).runs
    assert (run.sessions[1].query, run.sessions[1].blocker) == (HASH, "prepared transaction")
    assert hide_texts(hide_texts(make_study())) == hide_texts(make_study())


def test_figures_are_the_same():
    before, after = make_study().runs[0], hide_texts(make_study()).runs[0]
    assert after.measurements == before.measurements
    assert [count.samples for count in after.sessions] == [3, 3]
