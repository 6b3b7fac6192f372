"""Crossed factors, ordered axes, and all pairs of environments."""

import math
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.compare import compare_pairs, compare_study, find_axes, find_effects
from pgstrata.model.answer import ALL_CELLS, EffectKind, Verdict
from pgstrata.model.experiment import ControlKind
from pgstrata.model.levels import order_levels
from pgstrata.model.runs import RunStatus
from studies import CELL, cell_of, make_environment, make_plan, simulate, simulate_slices

PAGES, SERVER, JIT = "settings.huge_pages", "server", "settings.jit"


def cross(**factors):
    """Every combination; names are the levels."""
    keys = {"server": SERVER, "pages": PAGES, "jit": JIT, "mem": "settings.work_mem"}
    names = [keys[key] for key in factors]
    return [
        make_environment("-".join(levels), levels=dict(zip(names, levels, strict=True)))
        for levels in product(*factors.values())
    ]


def plan_of(environments, **rest):
    factors = tuple(dict.fromkeys(level.factor for each in environments for level in each.levels))
    return make_plan(environments, factors=factors, **rest)


TWO_BY_TWO = cross(server=("16", "18"), pages=("off", "on"))


# ---------------------------------------------------------------------------------------------- crossed factors


def test_main_effects_and_the_interaction_of_two_factors_come_out_with_their_sizes():
    plan = plan_of(TWO_BY_TWO, blocks=12)
    runs = simulate(plan, {"18-off": 0.10, "16-on": 0.04, "18-on": 0.20}, sd=0.002)
    server, pages, both = find_effects(plan, runs)
    assert (server.kind, server.factor, server.level, server.reference) == (EffectKind.MAIN, SERVER, "18", "16")
    assert server.effect == pytest.approx(math.exp((0.10 + 0.16) / 2), abs=0.004)
    assert (pages.factor, pages.level, pages.given) == (PAGES, "on", None)
    assert pages.effect == pytest.approx(math.exp((0.04 + 0.10) / 2), abs=0.004)
    assert (both.kind, both.factor, both.given) == (EffectKind.INTERACTION, SERVER, (PAGES, "on", "off"))
    assert both.effect == pytest.approx(math.exp(0.06), abs=0.004)
    for one in (server, pages, both):
        assert (one.verdict, one.decided_at, one.cell, one.metric) == (Verdict.BETTER, 7, CELL, "tps")
        assert one.interval.low < one.effect < one.interval.high


def test_less_is_better_turns_the_verdict_and_not_the_ratio():
    plan = plan_of(TWO_BY_TWO, blocks=7, metric="server_cpu_per_tx")
    runs = [
        replace(run, measurements=(replace(run.measurements[0], metric="server_cpu_per_tx"),))
        for run in simulate(plan, {"18-off": 0.1, "18-on": 0.1}, sd=0.001)
    ]
    server, *_ = find_effects(plan, runs)
    assert server.verdict is Verdict.WORSE
    assert server.effect == pytest.approx(math.exp(0.1), abs=0.01)


def test_over_several_cells_the_effect_is_that_of_their_mean():
    plan = plan_of(TWO_BY_TWO, clients=(1, 4), blocks=7)
    effects = {(name, cell_of(1)): 0.2 for name in ("18-off", "18-on")}
    server, *_ = find_effects(plan, simulate(plan, effects, sd=0.001))
    assert server.cell == ALL_CELLS
    assert server.effect == pytest.approx(math.exp(0.1), abs=0.005)


def test_in_slices_the_machine_is_taken_out_round_by_round():
    plan = plan_of(TWO_BY_TWO, blocks=7)
    runs = simulate_slices(plan, {"18-off": 0.05, "18-on": 0.05}, rounds=16, sd=0.002)
    server, pages, both = find_effects(plan, runs)
    assert server.effect == pytest.approx(math.exp(0.05), abs=0.003)
    assert (pages.verdict, both.verdict) == (Verdict.EQUIVALENT, Verdict.EQUIVALENT)


def test_blocks_whose_environments_were_measured_apart_do_not_count():
    plan = plan_of(TWO_BY_TWO, blocks=9)
    server, *_ = find_effects(plan, simulate_slices(plan, {}, apart={1, 2, 3}))
    assert (server.blocks, server.verdict) == (6, Verdict.INSUFFICIENT)


