"""Findings by load in simulated studies with a known truth: begin, turn, drop, collapse."""

import math
from dataclasses import replace

import pytest

from pgstrata.compare.by_load import find_by_load, find_curves
from pgstrata.model.answer import Verdict
from pgstrata.model.metrics import Measurement
from pgstrata.model.runs import RunStatus
from studies import BASE, OTHER, cell_of, make_plan, simulate

CLIENTS = (1, 2, 4, 8, 16, 32, 64, 128)


def shifted(runs, environment, by_clients):
    """The runs, those of an environment off by so much (log units) at each number of clients."""
    sizes = {cell_of(clients): size for clients, size in by_clients.items()}
    return [
        replace(
            run,
            measurements=tuple(
                Measurement(metric=m.metric, value=m.value * math.exp(sizes[run.cell])) for m in run.measurements
            ),
        )
        if run.environment == environment and run.cell in sizes
        else run
        for run in runs
    ]


def study(by_clients, *, blocks=9, sd=0.01, seed=1, environment=OTHER):
    plan = make_plan(clients=CLIENTS, blocks=blocks)
    return plan, shifted(simulate(plan, sd=sd, drift=0.0, seed=seed), environment, by_clients)


def finding_of(plan, runs, environment=OTHER):
    (found,) = [each for each in find_by_load(plan, runs) if each.environment == environment]
    return found


def test_a_difference_that_begins_at_a_load_is_found_there():
    found = finding_of(*study({32: -0.12, 64: -0.12, 128: -0.12}))
    assert found.changes
    assert [(each.first, each.last) for each in found.ranges] == [(1, 16), (32, 128)]
    assert found.ranges[0].verdict is Verdict.EQUIVALENT
    assert found.ranges[1].verdict is Verdict.WORSE
    assert found.ranges[1].effect == pytest.approx(math.exp(-0.12), abs=0.01)
    assert found.p < 0.01
    assert not found.turns


def test_an_order_that_turns_round_is_told():
    found = finding_of(*study({clients: 0.08 if clients < 16 else -0.08 for clients in CLIENTS}))
    assert [each.verdict for each in found.ranges] == [Verdict.BETTER, Verdict.WORSE]
    assert found.turns


def test_a_difference_that_is_the_same_everywhere_is_one_range():
    found = finding_of(*study(dict.fromkeys(CLIENTS, -0.1)))
    assert not found.changes
    assert (found.ranges[0].first, found.ranges[0].last) == (1, 128)
    assert found.ranges[0].verdict is Verdict.WORSE


def test_equal_environments_seldom_part_along_the_load():
    parted = sum(finding_of(*study({}, seed=seed)).changes for seed in range(60))
    assert parted <= 8


def test_a_crossover_is_named_at_its_step():
    truth = {clients: 0.0 if clients < 32 else -0.06 for clients in CLIENTS}
    right = 0
    for seed in range(20):
        found = finding_of(*study(truth, sd=0.02, seed=seed))
        right += [(each.first, each.last) for each in found.ranges] == [(1, 16), (32, 128)]
    assert right >= 17


def test_an_environment_that_loses_between_two_loads_is_told_by_its_own_figures():
    found = find_by_load(*study({128: -1.0}, environment=BASE))
    base = next(each for each in found if each.environment == BASE)
    assert base.ranges == ()
    assert [(each.fewer, each.more) for each in base.drops] == [(64, 128)]
    assert base.drops[0].effect < 0.9


def test_throughput_that_grows_with_clients_is_no_drop():
    assert all(each.drops == () for each in find_by_load(*study({})))


def test_too_few_blocks_for_any_change_say_so():
    plan = make_plan(clients=(1, 2, 4), blocks=1)
    found = finding_of(plan, shifted(simulate(plan, sd=0.01, drift=0.0), OTHER, {4: -0.2}))
    assert not found.changes
    assert not found.reachable


def test_a_collapse_is_told_with_the_load_at_which_it_begins_and_left_out_of_ranges():
    plan, runs = study({32: -0.12, 64: -0.12})
    lost = (cell_of(128), cell_of(64))
    runs = [
        replace(run, status=RunStatus.COLLAPSED)
        if (run.environment, run.cell) in {(OTHER, each) for each in lost}
        else run
        for run in runs
    ]
    found = finding_of(plan, runs)
    assert found.collapsed_from == 64
    assert found.ranges[-1].last == 32


def test_two_loads_are_no_curve():
    plan = make_plan(clients=(1, 8), blocks=9)
    assert find_by_load(plan, simulate(plan, sd=0.01)) == ()


def with_threads(plan, *numbers):
    """The plan with each cell at several numbers of threads."""
    cells = tuple(
        replace(cell, threads=threads, label=f"-j{threads}") for threads in numbers for cell in plan.experiment.cells
    )
    return replace(plan, experiment=replace(plan.experiment, cells=cells))


def test_each_number_of_threads_at_the_same_clients_has_a_curve():
    plan = with_threads(make_plan(clients=(1, 4, 16), blocks=9), 1, 2)
    found = find_by_load(plan, simulate(plan, sd=0.01, drift=0.0))
    assert [each.clients for each in found] == [(1, 4, 16)] * 4
    assert not any(each.drops for each in found)


def test_threads_that_follow_the_clients_are_one_curve():
    plan = make_plan(clients=(1, 4, 16), blocks=9)
    cells = tuple(replace(cell, threads=cell.clients, label=f"-j{cell.clients}") for cell in plan.experiment.cells)
    (curve,) = find_curves(replace(plan.experiment, cells=cells))
    assert curve == cells
