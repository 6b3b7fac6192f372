"""Plans of a live server are read without costs and conditions, and texts that EXPLAIN cannot take say why."""

import pytest

from pgstrata.collectors.live.plans import (
    Explainable,
    explain_statement,
    explainable_statement,
    read_explainable,
    read_generic_plan,
)
from pgstrata.collectors.live.statements import EXPLAIN, OWN, is_own, is_own_use
from pgstrata.diagnosis.query_text import normalise
from pgstrata.errors import ParseError
from pgstrata.model.archive import StatementUse
from pgstrata.model.query_plans import PlanProblem

PLAN = b"""\
Nested Loop  (cost=0.57..16.62 rows=1 width=36)
  ->  Index Scan using orders_pkey on orders o  (cost=0.29..8.30 rows=1 width=8)
        Index Cond: (id = $1)
  ->  Seq Scan on stock s  (cost=0.00..8.31 rows=1 width=36)
        Filter: (note <> 'canary'::text)
"""


def test_a_plan_is_its_nodes_and_no_constant_cost_or_condition():
    found = read_generic_plan(PLAN)
    assert found.outline == ("Nested Loop", "  Index Scan using orders_pkey on orders o", "  Seq Scan on stock s")
    assert found.problem == ""
    cheaper = PLAN.replace(b"8.31 rows=1", b"9.99 rows=7").replace(b"canary", b"other")
    assert read_generic_plan(cheaper) == found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Seq Scan on stock s", b"Index Scan using stock_note on stock s"),
        (b"orders_pkey", b"orders_id"),
        (b"  ->  Seq", b"        ->  Seq"),
    ],
)
def test_another_node_index_or_order_is_another_shape(old, new):
    assert read_generic_plan(PLAN.replace(old, new)).shape != read_generic_plan(PLAN).shape


def test_of_a_plan_of_very_many_nodes_the_first_are_kept_and_all_count():
    many = [f"  ->  Seq Scan on part_{number}  (cost=0.00..1.00 rows=1 width=4)" for number in range(500)]
    text = "\n".join(["Append  (cost=0.00..9.00 rows=1 width=4)", *many])
    found, other = (read_generic_plan(each.encode()) for each in (text, text.replace("part_499", "part_500")))
    assert len(found.outline) == 101
    assert found.outline[-1] == "... and 401 more"
    assert found.outline == other.outline
    assert found.shape != other.shape


@pytest.mark.parametrize("text", [b"", b"nothing like a plan\n"])
def test_an_answer_without_a_node_is_an_error(text):
    with pytest.raises(ParseError, match="unknown shape of a plan"):
        read_generic_plan(text)


def test_texts_that_cannot_be_explained_say_why():
    rows = b"7\t\tselect a from t where b = $1\n8\tconstants\t\n"
    found = read_explainable(rows, ["7", "8", "9"])
    assert found == {
        "7": Explainable(text="select a from t where b = $1"),
        "8": Explainable(problem=PlanProblem.CONSTANTS),
        "9": Explainable(problem=PlanProblem.TEXT),
    }


@pytest.mark.parametrize("row", [b"7\n", b"7\t\t\n", b"7\tkind\tselect 1\n", b"7\t\tselect\t1\n"])
def test_a_row_of_an_unknown_shape_is_an_error(row):
    with pytest.raises(ParseError, match="unknown shape"):
        read_explainable(row, ["7"])


def test_constants_of_a_type_are_written_as_casts_which_parsers_take():
    text = "select a from t where b > now() - interval $1 and c = date  $2 and day = $3"
    expected = "select a from t where b > now() - $1::interval and c = $2::date and day = $3"
    assert explain_statement(text) == f"{EXPLAIN} {expected}"


def test_questions_for_plans_are_the_recorders_own_statements():
    assert is_own(normalise(explain_statement("SELECT a FROM t WHERE b = $1")))
    assert not is_own(normalise("EXPLAIN SELECT a FROM t"))

    asked = explainable_statement(["7", "8"], "public")
    assert OWN in asked
    assert "'7 8'" in asked
    assert "@" not in asked


@pytest.mark.parametrize("text", ["BEGIN READ ONLY", "SAVEPOINT $1", "ROLLBACK TO SAVEPOINT $1"])
def test_statements_around_plans_that_have_no_name_left_are_told_by_how_seldom_they_are(text):
    assert is_own_use(normalise(text), StatementUse(calls=2))
    assert not is_own_use(normalise(text), StatementUse(calls=50))
    assert not is_own_use(normalise("BEGIN"), StatementUse(calls=2))
    assert is_own_use(normalise("SELECT 1 AS pgstrata"), StatementUse(calls=50))