@pytest.mark.parametrize(
    "environments",
    [
        cross(server=("16", "17", "18")),
        TWO_BY_TWO[:3],
        cross(server=("16", "18"), pages=("off",)),
        [*TWO_BY_TWO, make_environment("again", levels={SERVER: "16", PAGES: "off"})],
        [make_environment("a", levels={SERVER: "16"}), make_environment("b", levels={SERVER: "18", JIT: "on"})],
    ],
)
def test_what_is_no_full_cross_of_two_factors_has_no_effects(environments):
    plan = plan_of(environments, blocks=7)
    assert find_effects(plan, simulate(plan)) == ()


def test_a_control_is_no_part_of_the_cross():
    control = replace(TWO_BY_TWO[0], name="control", control=ControlKind.SAME)
    plan = plan_of([*TWO_BY_TWO, control], blocks=7)
    assert len(find_effects(plan, simulate(plan))) == 3


def test_three_factors_have_three_main_effects_and_three_interactions():
    plan = plan_of(cross(server=("16", "18"), pages=("off", "on"), jit=("off", "on")), blocks=7)
    kinds = [one.kind for one in find_effects(plan, simulate(plan))]
    assert kinds == [EffectKind.MAIN] * 3 + [EffectKind.INTERACTION] * 3


def test_before_the_first_block_effects_are_insufficient():
    found = find_effects(plan_of(TWO_BY_TWO), [])
    assert {one.verdict for one in found} == {Verdict.INSUFFICIENT}
    assert {one.effect for one in found} == {None}


def test_the_luckier_runs_of_a_collapsed_environment_make_no_effect():
    plan = plan_of(TWO_BY_TWO, blocks=12)
    runs = [
        replace(run, status=RunStatus.COLLAPSED) if run.environment == "18-on" and run.block < 9 else run
        for run in simulate(plan)
    ]
    assert {one.blocks for one in find_effects(plan, runs)} == {0}


# ------------------------------------------------------------------------------------------------ ordered axes


@pytest.mark.parametrize(
    ("factor", "levels", "ordered"),
    [
        ("server", ("16", "9.6", "10"), ("9.6", "10", "16")),
        ("server", ("maven:9.6.24", "maven:9.6.3", "maven:10.1"), ("maven:9.6.3", "maven:9.6.24", "maven:10.1")),
        ("server", ("prefix:/b", "prefix:/a", "embedded"), ("prefix:/b", "prefix:/a", "embedded")),
        ("settings.work_mem", ("1GB", "64MB", "512kB", "0"), ("0", "512kB", "64MB", "1GB")),
        ("settings.checkpoint_timeout", ("1h", "30s", "5min"), ("30s", "5min", "1h")),
        ("options.extra_work", ("1000", "0", "-1", "10.5"), ("-1", "0", "10.5", "1000")),
        ("settings.wal_compression", ("pglz", "off", "lz4"), ("pglz", "off", "lz4")),
        ("settings.work_mem", ("1GB", "1024MB", "1kB"), ("1GB", "1024MB", "1kB")),
    ],
)
def test_levels_are_in_the_order_of_what_they_mean_else_in_that_of_the_file(factor, levels, ordered):
    assert order_levels(factor, levels) == ordered


def test_the_step_between_two_versions_is_found_where_it_is():
    plan = plan_of(cross(server=("18", "14", "16", "15", "17")), blocks=8)
    runs = simulate(plan, {"16": -0.06, "17": -0.06, "18": -0.06}, sd=0.005)
    (axis,) = find_axes(plan, runs)
    assert (axis.factor, axis.levels, axis.cell, axis.blocks) == (SERVER, ("14", "15", "16", "17", "18"), CELL, 8)
    (step,) = axis.steps
    assert (step.before, step.after) == ("15", "16")
    assert step.effect == pytest.approx(math.exp(-0.06), abs=0.005)
    assert step.interval.low < step.effect < step.interval.high
    assert axis.p < 0.01
    assert axis.trend_p < 0.01


def test_an_axis_is_there_over_all_cells_and_in_each_of_them():
    plan = plan_of(cross(server=("16", "17", "18")), clients=(1, 4), blocks=8)
    runs = simulate(plan, {("17", cell_of(4)): 0.2, ("18", cell_of(4)): 0.2})
    together, one, four = find_axes(plan, runs)
    assert (together.cell, one.cell, four.cell) == (ALL_CELLS, cell_of(1), cell_of(4))
    assert (len(together.steps), len(one.steps), len(four.steps)) == (1, 0, 1)
    assert together.steps[0].effect == pytest.approx(math.exp(0.1), abs=0.01)


