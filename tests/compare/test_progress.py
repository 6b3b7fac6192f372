"""What the loop has to measure next, and that it never changes its mind."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.compare import compare_study, open_pairs
from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.experiment import ControlKind
from pgstrata.model.runs import RunStatus
from studies import BASE, CELL, OTHER, cell_of, make_environment, make_plan, simulate, simulate_slices
from timing import least_seconds

TWO = (1, 4)
CONTROL = make_environment(f"{BASE}-control", control=ControlKind.SAME)


def environments(*names):
    return [make_environment(BASE), *(make_environment(name) for name in names)]


def pairs(names, clients):
    return frozenset((name, cell_of(c)) for name in names for c in clients)


def everything(plan):
    return frozenset(
        (each.name, cell.identity) for each in plan.experiment.environments for cell in plan.experiment.cells
    )


def measure(plan, effects, **rest):
    """Runs as the loop makes them: each block holds what is open, and nothing else."""
    drawn = simulate(plan, effects, **rest)
    made = []
    for block in plan.blocks:
        wanted = open_pairs(plan, made, block.number)
        made += [run for run in drawn if run.block == block.number and (run.environment, run.cell) in wanted]
    return made


# ------------------------------------------------------------------------------------------------ what is open


def test_everything_is_open_before_the_first_block():
    plan = make_plan([*environments(OTHER), CONTROL], clients=TWO)
    assert open_pairs(plan, [], 1) == everything(plan)


def test_nothing_is_open_once_the_only_comparison_is_decided():
    plan = make_plan(blocks=24)
    runs = simulate(plan, {OTHER: 0.3})
    assert open_pairs(plan, runs, 7) == {(BASE, CELL), (OTHER, CELL)}
    assert open_pairs(plan, runs, 8) == frozenset()


def test_an_undecided_environment_keeps_the_baseline_and_the_decided_one_is_left_out():
    plan = make_plan(environments(OTHER, "pg17"), blocks=24)
    runs = simulate(plan, {OTHER: 0.5}, sd=0.04)
    assert open_pairs(plan, runs, 10) == {(BASE, CELL), ("pg17", CELL)}


def test_a_cell_that_is_decided_goes_on_while_the_headline_is_open():
    plan = make_plan(clients=TWO, blocks=24)
    runs = simulate(plan, {(OTHER, cell_of(1)): 0.25, (OTHER, cell_of(4)): -0.25}, sd=0.05)
    cells = [one for one in compare_study(plan, [run for run in runs if run.block < 12]) if one.cell != ALL_CELLS]
    assert all(one.decided_at == 7 for one in cells)
    assert open_pairs(plan, runs, 12) == everything(plan)


def test_a_cell_that_is_open_goes_on_alone_once_the_headline_is_decided():
    plan = make_plan(clients=TWO, blocks=24)
    runs = simulate(plan, {(OTHER, cell_of(1)): 0.5}, sd=0.05, seed=2)
    found = {one.cell: one.decided_at for one in compare_study(plan, [run for run in runs if run.block < 10])}
    assert (found[ALL_CELLS], found[cell_of(1)], found[cell_of(4)]) == (7, 7, None)
    assert open_pairs(plan, runs, 10) == pairs((BASE, OTHER), (4,))


def test_a_control_is_measured_until_it_is_decided_too():
    plan = make_plan([*environments(OTHER), CONTROL], blocks=24)
    runs = simulate(plan, {OTHER: 0.3}, sd=0.04)
    assert open_pairs(plan, runs, 9) == {(BASE, CELL), (CONTROL.name, CELL)}


def test_secondary_metrics_keep_nothing_open():
    plan = make_plan(blocks=24, metric="server_cpu_per_tx")
    assert open_pairs(plan, simulate(plan, {OTHER: 0.3}), 9) == everything(plan)


def test_an_experiment_with_nothing_to_compare_measures_all_its_blocks():
    plan = make_plan([make_environment(BASE)], clients=TWO)
    assert open_pairs(plan, simulate(plan), 9) == pairs((BASE,), TWO)


def test_slices_close_a_comparison_too():
    plan = make_plan(blocks=24)
    runs = simulate_slices(plan, {OTHER: 0.05})
    assert open_pairs(plan, runs, 7) == everything(plan)
    assert open_pairs(plan, runs, 8) == frozenset()


# -------------------------------------------------------------------------------------------------- collapse


def collapsed(runs, environment, cell):
    return [
        replace(run, status=RunStatus.COLLAPSED) if (run.environment, run.cell) == (environment, cell) else run
        for run in runs
    ]


@pytest.mark.parametrize(("number", "closed"), [(3, False), (4, True)])
def test_a_cell_in_which_an_environment_collapsed_is_closed_after_three_runs(number, closed):
    plan = make_plan(clients=TWO)
    runs = collapsed(simulate(plan, sd=0.1), OTHER, cell_of(4))
    expected = pairs((BASE, OTHER), (1,)) if closed else everything(plan)
    assert open_pairs(plan, runs, number) == expected


def test_a_cell_in_which_the_baseline_collapsed_is_closed_for_all():
    plan = make_plan(environments(OTHER, "pg17"), clients=TWO)
    runs = collapsed(simulate(plan, sd=0.1), BASE, cell_of(4))
    assert open_pairs(plan, runs, 4) == pairs((BASE, OTHER, "pg17"), (1,))


def test_an_only_cell_in_which_the_only_environment_collapsed_ends_the_measuring():
    plan = make_plan()
    assert open_pairs(plan, collapsed(simulate(plan), OTHER, CELL), 4) == frozenset()


# ------------------------------------------------------------------------------------------ it never changes


studies = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10_000),
        "sd": st.sampled_from([0.002, 0.02, 0.06]),
        "cells": st.sampled_from([(1,), TWO]),
        "effects": st.lists(st.sampled_from([0.0, 0.01, 0.05, 0.2]), min_size=1, max_size=3),
        "floor": st.sampled_from([None, 0.02]),
    }
)


def build(study):
    names = [f"e{place}" for place in range(len(study["effects"]))]
    floors = {cell_of(c): study["floor"] for c in study["cells"]} if study["floor"] else {}
    plan = make_plan([*environments(*names), CONTROL], clients=study["cells"], blocks=24, floors=floors)
    return plan, dict(zip(names, study["effects"], strict=True))


@given(studies, st.integers(1, 24), st.randoms(use_true_random=False))
@settings(max_examples=12, deadline=None)
def test_later_blocks_and_the_order_of_runs_change_nothing_about_an_earlier_block(study, number, random):
    plan, effects = build(study)
    runs = measure(plan, effects, sd=study["sd"], seed=study["seed"])
    before = [run for run in runs if run.block < number]
    wanted = open_pairs(plan, before, number)
    assert open_pairs(plan, runs, number) == wanted
    assert open_pairs(plan, random.sample(runs, len(runs)), number) == wanted


@given(studies)
@settings(max_examples=10, deadline=None)
def test_what_is_closed_stays_closed(study):
    plan, effects = build(study)
    runs = measure(plan, effects, sd=study["sd"], seed=study["seed"])
    held = [open_pairs(plan, runs, block.number) for block in plan.blocks]
    assert all(later <= earlier for earlier, later in pairwise(held))


@given(studies)
@settings(max_examples=10, deadline=None)
def test_the_answer_calls_decided_what_is_not_measured_any_more(study):
    plan, effects = build(study)
    runs = measure(plan, effects, sd=study["sd"], seed=study["seed"])
    left = open_pairs(plan, runs, len(plan.blocks) + 1)
    for one in compare_study(plan, runs, metrics=()):
        cells = [cell.identity for cell in plan.experiment.cells] if one.cell == ALL_CELLS else [one.cell]
        if one.decided_at is None:
            assert {(one.environment, cell) for cell in cells} <= left
            assert one.blocks == 24
        assert "incomplete" not in [warning.code for warning in one.warnings]


def test_a_resume_in_the_middle_of_a_block_finishes_it_as_it_was_begun():
    plan = make_plan(environments(OTHER, "pg17"), clients=TWO, blocks=24)
    runs = measure(plan, {OTHER: 0.1}, sd=0.02)
    for number in range(1, 25):
        half = [run for run in runs if run.block < number or (run.block == number and run.environment == BASE)]
        assert open_pairs(plan, half, number) == open_pairs(plan, runs, number)


@pytest.mark.alone
def test_twenty_environments_in_ten_cells_are_judged_in_a_fraction_of_a_second():
    names = [f"e{k}" for k in range(19)]
    plan = make_plan(environments(*names), clients=tuple(range(1, 11)), blocks=24)
    runs = simulate(plan, {"e3": 0.05}, sd=0.03)
    assert least_seconds(lambda: open_pairs(plan, runs, 25), 0.5) < 0.5
