"""Runs to comparisons: pairing, orientation, verdicts and warnings."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.compare import compare_study
from pgstrata.model.answer import ALL_CELLS, Interval, Lane, Verdict
from pgstrata.model.doubts import CountedDoubt, TooFewBlocks, Undecided
from pgstrata.model.experiment import ControlKind
from pgstrata.model.metrics import Measurement, Series
from pgstrata.model.runs import RunStatus, Validity
from studies import BASE, CELL, OTHER, codes, make_environment, make_plan, make_run, make_runs, noisy
from timing import least_seconds


def compare(other, base, *, metric="tps", blocks=12, plan=None):
    """The one comparison of the primary metric."""
    plan = plan or make_plan(metric=metric, blocks=blocks)
    runs = [*make_runs(OTHER, other, metric=metric), *make_runs(BASE, base, metric=metric)]
    (comparison,) = compare_study(plan, runs)
    return comparison


def spoil(runs, count, **changes):
    return [replace(run, **changes) if place < count else run for place, run in enumerate(runs)]


# ------------------------------------------------------------------------------------- verdict and effect


def test_a_clear_gain_of_throughput_is_better_with_its_ratio_and_interval():
    found = compare(noisy(1100, 12), noisy(1000, 12, shift=4))
    assert found.verdict is Verdict.BETTER
    assert found.effect == pytest.approx(1.1, abs=0.01)
    assert 1 < found.interval.low <= found.effect <= found.interval.high < 1.15
    assert found.interval.low <= found.equivalence_interval.low <= found.equivalence_interval.high
    assert (found.blocks, found.planned_blocks, found.runs, found.invalid) == (7, 12, 24, 0)
    assert (found.decided_at, found.lane, found.level, found.repeated_p) == (7, Lane.SEQUENTIAL, 0.045, 0.045)
    assert (found.confidence, found.exploratory, found.control) == (0.955, False, False)
    assert found.value == pytest.approx(1100, rel=0.01)
    assert found.baseline_value == pytest.approx(1000, rel=0.01)
    assert found.warnings == ()


def test_more_latency_is_worse_and_the_effect_is_not_turned_round():
    found = compare(noisy(0.0011, 12), noisy(0.001, 12, shift=4), metric="latency_mean")
    assert found.verdict is Verdict.WORSE
    assert found.effect == pytest.approx(1.1, abs=0.01)
    assert found.interval.low > 1


def test_a_real_difference_inside_the_threshold_is_negligible():
    assert compare([1010.0] * 12, [1000.0] * 12).verdict is Verdict.NEGLIGIBLE


def test_equal_values_everywhere_are_equivalent():
    found = compare([1000.0] * 8, [1000.0] * 8, blocks=8)
    assert found.verdict is Verdict.EQUIVALENT
    assert found.interval == Interval(low=1.0, high=1.0)


def test_an_undecided_comparison_says_what_it_can_exclude():
    base = [1000.0] * 7
    found = compare([1000 * math.exp(d) for d in (0.1, -0.05, 0.02, 0.01, -0.08, 0.03, -0.02)], base, blocks=7)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.warnings == (Undecided(low=found.interval.low, high=found.interval.high),)
    assert (found.interval.low, found.interval.high) == pytest.approx((0.923, 1.105), abs=0.001)


def test_below_seven_blocks_there_is_an_effect_but_no_interval():
    found = compare([1200.0] * 5, [1000.0] * 5)
    assert found.verdict is Verdict.INSUFFICIENT
    assert found.effect == pytest.approx(1.2)
    assert found.interval is None
    assert found.equivalence_interval is None
    assert found.warnings == (TooFewBlocks(blocks=5, needed=7), CountedDoubt(code="incomplete", number=5, of=12))


def test_a_plan_that_is_too_short_for_any_interval_is_told_so():
    found = compare([1200.0] * 4, [1000.0] * 4, blocks=4)
    assert found.warnings == (TooFewBlocks(blocks=4, needed=7, planned=4),)


def test_without_any_run_there_is_still_an_answer():
    (found,) = compare_study(make_plan(), [])
    assert found.verdict is Verdict.INSUFFICIENT
    assert (found.effect, found.value, found.baseline_value, found.blocks, found.runs) == (None, None, None, 0, 0)


def test_blocks_beyond_the_twenty_fourth_are_not_looked_at():
    values = [1000 * math.exp((0.05 + 0.01 * block) * (-1) ** block) for block in range(30)]
    found = compare(values, [1000.0] * 30, blocks=30)
    assert (found.verdict, found.blocks, found.decided_at) == (Verdict.INCONCLUSIVE, 24, None)


def test_an_unknown_metric_is_refused():
    with pytest.raises(ValueError, match="unknown metric: speed"):
        compare_study(make_plan(), [], metrics=["speed"])


def test_two_runs_of_the_same_block_are_refused():
    with pytest.raises(ValueError, match="two runs of pg18 in block 3"):
        compare_study(make_plan(), [make_run(OTHER, 3, tps=1.0), make_run(OTHER, 3, tps=2.0)])


# ------------------------------------------------------------------------------------------- which pairs


def test_a_block_counts_only_with_a_usable_value_in_both_arms():
    other = make_runs(OTHER, [1100.0] * 8)
    other[0] = replace(other[0], validity=Validity.INVALID)
    other[1] = replace(other[1], status=RunStatus.FAILED)
    other[2] = replace(other[2], measurements=())
    for place, value in ((3, 0.0), (4, math.nan), (5, math.inf)):
        other[place] = replace(other[place], measurements=(Measurement(metric="tps", value=value),))
    other[6] = replace(other[6], validity=Validity.SUSPECT)
    (found,) = compare_study(make_plan(blocks=8), [*other, *make_runs(BASE, [1000.0] * 7)])
    assert (found.blocks, found.runs, found.invalid) == (1, 15, 2)
    assert found.effect == pytest.approx(1.1)


def test_pairs_are_formed_by_block_and_not_by_place():
    drift = [1000.0 * 2**k for k in range(12)]
    other = make_runs(OTHER, [1.1 * value for value in drift])
    (found,) = compare_study(make_plan(), [*reversed(other), *make_runs(BASE, drift)])
    assert found.interval.low == pytest.approx(1.1)
    assert found.interval.high == pytest.approx(1.1)


def test_secondary_metrics_are_exploratory_and_left_out_where_nobody_measured_them():
    runs = [
        make_run(name, block, tps=value, latency_p99=1 / value, wal_per_tx=9.0)
        for name, value in ((BASE, 1000.0), (OTHER, 1200.0))
        for block in range(1, 13)
    ]
    first, second = compare_study(make_plan(), runs)
    assert (first.metric, first.exploratory, first.verdict) == ("tps", False, Verdict.BETTER)
    assert (second.metric, second.exploratory, second.verdict) == ("latency_p99", True, Verdict.BETTER)
    assert [found.metric for found in compare_study(make_plan(), runs, metrics=["wal_per_tx"])] == ["tps", "wal_per_tx"]


def test_a_primary_metric_other_than_throughput_leaves_throughput_exploratory():
    runs = [make_run(name, block, tps=1000.0, latency_p99=0.1) for name in (BASE, OTHER) for block in range(1, 13)]
    found = compare_study(make_plan(metric="latency_p99"), runs)
    assert [(one.metric, one.exploratory) for one in found] == [("latency_p99", False), ("tps", True)]


def test_comparisons_come_in_the_order_of_the_plan():
    environments = [make_environment(name) for name in ("b", "z", "a")]
    found = compare_study(make_plan(environments, clients=(8, 1)), [])
    assert [(one.environment, one.cell) for one in found] == [
        (name, cell) for name in ("z", "a") for cell in (ALL_CELLS, "simple-update-s10-c8", "simple-update-s10-c1")
    ]


# ---------------------------------------------------------------------------------------------- warnings


def test_an_open_comparison_that_was_stopped_early_says_so_and_a_decided_one_does_not():
    wild = [1000 * math.exp(d) for d in (0.1, -0.05, 0.02, 0.01, -0.08, 0.03, -0.02, 0.06, -0.07)]
    found = compare(wild, [1000.0] * 10)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert codes(found) == ["undecided", "incomplete"]
    assert found.warnings[1] == CountedDoubt(code="incomplete", number=9, of=12)
    decided = compare([1100.0] * 9, [1000.0] * 10)
    assert (decided.verdict, codes(decided)) == (Verdict.BETTER, [])


@pytest.mark.parametrize(("spoiled", "expected"), [(2, []), (3, ["imbalance"])])
@pytest.mark.parametrize("arm", [OTHER, BASE])
def test_many_invalid_runs_of_one_arm_are_an_imbalance(spoiled, expected, arm):
    runs = {name: make_runs(name, [value] * 12) for name, value in ((OTHER, 1100.0), (BASE, 1000.0))}
    runs[arm] = spoil(runs[arm], spoiled, validity=Validity.INVALID)
    (found,) = compare_study(make_plan(), runs[OTHER] + runs[BASE])
    assert codes(found) == expected
    assert (found.blocks, found.invalid) == (7, spoiled)
    assert all((one.environment, one.number, one.of) == (arm, spoiled, 12) for one in found.warnings)


def test_suspect_runs_count_and_are_mentioned():
    runs = spoil(make_runs(OTHER, [1100.0] * 12), 1, validity=Validity.SUSPECT) + make_runs(BASE, [1000.0] * 12)
    (found,) = compare_study(make_plan(), runs)
    assert found.blocks == 7
    assert codes(found) == ["suspect_runs"]


def test_an_environment_most_of_whose_runs_collapsed_has_collapsed_and_has_no_effect():
    runs = spoil(make_runs(OTHER, [1100.0] * 12), 7, status=RunStatus.COLLAPSED) + make_runs(BASE, [1000.0] * 12)
    (found,) = compare_study(make_plan(), runs)
    assert found.verdict is Verdict.COLLAPSED
    assert (found.effect, found.interval, found.equivalence_interval) == (None, None, None)
    assert (found.runs, found.invalid) == (24, 0)


def test_a_few_collapsed_runs_are_a_warning():
    runs = spoil(make_runs(OTHER, [1100.0] * 12), 2, status=RunStatus.COLLAPSED) + make_runs(BASE, [1000.0] * 12)
    (found,) = compare_study(make_plan(), runs)
    assert found.verdict is Verdict.BETTER
    assert codes(found) == ["collapsed_runs"]


@pytest.mark.parametrize(("also_other", "code"), [(False, "baseline_collapsed"), (True, "both_collapsed")])
def test_a_collapsed_baseline_leaves_nothing_to_compare_with(also_other, code):
    base = spoil(make_runs(BASE, [1000.0] * 20), 12, status=RunStatus.COLLAPSED)
    other = spoil(make_runs(OTHER, [1100.0] * 20), 12 * also_other, status=RunStatus.COLLAPSED)
    (found,) = compare_study(make_plan(blocks=20), base + other)
    assert (found.verdict, found.effect, found.interval) == (Verdict.INSUFFICIENT, None, None)
    assert codes(found) == [code]


@pytest.mark.parametrize(("value", "expected"), [(1100.0, ["control_differs"]), (1000.0, [])])
def test_a_control_that_differs_casts_doubt(value, expected):
    plan = make_plan([make_environment(BASE), make_environment(OTHER, control=ControlKind.SAME)])
    found = compare([value] * 12, [1000.0] * 12, plan=plan)
    assert found.control
    assert codes(found) == expected


# -------------------------------------------------------------------------------------------- invariances

values = st.lists(st.integers(500, 2000).map(float), min_size=24, max_size=24)


def numbers(found):
    """Effect and ends of both intervals; infinite where there is none."""
    spans = (found.interval, found.equivalence_interval)
    ends = [(span.low, span.high) if span else (math.inf, math.inf) for span in spans]
    return [math.inf if found.effect is None else found.effect, *(end for pair in ends for end in pair)]


@given(values, st.sampled_from([1e-6, 0.37, 1e5]))
@settings(max_examples=30, deadline=None)
def test_another_unit_changes_nothing(drawn, factor):
    found = compare(drawn[:12], drawn[12:])
    scaled = compare([v * factor for v in drawn[:12]], [v * factor for v in drawn[12:]])
    assert scaled.verdict is found.verdict
    assert numbers(scaled) == pytest.approx(numbers(found), rel=1e-9)


@given(values)
@settings(max_examples=30, deadline=None)
def test_swapped_arms_turn_verdict_and_interval_round(drawn):
    found, swapped = compare(drawn[:12], drawn[12:]), compare(drawn[12:], drawn[:12])
    mirror = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
    assert swapped.verdict is mirror.get(found.verdict, found.verdict)
    assert swapped.decided_at == found.decided_at
    if found.effect is not None:
        assert swapped.effect == pytest.approx(1 / found.effect)
        assert swapped.interval.low == pytest.approx(1 / found.interval.high)
        assert swapped.interval.high == pytest.approx(1 / found.interval.low)


@given(values)
@settings(max_examples=30, deadline=None)
def test_a_metric_of_the_other_direction_turns_only_the_verdict_round(drawn):
    higher, lower = compare(drawn[:12], drawn[12:]), compare(drawn[:12], drawn[12:], metric="latency_p95")
    mirror = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
    assert lower.verdict is mirror.get(higher.verdict, higher.verdict)
    assert numbers(lower) == pytest.approx(numbers(higher))


@given(values, st.permutations(range(24)))
@settings(max_examples=30, deadline=None)
def test_the_order_in_which_runs_are_given_changes_nothing(drawn, order):
    runs = make_runs(OTHER, drawn[:12]) + make_runs(BASE, drawn[12:])
    assert compare_study(make_plan(), [runs[k] for k in order]) == compare_study(make_plan(), runs)


@given(values)
@settings(max_examples=30, deadline=None)
def test_the_interval_contains_the_effect(drawn):
    found = compare(drawn[:12], drawn[12:])
    assert found.effect is None or found.interval.low <= found.effect <= found.interval.high


@pytest.mark.alone
def test_five_thousand_runs_are_compared_in_less_than_a_second():
    names = [f"e{k}" for k in range(10)]
    clients = range(1, 22)
    metrics = ("tps", "server_cpu_per_tx", "client_cpu_per_tx", "latency_p50", "latency_p95", "latency_p99")
    plan = make_plan([make_environment(name) for name in names], clients=tuple(clients), blocks=24)
    rng = np.random.default_rng(1)
    runs = [
        make_run(
            name, block, cell=f"simple-update-s10-c{c}", **dict(zip(metrics, rng.lognormal(0, 0.03, 6), strict=True))
        )
        for name in names
        for c in clients
        for block in range(1, 25)
    ]
    assert len(compare_study(plan, runs)) == 9 * (21 * 6 + 1)
    assert least_seconds(lambda: compare_study(plan, runs), 1.0) < 1.0


@pytest.mark.parametrize(
    ("metric", "ours", "theirs", "expected"),
    [
        ("checkpoints", 1.0, 0.0, ["checkpoints_differ"]),
        ("checkpoints", 1.0, 1.0, []),
        ("autovacuums", 3.0, 1.0, ["autovacuums_differ"]),
        ("wal_per_tx", 7600.0, 1600.0, ["wal_differs"]),
        ("wal_per_tx", 7600.0, 7000.0, []),
        ("wal_per_tx", 3.0, 1.0, []),
    ],
)
def test_what_happened_beside_the_runs_of_one_arm_only_is_said(metric, ours, theirs, expected):
    plan = make_plan(blocks=7)
    runs = [
        make_run(name, block, tps=1000.0, **{metric: value})
        for name, value in (("pg18", ours), ("pg16", theirs))
        for block in range(1, 8)
    ]
    (found,) = [each for each in compare_study(plan, runs, metrics=()) if each.environment == "pg18"]
    assert codes(found) == expected


def test_wal_that_differs_is_told_by_the_medians_that_tables_show():
    """One run right after a checkpoint does not move them."""
    wal = {"pg18": [3000.0, 3000.0, 1500.0], "pg16": [1300.0, 1300.0, 1400.0]}
    runs = [
        make_run(name, block, tps=1000.0, wal_per_tx=value)
        for name, values in wal.items()
        for block, value in enumerate(values, 1)
    ]
    (found,) = [each for each in compare_study(make_plan(blocks=3), runs, metrics=()) if each.environment == "pg18"]
    (doubt,) = [each for each in found.warnings if each.code == "wal_differs"]
    assert doubt.values == (3000.0, 1300.0)


def busy_beside(runs, busy):
    """The runs, with the share of the CPUs that others used beside them, by environment and block."""
    return [
        replace(
            run,
            measurements=(
                *run.measurements,
                Measurement(metric="neighbour_share", value=busy.get((run.environment, run.block), 0.0)),
            ),
        )
        for run in runs
    ]


def test_an_arm_twice_as_fast_beside_uneven_background_load_in_seven_of_nine_blocks_is_faster():
    runs = [*make_runs(OTHER, noisy(2000, 9)), *make_runs(BASE, noisy(1000, 9, 1))]
    busy = {(OTHER if block % 2 else BASE, block): 0.5 for block in range(1, 8)}
    (found,) = compare_study(make_plan(), busy_beside(runs, busy), metrics=())
    assert (found.verdict, found.effect) == (Verdict.BETTER, pytest.approx(2, rel=0.02))


def test_a_block_with_background_load_beside_one_arm_only_counts_and_is_told():
    runs = [*make_runs(OTHER, noisy(100, 6)), *make_runs(BASE, noisy(100, 6, 1))]
    busy = {(OTHER, 3): 0.5, (BASE, 3): 0.1, (OTHER, 4): 0.6, (BASE, 4): 0.5, (BASE, 5): 0.9}
    runs = busy_beside(runs, busy)
    (comparison,) = [
        found for found in compare_study(make_plan(), runs) if found.cell == CELL and found.metric == "tps"
    ]
    assert comparison.blocks == 6
    (doubt,) = [found for found in comparison.warnings if found.code == "neighbours_differ"]
    assert doubt.number == 2
    together = [
        replace(
            run, together="t", series=(Series(metric="round_tps", times=(0.0, 1.0), values=(run.value("tps"),) * 2),)
        )
        for run in runs
    ]
    (comparison,) = [
        found for found in compare_study(make_plan(), together) if found.cell == CELL and found.metric == "tps"
    ]
    assert comparison.blocks == 6
