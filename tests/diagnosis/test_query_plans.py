from hypothesis import given
from hypothesis import strategies as st

from pgstrata.diagnosis.queries import compare_plans, describe_change
from pgstrata.model.query_plans import PlannedWith, PlanUse, QueryPlan

INDEX = ("Update on t", "  Index Scan using t_pkey on t")
SEQ = ("Update on t", "  Seq Scan on t")


def use(environment, statement, shape, *, runs=3, error="", cell="c"):
    plan = QueryPlan(
        statement=statement, planned_with=PlannedWith.PARAMETERS, shape=shape, text="\n".join(shape), error=error
    )
    return PlanUse(environment=environment, cell=cell, plan=plan, runs=runs)


def compare(*uses):
    return compare_plans(uses, environment="b", reference="a", cell="c")


def test_a_plan_of_another_shape_is_a_difference_and_says_how():
    found = compare(use("a", "U", INDEX), use("b", "U", SEQ), use("a", "S", SEQ), use("b", "S", SEQ))
    assert found.alike == 1
    (difference,) = found.differences
    assert difference.changes == ("Index Scan using t_pkey on t -> Seq Scan on t",)
    assert (difference.plan.shape, difference.reference_plan.shape) == (SEQ, INDEX)


def test_the_usual_plan_counts_and_another_one_in_some_runs_is_said():
    found = compare(use("a", "U", INDEX), use("b", "U", INDEX, runs=5), use("b", "U", SEQ, runs=2))
    assert (found.differences, found.unsteady) == ((), ("U",))


def test_a_statement_without_a_plan_is_no_difference():
    found = compare(use("a", "U", INDEX), use("b", "U", (), error="no table"))
    assert (found.differences, found.alike, found.unexplained) == ((), 0, (("U", "no table"),))


def test_plans_of_other_cells_and_of_one_environment_alone_say_nothing():
    assert compare(use("a", "U", INDEX), use("b", "U", SEQ, cell="other")) is None
    assert compare() is None


def test_jit_workers_and_nodes_are_told_apart():
    before = ("Aggregate", "  Gather", "    2 workers planned", "    Parallel Seq Scan on t")
    assert describe_change(before, ("Aggregate", "  Seq Scan on t", "JIT")) == (
        "JIT is used",
        "no longer 2 workers planned",
        "Gather, Parallel Seq Scan on t -> Seq Scan on t",
    )
    assert describe_change((*SEQ, "JIT"), SEQ) == ("JIT is not used",)
    assert describe_change(("Limit",), ("Limit", "  Sort")) == ("in addition Sort",)
    assert describe_change(("a", "  b", "  c"), ("a", "  b", "    c")) == (
        "the same nodes are joined in another order",
    )


@given(
    st.lists(st.sampled_from(["A", "  B", "  2 workers planned", "JIT", "  C"])),
    st.lists(st.sampled_from(["A", "  B", "JIT"])),
)
def test_every_change_is_described(before, after):
    assert before == after or describe_change(before, after)
