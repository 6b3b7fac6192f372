"""Plans that changed, in the answer, with both outlines, and for programs; foreign names are text."""

import json
from dataclasses import replace

import pytest

from archives import planned, session
from pgstrata.diagnosis.live.explain import explain
from pgstrata.model.archive import ArchiveFacts, ArchiveWindow, Span, StatementUse
from pgstrata.model.explanation import Chosen, Explained
from pgstrata.model.query_plans import LivePlan, LivePlans, PlanProblem, PlanSource, SeenPlan
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.blocks.text import emit_text
from pgstrata.report.live.answer import answer_sentences
from pgstrata.report.live.document import make_explanation
from pgstrata.report.live.json import explanation_json
from pgstrata.report.live.plans import plan_blocks, say_plan_change, say_when

BEGIN = 1_795_711_200
NASTY = "<script>alert('x')</script>\x1b[31m\u202e"
INDEX = planned("Limit", "  Index Scan using stock_pkey on stock")
TEXTS = {"select": "select note from stock where id = ?"}


def side(begin, size, load, blocks, *plans, latency):
    use = StatementUse(calls=100.0 * size, seconds=100.0 * size * latency, rows=0.0, blocks_hit=100.0 * size * blocks)
    return ArchiveWindow(
        span=Span(begin=begin, end=begin + size), unit=1, cell=1, looks=(1,) * size,
        sessions={session("select"): tuple(load + number % 2 for number in range(size))},
        rates={"commits": tuple(100.0 + number % 3 for number in range(size))}, statements={"select": use},
        counted=float(size), transactions=101.0 * size, plans=plans,
    )  # fmt: skip


def seen(first, last, plan, statement="select"):
    return SeenPlan(statement=statement, first=BEGIN + first, last=BEGIN + last, plan=plan)


def explained(plan=None, *others):
    """A select that became slow, with another plan from second 40 on."""
    after = plan or planned("Limit", "  Seq Scan on stock")
    value = side(BEGIN, 120, 8, 4000.0, seen(40, 115, after), *others, latency=0.08)
    reference = side(BEGIN - 600, 600, 1, 4.0, seen(-595, -20, INDEX), latency=0.01)
    span = Span(begin=BEGIN - 600, end=BEGIN + 120)
    facts = ArchiveFacts(span=span, facts={}, limits=(), detailed_since=span.begin)
    chosen = Chosen(window=value.span, comparison=reference.span, around=span, clipped=False)
    return Explained(archive="shop", facts=facts, chosen=chosen, explanation=explain(value, reference), texts=TEXTS)


def words(found):
    return " ".join(emit_text(make_explanation(found, "1")).split())


def test_the_answer_says_that_the_plan_changed_when_and_how():
    when = say_when(BEGIN - 20, BEGIN + 40)
    _, cause, plan, *_ = answer_sentences(explained())
    begin = "Most likely: select note from stock where id = ? touched more blocks a call, with another plan"
    assert cause.startswith(begin)
    assert cause.endswith(f"and its plan changed {when}")
    assert plan == (
        f"The plan of select note from stock where id = ? changed {when}: "
        "Index Scan using stock_pkey on stock -> Seq Scan on stock"
    )


def test_without_a_known_plan_the_cause_is_as_open_as_it_is():
    found = explained(INDEX)
    said = list(answer_sentences(found))
    assert "plan, parameters or the size of the tables changed" in said[1]
    assert not any("The plan of" in text for text in said)


def test_the_document_has_both_outlines_and_what_they_are():
    page, said = emit_page(make_explanation(explained(), "1")), words(explained())
    assert "Limit\n  Index Scan using stock_pkey on stock" in page
    assert "Limit\n  Seq Scan on stock" in page
    assert "before:" in said
    assert "Plans are generic ones, for parameters of any value" in said


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ("permission denied for table stock", "permission denied for table stock"),
        (PlanProblem.SUPERUSER, "the recorder's role is a superuser"),
        (PlanProblem.ELSEWHERE, "it runs in another database than the recorder's"),
        (PlanProblem.CONSTANTS, "its text has constants or several statements"),
        (PlanProblem.LENGTH, "its text is too long"),
        (PlanProblem.TEXT, "pg_stat_statements has no text of it"),
    ],
)
def test_why_there_is_no_plan_is_said(problem, said):
    found = explained(None, seen(50, 50, LivePlan(problem=problem), "update"))
    assert f"No plan of query update: {said}" in words(found)


def test_many_changes_and_many_without_a_plan_are_cut():
    found = explained()
    (change,) = found.explanation.plans.changes
    unknown = tuple(seen(1, 1, LivePlan(problem="x"), str(number)) for number in range(9))
    (section,) = plan_blocks(LivePlans(changes=(change,) * 8, alike=3, unknown=unknown), TEXTS)
    text = str(section)
    assert "The plans of 2 other statements changed as well." in text
    assert "3 statements have the same plan in both." in text
    assert "No plans of 3 other statements either." in text


def test_where_no_plan_is_known_there_is_no_section():
    assert not list(plan_blocks(LivePlans(), TEXTS))


def test_a_logged_plan_is_called_one_and_has_no_time_where_both_were_seen():
    (change,) = explained().explanation.plans.changes
    logged = replace(change, value=replace(change.value, source=PlanSource.LOGGED), after=None, by=None)
    assert say_plan_change(logged, TEXTS) == (
        "The plan of select note from stock where id = ? that auto_explain logged most often differs: "
        "Index Scan using stock_pkey on stock -> Seq Scan on stock"
    )


def test_foreign_names_are_text_everywhere():
    found = explained(planned("Limit", f"  Seq Scan on {NASTY}"))
    page = emit_page(make_explanation(found, "1"))
    assert "<script>" not in page
    for text in (page, emit_text(make_explanation(found, "1")), explanation_json(found)):
        assert "\x1b" not in text
        assert "\u202e" not in text or text.startswith("{")


def test_programs_get_both_plans_and_the_times():
    found = explained(None, seen(50, 50, LivePlan(problem=PlanProblem.TEXT), "update"))
    plans = json.loads(explanation_json(found))["plans"]
    (change,) = plans["changes"]
    assert (change["statement"], change["after"], change["by"]) == ("select", BEGIN - 20, BEGIN + 40)
    assert change["changes"] == ["Index Scan using stock_pkey on stock -> Seq Scan on stock"]
    assert change["reference"] == {
        "first": BEGIN - 595, "last": BEGIN - 20, "outline": ["Limit", "  Index Scan using stock_pkey on stock"]
    }  # fmt: skip
    assert plans["unknown"] == [{"statement": "update", "problem": "no text"}]
    assert plans["alike"] == 0


def test_a_change_that_is_no_part_of_what_became_slow_is_not_in_the_answer():
    found = explained()
    (change,) = found.explanation.plans.changes
    other = replace(found.explanation, plans=LivePlans(changes=(replace(change, statement="other"),)))
    assert not any("The plan of" in text for text in answer_sentences(replace(found, explanation=other)))
