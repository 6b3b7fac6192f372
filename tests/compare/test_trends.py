"""Trends of differences along clients and scale, in simulated studies with a known truth."""

import math
from dataclasses import replace

import numpy as np
import pytest

from pgstrata.compare.trends import changes_along, find_trends
from pgstrata.model.answer import Verdict
from pgstrata.model.metrics import Measurement
from pgstrata.model.own_data import OwnData
from pgstrata.model.reasons import DATA_EXCEED, Reason
from pgstrata.model.runs import RunStatus
from pgstrata.report.sentences.trends import say_trend
from studies import BASE, OTHER, cell_of, make_environment, make_plan, simulate

CLIENTS = (1, 4, 16, 64)


def shifted(runs, by_cell):
    """The runs, those of the other environment off by so much (log units) in each cell."""
    return [
        replace(
            run,
            measurements=tuple(
                Measurement(metric=m.metric, value=m.value * math.exp(by_cell.get(run.cell, 0.0)))
                for m in run.measurements
            ),
        )
        if run.environment == OTHER
        else run
        for run in runs
    ]


def study(sizes, *, blocks=10, sd=0.01, seed=1, clients=CLIENTS):
    plan = make_plan(clients=clients, blocks=blocks)
    by_cell = {cell_of(number): size for number, size in zip(clients, sizes, strict=True)}
    return plan, shifted(simulate(plan, sd=sd, drift=0.0, seed=seed), by_cell)


def trend_of(plan, runs):
    (found,) = find_trends(plan, runs)
    return found


def test_the_change_along_a_line_is_its_slope_times_the_length_of_the_axis():
    levels = np.array([1.0, 4.0, 16.0])
    d = np.array([[0.1, 0.2, 0.3], [0.0, 0.0, 0.0]])
    assert changes_along(levels, d) == pytest.approx([0.2, 0.0])


def test_a_gain_that_grows_with_clients_is_found_with_its_size():
    plan, runs = study((0.02, 0.05, 0.08, 0.11))
    found = trend_of(plan, runs)
    assert (found.axis, found.levels, found.verdict, found.blocks) == ("clients", CLIENTS, Verdict.BETTER, 10)
    assert found.changes
    assert found.interval.low < math.exp(0.09) < found.interval.high
    assert say_trend(found, plan).startswith("18 on simple-update: the gain in throughput grows with clients, from +")
    on = make_plan((make_environment(BASE), make_environment(OTHER, levels={"settings.jit": "on"})), clients=CLIENTS)
    assert say_trend(found, on).startswith("jit = on, on simple-update: the gain")


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((-0.02, -0.05, -0.08, -0.11), "the loss in throughput grows with clients"),
        ((-0.11, -0.08, -0.05, -0.02), "the loss in throughput shrinks with clients"),
        ((0.11, 0.08, 0.05, 0.02), "the gain in throughput shrinks with clients"),
        ((-0.10, -0.03, 0.03, 0.10), "overtakes the baseline in throughput with more clients"),
        ((0.10, 0.03, -0.03, -0.10), "falls behind the baseline in throughput with more clients"),
    ],
)
def test_the_sentence_says_which_way_it_goes(sizes, said):
    plan, runs = study(sizes)
    assert said in say_trend(trend_of(plan, runs), plan)


def test_a_difference_that_is_the_same_at_all_loads_has_no_trend():
    found = trend_of(*study((0.1,) * 4))
    assert found.verdict is Verdict.EQUIVALENT
    assert not found.changes


def test_equal_environments_seldom_have_a_trend():
    assert sum(trend_of(*study((0.0,) * 4, seed=seed, sd=0.03)).changes for seed in range(60)) <= 6


def test_few_blocks_decide_nothing():
    found = trend_of(*study((0.0, 0.1, 0.2, 0.3), blocks=3))
    assert found.verdict is Verdict.INSUFFICIENT
    assert found.interval is None


def test_a_single_level_has_no_trend():
    assert find_trends(*study((0.1,), clients=(4,))) == ()


def test_cells_that_collapsed_are_left_out():
    plan, runs = study((0.02, 0.05, 0.08, 0.11))
    runs = [
        replace(run, status=RunStatus.COLLAPSED) if (run.environment, run.cell) == (OTHER, cell_of(64)) else run
        for run in runs
    ]
    assert trend_of(plan, runs).levels == CLIENTS[:-1]


def test_blocks_that_lack_a_level_are_left_out():
    plan, runs = study((0.02, 0.05, 0.08, 0.11))
    assert trend_of(plan, [run for run in runs if (run.block, run.cell) != (3, cell_of(4))]).blocks == 9


def by_scale(scales=(10, 100, 1000)):
    plan = make_plan(clients=(4,), blocks=10)
    (cell,) = plan.experiment.cells
    cells = tuple(replace(cell, scale=scale) for scale in scales)
    note = Reason(code=DATA_EXCEED, how="shared_buffers", said="simple-update", value=1000, of=2**30)
    plan = replace(plan, experiment=replace(plan.experiment, cells=cells), notes=(note,))
    sizes = {each.identity: -0.05 * place for place, each in enumerate(cells)}
    return plan, shifted(simulate(plan, sd=0.01, drift=0.0), sizes)


def test_a_loss_that_grows_with_scale_is_found():
    plan, runs = by_scale()
    found = trend_of(plan, runs)
    assert (found.axis, found.levels, found.verdict) == ("scale", (10, 100, 1000), Verdict.WORSE)
    assert "from " in say_trend(found, plan)
    assert "at scale 1000" in say_trend(found, plan)


def test_along_clients_it_says_whether_data_fit():
    plan, runs = by_scale((10, 1000))
    cells = tuple(replace(cell, clients=clients) for cell in plan.experiment.cells for clients in (1, 64))
    plan = replace(plan, experiment=replace(plan.experiment, cells=cells))
    grown = {cell.identity: 0.1 for cell in cells if cell.clients == 64}
    found = [
        each for each in find_trends(plan, shifted(simulate(plan, sd=0.01, drift=0.0), grown)) if each.axis == "clients"
    ]
    assert "at scale 10 while data fit shared_buffers: " in say_trend(found[0], plan)
    assert "at scale 1000 where data exceed shared_buffers: " in say_trend(found[1], plan)


def test_a_curve_on_data_of_ones_own_has_no_scale():
    plan, runs = study((0.0, 0.05, 0.1, 0.15))
    (found,) = find_trends(plan, runs)
    own = tuple(replace(cell, scale=1, data=OwnData(command=("./fill",))) for cell in plan.experiment.cells)
    other = replace(own[0], data=None, workload="select-only")
    plan = replace(plan, experiment=replace(plan.experiment, cells=(*own, other)))
    text = say_trend(replace(found, cells=tuple(cell.identity for cell in own)), plan)
    assert text.startswith("18 on simple-update on data by the command ./fill: ")


def test_one_number_of_clients_with_several_numbers_of_threads_has_no_trend():
    plan = make_plan(clients=(16,), blocks=9)
    cells = tuple(replace(plan.experiment.cells[0], threads=threads, label=f"-j{threads}") for threads in (1, 4, 16))
    plan = replace(plan, experiment=replace(plan.experiment, cells=cells))
    assert find_trends(plan, simulate(plan, sd=0.01)) == ()
