"""Plans of two windows: the one that was seen longest counts, and a change is evidence of the cause."""

from dataclasses import replace

from archives import planned, session
from pgstrata.diagnosis.live.explain import explain
from pgstrata.diagnosis.live.plans import compare_seen_plans
from pgstrata.model.archive import ArchiveWindow, Span, StatementUse
from pgstrata.model.causes import CauseKind, EvidenceCode
from pgstrata.model.query_plans import LivePlan, LivePlans, PlanSource, SeenPlan

INDEX, SEQ = planned("Index Scan using stock_pkey on stock"), planned("Seq Scan on stock")
DENIED = LivePlan(problem="permission denied for table stock")


def seen(first, last, plan, statement="select", **more):
    return SeenPlan(statement=statement, first=first, last=last, plan=plan, **more)


def logged(first, last, plan, times):
    return seen(first, last, plan, source=PlanSource.LOGGED, times=times)


def window(begin, end, *plans):
    inside = tuple(each for each in plans if each.first < end and each.last >= begin)
    size = end - begin
    return ArchiveWindow(
        span=Span(begin=begin, end=end), unit=1, cell=1, looks=(1,) * size, sessions={}, rates={}, plans=inside
    )


def compare(*plans, order=()):
    return compare_seen_plans(window(600, 720, *plans), window(0, 600, *plans), order)


def test_a_change_is_told_with_the_time_between_both_looks():
    (change,) = compare(seen(5, 580, INDEX), seen(640, 715, SEQ)).changes
    assert change.changes == ("Index Scan using stock_pkey on stock -> Seq Scan on stock",)
    assert (change.after, change.by) == (580, 640)
    assert (change.value.plan, change.reference.plan) == (SEQ, INDEX)


def test_the_same_plan_in_both_is_no_change():
    assert compare(seen(5, 700, INDEX)) == LivePlans(alike=1)


def test_of_several_plans_the_one_that_was_seen_longest_counts():
    found = compare(seen(5, 300, INDEX), seen(310, 320, SEQ), seen(330, 590, INDEX), seen(610, 700, INDEX))
    assert found == LivePlans(alike=1)


def test_a_window_after_which_it_is_compared_tells_when_it_changed_as_well():
    plans = (seen(5, 580, SEQ), seen(640, 715, INDEX))
    (change,) = compare_seen_plans(window(0, 600, *plans), window(600, 720, *plans), ()).changes
    assert (change.after, change.by) == (580, 640)
    assert change.changes == ("Index Scan using stock_pkey on stock -> Seq Scan on stock",)


def test_of_logged_plans_the_most_frequent_counts_and_when_it_changed_is_not_known_where_both_were_seen():
    plans = (logged(0, 700, INDEX, 700), logged(500, 719, SEQ, 500))
    (change,) = compare(*plans).changes
    assert (change.value.plan, change.reference.plan) == (SEQ, INDEX)
    assert (change.after, change.by) == (None, None)
    assert compare(logged(0, 700, INDEX, 700), logged(610, 620, SEQ, 3)) == LivePlans(alike=1)


def test_generic_and_logged_plans_are_not_compared_with_each_other():
    assert compare(seen(5, 580, INDEX), logged(610, 700, SEQ, 50)) == LivePlans()
    both = compare(seen(5, 580, INDEX), seen(640, 715, SEQ), logged(5, 580, SEQ, 9), logged(640, 715, INDEX, 9))
    (change,) = both.changes
    assert (change.value.source, both.alike) == (PlanSource.GENERIC, 0)


def test_of_one_window_alone_nothing_is_said():
    assert compare(seen(640, 715, SEQ)) == LivePlans()
    assert compare(seen(5, 580, SEQ)) == LivePlans()


def test_plans_that_are_not_known_say_why_unless_one_was_seen():
    found = compare(seen(610, 610, DENIED), seen(5, 700, SEQ, "other"), seen(620, 630, DENIED, "other"))
    assert [each.statement for each in found.unknown] == ["select"]
    assert found.alike == 1


def test_statements_that_changed_most_come_first():
    plans = [each for key in "abc" for each in (seen(5, 580, INDEX, key), seen(640, 715, SEQ, key))]
    assert [change.statement for change in compare(*plans, order=("c", "a")).changes] == ["c", "a", "b"]


def test_what_differs_beyond_the_kept_nodes_is_not_called_another_order():
    alike = planned("Append", shape="1"), planned("Append", shape="2")
    (change,) = compare(seen(5, 580, alike[0]), seen(640, 715, alike[1])).changes
    assert change.changes == ("nodes beyond those that are kept differ",)


def slow(*plans):
    """A select that touches more blocks a call from second 600 on."""

    def side(begin, end, load, blocks, latency):
        size = end - begin
        use = StatementUse(
            calls=100.0 * size, seconds=100.0 * size * latency, rows=0.0, blocks_hit=100.0 * size * blocks
        )
        return replace(
            window(begin, end, *plans), sessions={session("select"): tuple(load + number % 2 for number in range(size))},
            rates={"commits": tuple(100.0 + number % 3 for number in range(size))}, statements={"select": use},
            counted=float(size), transactions=101.0 * size,
        )  # fmt: skip

    return explain(side(600, 720, 8, 4000.0, 0.08), side(0, 600, 1, 4.0, 0.01))


def evidence(why):
    cause = why.causes[0]
    assert cause.kind is CauseKind.MORE_BLOCKS
    return {each.code: each for each in cause.evidence}


def test_a_changed_plan_is_evidence_of_more_blocks_a_call():
    told = evidence(slow(seen(5, 580, INDEX), seen(640, 715, SEQ)))[EvidenceCode.PLAN]
    assert (told.name, told.reference, told.value) == ("select", 580.0, 640.0)


def uncounted(why_plans, blocks):
    """The same of a server that counts no statements, whose transactions touch so many blocks."""

    def side(begin, end, load, blocks):
        size = end - begin
        return replace(
            window(begin, end, *why_plans),
            sessions={session("select"): tuple(load + number % 2 for number in range(size))},
            rates={
                "commits": tuple(100.0 + number % 3 for number in range(size)), "blocks_hit": (blocks,) * size,
                "blocks_read": (0.0,) * size,
            },
        )  # fmt: skip

    causes = explain(side(600, 720, 8, blocks), side(0, 600, 1, 400.0)).causes
    return [cause for cause in causes if cause.kind is CauseKind.MORE_BLOCKS]


def test_where_nothing_was_counted_a_changed_plan_and_more_blocks_are_the_cause():
    changed = seen(5, 580, INDEX), seen(640, 715, SEQ)
    (cause,) = uncounted(changed, 40_000.0)
    assert cause.statements == ("select",)
    assert [each.code for each in cause.evidence] == [EvidenceCode.BLOCKS, EvidenceCode.PLAN]
    assert not uncounted(changed, 410.0)
    assert not uncounted((seen(5, 715, INDEX),), 40_000.0)


def test_without_a_changed_plan_there_is_none():
    assert EvidenceCode.PLAN not in evidence(slow(seen(5, 715, INDEX)))
    assert EvidenceCode.PLAN not in evidence(slow())
