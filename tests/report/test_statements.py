"""Plans and counts of single statements in `show --why`, in JSON and in the HTML report."""

import dataclasses
import json

import pytest

from pgstrata.model.queries import QueryCount, QueryCounts
from pgstrata.model.query_plans import PlannedWith, PlanUse, QueryPlan
from pgstrata.report.json.answer import answer_json
from rendering import render_html, render_why

_CELL = "simple-update-s10-c2"
_EVIL = "SELECT '<script>\x1b[31m' FROM t WHERE a = $1"


def use(
    environment, node, *, statement="UPDATE t SET a = $1 WHERE b = $2", planned_with=PlannedWith.PARAMETERS, error=""
):
    text = "" if error else f"{node}  (cost=0.29..8.31 rows=1 width=97)\n  Filter: (b = '<b>\x1b')"
    plan = QueryPlan(
        statement=statement, planned_with=planned_with, shape=() if error else (node,), text=text, error=error
    )
    return PlanUse(environment=environment, cell=_CELL, plan=plan, runs=3)


@pytest.fixture
def answer(desk):
    environments = (desk.environment("pg16", (("server", "16"),)), desk.environment("pg18", (("server", "18"),)))
    return desk.answer(environments=environments, effects=(1.0, 1.04), blocks=3, cells=(desk.cell(),))


def with_plans(answer, *uses):
    return dataclasses.replace(answer, study=dataclasses.replace(answer.study, query_plans=uses))


def test_a_plan_that_differs_is_shown_with_both_texts(answer):
    found = with_plans(
        answer,
        use("pg16", "Index Scan using t_b on t"),
        use("pg18", "Seq Scan on t"),
        use("pg16", "Result", statement="SELECT 1"),
        use("pg18", "Result", statement="SELECT 1"),
    )
    text = render_why(found)
    said = "The plan of UPDATE t SET a = $1 WHERE b = $2 differs: Index Scan using t_b on t -> Seq Scan on t."
    assert said in " ".join(text.split())
    assert "16:\n    Index Scan using t_b on t  (cost=0.29..8.31 rows=1 width=97)\n" in text
    assert "18:\n    Seq Scan on t  (cost=0.29..8.31 rows=1 width=97)\n" in text
    assert "1 statement has the same plan in both" in text
    assert max(map(len, text.splitlines())) <= 78
    (fields,) = json.loads(answer_json(found, why=True))["why"]["plans"]
    assert (fields["alike"], len(fields["differences"])) == (1, 1)
    assert fields["differences"][0]["changes"] == ["Index Scan using t_b on t -> Seq Scan on t"]
    page = render_html(found).replace("\xa0", " ")
    assert page.count("<h2>Plans</h2>") == 1
    assert "<summary>18 against 16: simple-update" in page


def test_plans_are_foreign_text(answer):
    found = with_plans(answer, use("pg16", "Seq Scan on t", statement=_EVIL), use("pg18", "Result", statement=_EVIL))
    page = render_html(found)
    assert "<script" not in page
    assert "<b>" not in page.split("<h2>Plans</h2>")[1].split("</section>")[0]
    assert "\x1b" not in page
    assert "\x1b" not in render_why(found)


def test_without_a_difference_the_report_says_nothing_and_the_text_one_sentence(answer):
    found = with_plans(answer, use("pg16", "Seq Scan on t"), use("pg18", "Seq Scan on t"))
    assert "<h2>Plans</h2>" not in render_html(found)
    assert "1 statement has the same plan in both" in render_why(found)


def test_statements_without_a_plan_and_other_ways_of_planning_are_said(answer):
    found = with_plans(
        answer,
        use("pg16", "", statement="SELECT x", error="column x does not exist"),
        use("pg18", "", statement="SELECT x", error="column x does not exist"),
        use("pg16", "Seq Scan on t"),
        use("pg18", "Index Scan using t_b on t", planned_with=PlannedWith.VALUES),
    )
    text = " ".join(render_why(found).split())
    assert "No plan of SELECT x: column x does not exist." in text
    assert "(planned for one value of each variable, before for parameters of any value)" in text


def counted(run, seconds, lost=""):
    count = QueryCount(
        query="UPDATE t SET a = ? WHERE b = ?", calls=1.0, seconds=seconds, rows=1, blocks_hit=4, blocks_read=0
    )
    return dataclasses.replace(run, queries=QueryCounts(queries=(count,), lost=lost))


def with_counts(answer, *, lost=""):
    runs = tuple(
        counted(run, 100e-6 if run.environment == "pg16" else 130e-6, lost if run.block == 1 else "")
        for run in answer.study.runs
    )
    return dataclasses.replace(answer, study=dataclasses.replace(answer.study, runs=runs))


def test_statements_that_the_server_counted_are_told_apart_by_calls_and_latency(answer):
    found = with_counts(answer, lost="somebody reset pg_stat_statements during the run")
    text = render_why(found)
    assert max(map(len, text.splitlines())) <= 78
    row = next(line for line in text.splitlines() if line.strip().startswith("UPDATE t SET"))
    assert {"100.0", "130.0", "1.00"} <= set(row.split())
    assert "+30.0" in text
    assert "means over 2 blocks" in text
    assert "Runs are left out here: somebody reset pg_stat_statements during the run." in " ".join(text.split())
    (fields,) = json.loads(answer_json(found, why=True))["why"]["queries"]
    assert fields["queries"][0]["by_latency"] == pytest.approx(30e-6)
    assert fields["queries"][0]["by_calls"] == 0


def test_without_counts_it_is_said_how_to_get_them(answer):
    text = " ".join(render_why(answer).split())
    assert text.count('settings.shared_preload_libraries = "pg_stat_statements" below [common]') == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"query_text": False}, "not kept with `query_text = false`"),
        ({"diagnosis": False}, "not kept with `diagnosis = false`"),
        ({}, "load pg_stat_statements in all environments"),
    ],
)
def test_why_no_calls_are_known_is_said_as_it_is(answer, changes, said):
    plan = answer.study.plan
    experiment = dataclasses.replace(plan.experiment, **changes)
    study = dataclasses.replace(answer.study, plan=dataclasses.replace(plan, experiment=experiment))
    assert said in " ".join(render_why(dataclasses.replace(answer, study=study)).split())


def test_a_library_that_is_loaded_is_not_asked_for_again(answer):
    plan = answer.study.plan
    loads = {"shared_preload_libraries": "pg_stat_statements, pg_wait_sampling"}
    environments = tuple(dataclasses.replace(each, settings=loads) for each in plan.experiment.environments)
    experiment = dataclasses.replace(plan.experiment, environments=environments)
    study = dataclasses.replace(answer.study, plan=dataclasses.replace(plan, experiment=experiment))
    text = " ".join(render_why(dataclasses.replace(answer, study=study)).split())
    assert "pg_stat_statements is loaded, but" in text
    assert "load pg_stat_statements in all" not in text
