"""Headlines over several cells and environments, controls, exploratory cells, floors, and what early looks do."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.compare import compare_study, threshold_of
from pgstrata.model.answer import ALL_CELLS, Verdict
from pgstrata.model.doubts import NamedDoubt, TooFewBlocks
from pgstrata.model.experiment import ControlKind
from pgstrata.model.runs import RunStatus
from pgstrata.stats.boundaries import boundaries_of
from studies import (
    BASE,
    CELL,
    OTHER,
    cell_of,
    codes,
    headline,
    make_environment,
    make_plan,
    make_run,
    make_runs,
    simulate,
)

THREE = (1, 4, 16)
CONTROL = make_environment(f"{BASE}-control", control=ControlKind.SAME)


def versions(*names):
    return [make_environment(BASE), *(make_environment(name, name.removeprefix("pg")) for name in names)]


# --------------------------------------------------------------------------------------------- over all cells


def test_the_headline_is_the_geometric_mean_over_the_cells_of_a_block():
    plan = make_plan(clients=THREE, blocks=7)
    ratios = {1: 1.1, 4: 1.0, 16: 1.21}
    runs = [
        run
        for c in THREE
        for name, value in ((BASE, 1000.0), (OTHER, 1000.0 * ratios[c]))
        for run in make_runs(name, [value] * 7, cell=cell_of(c))
    ]
    found = headline(compare_study(plan, runs), OTHER)
    assert found.effect == pytest.approx(1.1)
    assert found.value == pytest.approx(1100)
    assert found.baseline_value == pytest.approx(1000)
    assert (found.verdict, found.exploratory, found.level) == (Verdict.BETTER, False, 0.045)
    assert (found.blocks, found.runs) == (7, 42)


def test_only_blocks_with_all_cells_count_in_the_headline():
    plan = make_plan(clients=THREE, blocks=12)
    runs = simulate(plan, {OTHER: 0.2})
    lost = {(OTHER, cell_of(4), 2), (BASE, cell_of(16), 5)}
    kept = [run for run in runs if (run.environment, run.cell, run.block) not in lost]
    short = [replace(run, status=RunStatus.FAILED) if run.block > 8 else run for run in kept]
    assert headline(compare_study(plan, short), OTHER).blocks == 6


def test_with_one_cell_the_comparison_is_the_headline_itself():
    (found,) = compare_study(make_plan(), simulate(make_plan(), {OTHER: 0.2}))
    assert (found.cell, found.exploratory, found.adjusted_p) == (CELL, False, None)


def test_cells_of_several_are_exploratory_and_each_judged_alone():
    plan = make_plan(versions(OTHER, "pg17"), clients=THREE, blocks=24)
    found = compare_study(plan, simulate(plan, {OTHER: 0.3}))
    cells = [one for one in found if one.cell != ALL_CELLS]
    assert len(cells) == 6
    assert {one.exploratory for one in cells} == {True}
    assert {one.level for one in cells} == {0.045}
    assert all(one.decided_at == 7 for one in cells if one.environment == OTHER)


def test_the_headline_sees_what_no_cell_sees_alone():
    plan = make_plan(clients=tuple(range(1, 10)), blocks=12)
    found = compare_study(plan, simulate(plan, {OTHER: 0.045}, sd=0.05, seed=3))
    assert headline(found, OTHER).verdict is Verdict.BETTER
    assert [one.verdict for one in found if one.cell != ALL_CELLS].count(Verdict.BETTER) < 9


# ---------------------------------------------------------------------------------------------- the family


def test_headlines_share_the_error_probability_and_later_ones_get_what_found_ones_leave():
    names = ("pg17", OTHER, "pg19")
    plan = make_plan(versions(*names), blocks=24)
    found = {one.environment: one for one in compare_study(plan, simulate(plan, {"pg17": 0.6, OTHER: 0.6}, sd=0.06))}
    shared = boundaries_of(24).at(0.045 / 3)
    assert (found["pg17"].level, found["pg17"].decided_at) == (shared.alpha, shared.first)
    assert found["pg17"].confidence == 1 - shared.alpha
    assert found["pg19"].level == 0.045


def test_a_control_is_judged_alone_and_takes_nothing_from_the_others():
    plan = make_plan([*versions(OTHER), CONTROL], blocks=24)
    found = {one.environment: one for one in compare_study(plan, simulate(plan, {OTHER: 0.3}))}
    assert (found[OTHER].level, found[OTHER].decided_at) == (0.045, 7)
    assert (found[CONTROL.name].level, found[CONTROL.name].control) == (0.045, True)
    assert found[CONTROL.name].verdict is Verdict.EQUIVALENT


def test_a_control_in_several_cells_has_a_headline_too_and_its_cells_are_adjusted_among_themselves():
    plan = make_plan([*versions(OTHER), CONTROL], clients=THREE, blocks=12)
    effects = {OTHER: 0.3, (CONTROL.name, cell_of(4)): 0.3}
    found = compare_study(plan, simulate(plan, effects))
    assert headline(found, CONTROL.name).control
    (loud,) = [one for one in found if one.environment == CONTROL.name and one.cell == cell_of(4)]
    assert (loud.verdict, loud.repeated_p) == (Verdict.BETTER, 0.045)
    assert loud.adjusted_p == pytest.approx(0.045 * 3)
    (cell,) = [one for one in found if one.environment == OTHER and one.cell == cell_of(4)]
    assert cell.adjusted_p == pytest.approx(0.045)


def test_too_few_blocks_for_the_level_of_many_headlines_are_told_with_what_is_needed():
    plan = make_plan(versions("pg17", OTHER, "pg19"), blocks=7)
    found = compare_study(plan, simulate(plan, dict.fromkeys(("pg17", OTHER, "pg19"), 0.3)))
    assert {one.verdict for one in found} == {Verdict.INSUFFICIENT}
    needed = boundaries_of(24).at(0.045 / 3)
    assert found[0].warnings[0] == TooFewBlocks(blocks=7, needed=needed.first, level=needed.alpha, planned=7)


def test_more_headlines_than_the_smallest_level_serves_say_that_no_number_of_blocks_is_enough():
    plan = make_plan(versions(*(f"pg{k}" for k in range(100, 195))), blocks=7)
    found = compare_study(plan, simulate(plan, {"pg100": 0.3}))
    assert found[0].warnings[0] == TooFewBlocks(blocks=7, needed=None)


def test_an_environment_that_collapsed_keeps_its_share_and_gives_none_to_the_others():
    plan = make_plan(versions("pg17", OTHER), blocks=12)
    runs = simulate(plan, {OTHER: 0.3, "pg17": 0.3})
    runs = [
        replace(run, status=RunStatus.COLLAPSED) if run.environment == "pg17" and run.block % 3 else run for run in runs
    ]
    found = {one.environment: one for one in compare_study(plan, runs)}
    assert found["pg17"].verdict is Verdict.COLLAPSED
    assert found[OTHER].level == boundaries_of(24).at(0.045 / 2).alpha


# ------------------------------------------------------------------------------------------------- collapse


def collapse(runs, environment, cell):
    return [
        replace(run, status=RunStatus.COLLAPSED) if (run.environment, run.cell) == (environment, cell) else run
        for run in runs
    ]


def test_an_environment_that_collapsed_in_one_cell_has_a_collapsed_headline_that_names_it():
    plan = make_plan(clients=THREE)
    found = compare_study(plan, collapse(simulate(plan, {OTHER: 0.2}), OTHER, cell_of(16)))
    head = headline(found, OTHER)
    assert (head.verdict, head.effect, head.decided_at) == (Verdict.COLLAPSED, None, None)
    assert head.warnings[0] == NamedDoubt(code="collapsed_cells", names=(cell_of(16),), of=OTHER)
    by_cell = {one.cell: one.verdict for one in found}
    assert (by_cell[cell_of(1)], by_cell[cell_of(16)]) == (Verdict.BETTER, Verdict.COLLAPSED)


def test_a_cell_in_which_the_baseline_collapsed_is_left_out_of_the_headline():
    plan = make_plan(clients=THREE)
    found = compare_study(plan, collapse(simulate(plan, {OTHER: 0.2}), BASE, cell_of(16)))
    head = headline(found, OTHER)
    assert head.verdict is Verdict.BETTER
    assert head.warnings == (NamedDoubt(code="cells_left_out", names=(cell_of(16),)),)
    (cell,) = [one for one in found if one.cell == cell_of(16)]
    assert (cell.verdict, codes(cell)) == (Verdict.INSUFFICIENT, ["baseline_collapsed"])


# ---------------------------------------------------------------------------------------- secondary metrics


def test_noisier_metrics_have_thresholds_of_their_own_never_below_that_of_the_experiment():
    experiment = make_plan().experiment
    assert threshold_of(experiment, "tps") == 0.03
    assert threshold_of(experiment, "latency_p99") == 0.15
    assert threshold_of(replace(experiment, threshold=0.2), "latency_p99") == 0.2
    assert threshold_of(replace(experiment, metric="latency_p99"), "latency_p99") == 0.03
    assert threshold_of(experiment, "server_cpu_per_tx") == 0.03


@pytest.mark.parametrize(
    ("metric", "verdict"),
    [("latency_p50", Verdict.WORSE), ("latency_p95", Verdict.WORSE), ("latency_p99", Verdict.NEGLIGIBLE)],
)
def test_a_secondary_difference_inside_its_own_threshold_is_negligible(metric, verdict):
    runs = [
        make_run(name, block, tps=1000.0, **{metric: value})
        for name, value in ((BASE, 1.0), (OTHER, 1.08))
        for block in range(1, 13)
    ]
    _, found = compare_study(make_plan(), runs)
    assert (found.metric, found.verdict) == (metric, verdict)


def test_secondary_metrics_do_not_miss_the_blocks_that_a_decision_saved():
    rng = np.random.default_rng(5)
    runs = [
        make_run(name, block, tps=value, latency_p50=rng.lognormal(0, 0.2))
        for name, value in ((BASE, 1000.0), (OTHER, 1200.0))
        for block in range(1, 8)
    ]
    first, second = compare_study(make_plan(), runs)
    assert first.decided_at == 7
    assert (second.verdict, codes(second)) == (Verdict.INCONCLUSIVE, ["undecided"])


def test_exploratory_p_values_are_adjusted_within_their_metric():
    plan = make_plan(clients=THREE)
    runs = [
        make_run(name, block, cell=cell_of(c), tps=1000.0 if name == BASE or c > 1 else 1200.0, latency_p50=1.0)
        for name in (BASE, OTHER)
        for c in THREE
        for block in range(1, 13)
    ]
    found = compare_study(plan, runs)
    cells = {(one.cell, one.metric): one for one in found}
    assert cells[cell_of(1), "tps"].adjusted_p == pytest.approx(0.045 * 3)
    assert cells[cell_of(4), "tps"].adjusted_p is None
    assert cells[cell_of(1), "latency_p50"].adjusted_p is None


# ------------------------------------------------------------------------------------------- early and unstable


@pytest.mark.parametrize(("effect", "expected"), [(0.02, ["small_and_early"]), (0.05, [])])
def test_a_small_effect_that_was_found_early_asks_for_a_fresh_study(effect, expected):
    plan = replace(make_plan(), experiment=replace(make_plan().experiment, threshold=0.01))
    (found,) = compare_study(plan, simulate(plan, {OTHER: effect}, sd=0.001))
    assert (found.verdict, found.decided_at) == (Verdict.BETTER, 7)
    assert codes(found) == expected


def test_a_small_effect_that_took_all_blocks_needs_no_other_study():
    plan = make_plan(blocks=7)
    plan = replace(plan, experiment=replace(plan.experiment, threshold=0.01))
    (found,) = compare_study(plan, simulate(plan, {OTHER: 0.02}, sd=0.001))
    assert (found.verdict, codes(found)) == (Verdict.BETTER, [])


def two_groups(blocks, share=1.4):
    """Runs of an environment that starts in one of two modes, and of a steady one."""
    values = [(1000.0 if block % 2 else 1000.0 * share) * (1 + 0.001 * block) for block in range(blocks)]
    return make_runs(OTHER, values) + make_runs(BASE, [1000.0 + k for k in range(blocks)])


def test_differences_in_two_groups_are_a_doubt_beside_effect_and_interval():
    (found,) = compare_study(make_plan(), two_groups(12))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.interval.low <= 1.0 < found.effect < 1.4 <= found.interval.high * 1.01
    (warning,) = [one for one in found.warnings if one.code == "unstable"]
    assert (warning.alone, warning.one_look, warning.estimated) == (OTHER, False, True)
    (lower, low), (upper, high) = warning.groups
    assert (lower, low, upper, high) == pytest.approx((0.5, 1.0, 0.5, 1.4), abs=0.01)


def test_a_difference_is_found_though_its_blocks_fall_into_two_groups():
    values = [1300.0 if block % 2 else 1600.0 + block for block in range(12)]
    plan = make_plan()
    (found,) = compare_study(plan, make_runs(OTHER, values) + make_runs(BASE, [1000.0 + k for k in range(12)]))
    assert (found.verdict, found.decided_at) == (Verdict.BETTER, 7)
    plan = replace(plan, horizon=60)
    (found,) = compare_study(plan, make_runs(OTHER, values) + make_runs(BASE, [1000.0 + k for k in range(12)]))
    assert (found.verdict, found.decided_at) == (Verdict.BETTER, 8)
    assert "unstable" in codes(found)


def test_what_falls_apart_before_there_is_an_interval_is_unstable():
    plan = replace(make_plan(), horizon=60)
    values = [1001.0, 600.0, 1002.0, 1500.0, 1003.0, 2200.0, 1004.0]
    (found,) = compare_study(plan, make_runs(OTHER, values) + make_runs(BASE, [1000.0 + k for k in range(7)]))
    assert (found.verdict, found.effect, found.interval) == (Verdict.UNSTABLE, None, None)
    (warning,) = [one for one in found.warnings if one.code == "unstable"]
    assert not warning.estimated


def test_outliers_of_two_sound_environments_do_not_add_up_to_an_unstable_one():
    other = [700.0 if block in {2, 6} else 1100.0 + block for block in range(24)]
    base = [700.0 if block in {4, 8} else 1000.0 + block for block in range(24)]
    (found,) = compare_study(make_plan(blocks=24), make_runs(OTHER, other) + make_runs(BASE, base))
    assert found.verdict is Verdict.BETTER


def test_an_environment_with_many_outliers_is_told_beside_its_effect():
    other = [1000.0 * (0.5 + 0.03 * block) if block % 3 == 0 else 1100.0 + block for block in range(12)]
    (found,) = compare_study(make_plan(), make_runs(OTHER, other) + make_runs(BASE, [1000.0 + k for k in range(12)]))
    assert found.verdict is not Verdict.UNSTABLE
    assert found.effect is not None
    (warning,) = [one for one in found.warnings if one.code == "unstable"]
    assert (warning.strays, warning.blocks, warning.alone) == (4, 12, OTHER)


def test_a_machine_that_halves_both_environments_makes_neither_unstable():
    machine = [1.0 if block % 2 else 0.5 for block in range(12)]
    runs = make_runs(OTHER, [1000 * m * (1 + 0.002 * (k % 5)) for k, m in enumerate(machine)])
    runs += make_runs(BASE, [1000 * m * (1 + 0.002 * (k % 3)) for k, m in enumerate(machine)])
    (found,) = compare_study(make_plan(), runs)
    assert found.verdict is Verdict.EQUIVALENT


def test_runs_that_stray_in_one_environment_only_are_told():
    values = [1000.0 + k if k % 4 else 600.0 for k in range(24)]
    runs = make_runs(OTHER, values) + make_runs(BASE, [1000.0 + k for k in range(24)])
    (found,) = compare_study(make_plan(blocks=24), runs)
    assert "anomalies_differ" in codes(found)


# ------------------------------------------------------------------------------------------------ invariances


@given(st.integers(0, 1000), st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_the_order_in_which_runs_are_given_changes_nothing(seed, random):
    plan = make_plan([*versions(OTHER, "pg17"), CONTROL], clients=THREE, blocks=10)
    runs = simulate(plan, {OTHER: 0.05, ("pg17", cell_of(4)): -0.1}, sd=0.02, seed=seed)
    shuffled = random.sample(runs, len(runs))
    assert compare_study(plan, shuffled) == compare_study(plan, runs)


@given(st.integers(0, 1000), st.integers(3, 24))
@settings(max_examples=15, deadline=None)
def test_what_was_decided_stays_decided_whatever_follows(seed, blocks):
    plan = make_plan(versions(OTHER, "pg17", "pg19"), clients=(1, 4), blocks=24)
    runs = simulate(plan, {OTHER: 0.05, "pg17": 0.02}, sd=0.03, seed=seed)
    early = compare_study(plan, [run for run in runs if run.block <= blocks])
    late = compare_study(plan, runs)
    for before, after in zip(early, late, strict=True):
        if before.decided_at is not None:
            assert (after.verdict, after.decided_at, after.effect, after.interval, after.level) == (
                before.verdict,
                before.decided_at,
                before.effect,
                before.interval,
                before.level,
            )
