import json
from pathlib import Path

import pytest

from pgstrata.collectors.plans import parse_plans, parse_shape, render_plans
from pgstrata.errors import ParseError

CAPTURES = Path(__file__).parents[2] / "captures" / "plans"
CASES = sorted(path.parent for path in CAPTURES.glob("*/*/expected.json"))


@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}-{case.name}" for case in CASES])
def test_every_capture_gives_the_expected_shapes(case):
    found = parse_plans((case / "plans.txt").read_bytes())
    expected = json.loads((case / "expected.json").read_text())
    assert [list(plan.shape) for plan in found] == [entry["shape"] for entry in expected]
    assert [plan.error for plan in found] == [entry.get("error", "") for entry in expected]
    assert {plan.planned_with.value for plan in found} == {entry["planned_with"] for entry in expected}


def test_captures_of_every_way_of_asking_are_there():
    assert {case.parent.name for case in CASES} >= {"9.6", "13", "14", "15", "16", "17", "18"}


@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}-{case.name}" for case in CASES])
def test_evidence_is_read_back_as_it_was_written(case):
    plans = parse_plans((case / "plans.txt").read_bytes())
    assert parse_plans(render_plans(plans)) == plans


def test_costs_conditions_and_estimates_are_no_part_of_a_shape():
    text = "Index Scan using k on t  (cost={0} rows={1} width=4)\n  Index Cond: (a = {1})"
    assert (
        parse_shape(text.format("0.1..2.2", 7)) == parse_shape(text.format("1..9", 8)) == ("Index Scan using k on t",)
    )


def test_a_long_line_that_is_no_node_is_told_at_once():
    assert parse_shape(f"a{' ' * 400_000})\nSeq Scan on t  (cost=0.00..8.31 rows=1 width=36)") == ("Seq Scan on t",)


def test_jit_and_planned_workers_are_part_of_it():
    text = (
        "Gather  (cost=1..2 rows=1 width=1)\n  Workers Planned: 2\n  ->  Parallel Seq Scan on t  (cost=1..2 rows=1 width=1)\n"
        "JIT:\n  Functions: 4\n  Options: Inlining false, Optimization false, Expressions true, Deforming true"
    )
    assert parse_shape(text) == ("Gather", "  2 workers planned", "  Parallel Seq Scan on t", "JIT")


def test_parts_of_a_plan_are_named_alike_in_all_versions():
    old = "Result  (cost=1..2 rows=1 width=1)\n  InitPlan 1 (returns $0)\n    ->  Seq Scan on t  (cost=1..2 rows=1 width=1)"
    assert (
        parse_shape(old)
        == parse_shape(old.replace(" (returns $0)", ""))
        == ("Result", "  InitPlan", "    Seq Scan on t")
    )


def test_evidence_of_an_unknown_shape_is_named():
    for evidence in (b"> SELECT 1\n", b"statement (planned with love)\n", b"statement (planned with values)\nhm\n"):
        with pytest.raises(ParseError):
            parse_plans(evidence)