def test_an_axis_across_another_factor_takes_the_mean_over_its_levels():
    plan = plan_of(cross(server=("16", "17", "18"), pages=("off", "on")), blocks=8)
    runs = simulate(plan, {"17-on": 0.1, "18-on": 0.1, "16-on": 0.3, "17-off": 0.1, "18-off": 0.1, "16-off": -0.3})
    (axis,) = find_axes(plan, runs)
    (step,) = axis.steps
    assert (step.before, step.after) == ("16", "17")
    assert step.effect == pytest.approx(math.exp(0.1), abs=0.01)


def test_environments_that_differ_in_something_else_are_no_part_of_an_axis():
    listed = [*cross(server=("16", "17", "18")), make_environment("18 async", levels={SERVER: "18", JIT: "off"})]
    (axis,) = find_axes(plan_of(listed, blocks=3), simulate(plan_of(listed, blocks=3)))
    assert axis.levels == ("16", "17", "18")


@pytest.mark.parametrize("environments", [cross(server=("16", "18")), TWO_BY_TWO])
def test_two_levels_are_no_axis(environments):
    assert find_axes(plan_of(environments, blocks=3), simulate(plan_of(environments, blocks=3))) == ()


def test_an_axis_appears_with_the_first_block():
    plan = plan_of(cross(server=("16", "17", "18")))
    assert find_axes(plan, []) == ()
    (axis,) = find_axes(plan, simulate(plan, blocks=1))
    assert (axis.blocks, axis.steps) == (1, ())


def test_levels_that_were_decided_early_leave_the_others_in_the_axis():
    plan = plan_of(cross(server=("16", "17", "18")), blocks=12)
    runs = [run for run in simulate(plan, {"18": 0.2}) if run.environment != "18" or run.block < 8]
    (axis,) = find_axes(plan, runs)
    assert axis.blocks == 12
    assert [(step.before, step.after) for step in axis.steps] == [("17", "18")]


def test_an_axis_in_slices_takes_the_machine_out_round_by_round():
    plan = plan_of(cross(server=("16", "17", "18")), blocks=7)
    (axis,) = find_axes(plan, simulate_slices(plan, {"18": 0.02}, rounds=16, sd=0.004))
    (step,) = axis.steps
    assert step.effect == pytest.approx(math.exp(0.02), abs=0.005)


# ---------------------------------------------------------------------------------------------------- all pairs


def test_every_pair_of_environments_is_compared_once():
    environments = cross(server=("16", "17", "18"))
    plan = plan_of([*environments, replace(environments[0], name="control", control=ControlKind.SAME)], blocks=8)
    found = compare_pairs(plan, simulate(plan, {"17": 0.1, "18": 0.3}, sd=0.002))
    assert [(one.environment, one.reference) for one in found] == [("17", "16"), ("18", "16"), ("18", "17")]
    assert [round(math.log(one.effect), 2) for one in found] == pytest.approx([0.1, 0.3, 0.2])
    assert {(one.exploratory, one.cell) for one in found} == {(True, CELL)}
    assert [one.adjusted_p for one in found] == pytest.approx([0.045] * 3)


def test_a_pair_with_the_baseline_is_what_the_comparison_alone_would_be():
    plan = plan_of(cross(server=("16", "18")), clients=(1, 4), blocks=12)
    runs = simulate(plan, {"18": 0.03}, sd=0.01)
    (pair,) = compare_pairs(plan, runs)
    head = compare_study(plan, runs)[0]
    assert replace(pair, reference="", exploratory=False, adjusted_p=None, warnings=()) == replace(head, warnings=())


def test_pairs_of_a_later_baseline_begin_with_it():
    plan = plan_of(cross(server=("16", "17", "18")), blocks=7)
    plan = replace(plan, experiment=replace(plan.experiment, baseline="17"))
    found = [(one.environment, one.reference) for one in compare_pairs(plan, [])]
    assert found == [("16", "17"), ("18", "17"), ("18", "16")]


# -------------------------------------------------------------------------------------------------- invariances


@given(st.integers(0, 1000), st.randoms(use_true_random=False))
@settings(max_examples=10, deadline=None)
def test_the_order_in_which_runs_are_given_changes_nothing(seed, random):
    plan = plan_of(cross(server=("16", "17", "18"), pages=("off", "on")), clients=(1, 4), blocks=7)
    runs = simulate(plan, {"18-on": 0.05}, sd=0.02, seed=seed)
    shuffled = random.sample(runs, len(runs))
    assert find_effects(plan, shuffled) == find_effects(plan, runs)
    assert find_axes(plan, shuffled) == find_axes(plan, runs)
    assert compare_pairs(plan, shuffled) == compare_pairs(plan, runs)
