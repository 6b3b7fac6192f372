from dataclasses import replace

from pgstrata.model.activity import SessionCount, SessionState, WaitProfile
from pgstrata.model.queries import QueryCount, QueryCounts
from pgstrata.model.query_plans import PlannedWith, QueryPlan
from pgstrata.store import catalogue
from pgstrata.store.database import transaction
from pgstrata.store.details import load_details, load_query_plans


def plan(statement, *shape, error=""):
    return QueryPlan(
        statement=statement, planned_with=PlannedWith.PARAMETERS, shape=shape, text="\n".join(shape), error=error
    )


def count(query, **more):
    return QueryCount(query=query, calls=1.5, seconds=0.25, rows=2.0, blocks_hit=3.0, blocks_read=0.0, **more)


def save(tmp_path, *records):
    path = tmp_path / catalogue.CATALOGUE
    catalogue.create_catalogue(path)
    connection = catalogue.open_for_writing(path)
    with transaction(connection):
        for record in records:
            catalogue.save_run(connection, record)
    return connection


def make_records(bench, *changes):
    runs = [run for block in bench.plan(3).blocks for run in block.runs]
    return [
        replace(bench.record(bench.header(run, bench.plan(3)), 1000.0), **change)
        for run, change in zip(runs, changes, strict=False)
    ]


def test_equal_plans_of_an_environment_are_kept_once_with_the_number_of_runs(tmp_path, bench):
    usual, other, none = plan("U", "Index Scan"), plan("U", "Seq Scan"), plan("S", error="no table")
    records = make_records(bench, *[{"query_plans": (usual, none)}] * 2, {"query_plans": (other, none)})
    records = [replace(record, environment="pg16") for record in records]
    found = load_query_plans(save(tmp_path, *records))
    assert [(use.plan, use.runs) for use in found] == [(usual, 2), (other, 1), (none, 3)]


def test_counts_are_read_back_as_they_were(tmp_path, bench):
    counts = QueryCounts(queries=(count("U", wal_bytes=7.5), count("S", jit_seconds=0.5)), lost="some")
    nothing = QueryCounts(queries=(), lost="")
    connection = save(tmp_path, *make_records(bench, {"queries": counts}, {"queries": nothing}, {}))
    assert {run: found["queries"] for run, found in load_details(connection).items()} == {1: counts, 2: nothing}
    with_counts = catalogue.load_runs(connection, metrics=(), series=False, sessions=True)
    assert [record.queries for record in with_counts] == [counts, nothing, None]
    assert {record.queries for record in catalogue.load_runs(connection, metrics=(), series=False, sessions=False)} == {
        None
    }


def test_counts_of_nothing_are_left_out(tmp_path, bench):
    counts = QueryCounts(queries=(replace(count("U"), calls=0.0), count("S")))
    never = SessionCount(state=SessionState.RUNNING, wait_type="", event="", query="", samples=0)
    waits = WaitProfile(hertz=100.0, counts=(never,))
    connection = save(tmp_path, *make_records(bench, {"queries": counts, "sessions": (never,), "waits": waits}))
    assert load_details(connection)[1] == {
        "queries": replace(counts, queries=counts.queries[1:]), "sessions": (), "waits": replace(waits, counts=())
    }  # fmt: skip
