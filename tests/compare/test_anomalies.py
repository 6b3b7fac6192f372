"""Points of curves and runs that look wrong, and what they change: nothing."""

import math
from dataclasses import replace

import pytest

from pgstrata.compare.anomalies import FEWEST_POINTS, find_anomalies
from pgstrata.compare.by_load import find_curves
from pgstrata.compare.study import compare_study
from pgstrata.model.anomaly import AnomalyKind
from pgstrata.model.metrics import Measurement
from pgstrata.model.runs import RunStatus
from studies import BASE, CELL, OTHER, cell_of, make_plan, simulate

CLIENTS = (1, 2, 4, 8, 16, 32)


def dent(runs, *, blocks, environment=OTHER, clients=8, size=-0.2):
    """The runs, some of them off by so much (log units)."""
    return [
        replace(
            run,
            measurements=tuple(Measurement(metric=m.metric, value=m.value * math.exp(size)) for m in run.measurements),
        )
        if (run.environment, run.cell) == (environment, cell_of(clients)) and run.block in blocks
        else run
        for run in runs
    ]


def make_runs(plan, **rest):
    return simulate(plan, {OTHER: 0.3}, **{"sd": 0.005, "drift": 0.0, **rest})


@pytest.mark.parametrize("environment", [BASE, OTHER])
def test_a_dent_in_a_curve_is_a_kink(environment):
    plan = make_plan(clients=CLIENTS, blocks=7)
    (kink,) = find_anomalies(plan, dent(make_runs(plan), blocks=range(1, 8), environment=environment))
    assert (kink.kind, kink.environment, kink.cell) == (AnomalyKind.KINK, environment, cell_of(8))
    assert (kink.blocks, kink.following) == (tuple(range(1, 8)), None)
    assert kink.effect == pytest.approx(math.exp(-0.2), abs=0.03)


def test_a_smooth_curve_and_quiet_runs_look_right():
    plan = make_plan(clients=CLIENTS, blocks=7)
    assert find_anomalies(plan, make_runs(plan)) == ()
    assert find_anomalies(plan, []) == ()


def test_a_point_that_collapsed_is_no_part_of_the_curve():
    plan = make_plan(clients=CLIENTS, blocks=7)
    runs = [
        replace(run, status=RunStatus.COLLAPSED) if (run.environment, run.cell) == (OTHER, cell_of(32)) else run
        for run in dent(make_runs(plan), blocks=range(1, 8))
    ]
    (kink,) = find_anomalies(plan, runs)
    assert kink.cell == cell_of(8)


def test_a_curve_has_at_least_five_numbers_of_clients_and_nothing_else_that_varies():
    assert find_curves(make_plan(clients=(1, 2, 4, 8)).experiment, FEWEST_POINTS) == ()
    experiment = make_plan(clients=(8, 4, 2, 1, 16)).experiment
    mixed = replace(experiment, cells=(*experiment.cells, replace(experiment.cells[0], scale=7)))
    (curve,) = find_curves(mixed, FEWEST_POINTS)
    assert [cell.clients for cell in curve] == [1, 2, 4, 8, 16]


@pytest.mark.parametrize(("blocks", "following"), [((3,), 1.0), ((3, 4), math.exp(-0.2)), ((7,), None)])
def test_a_run_that_strays_is_shown_with_the_next_one(blocks, following):
    plan = make_plan(blocks=7)
    stray, *others = find_anomalies(plan, dent(make_runs(plan), blocks=blocks, clients=4))
    assert (stray.kind, stray.environment, stray.cell) == (AnomalyKind.RUN, OTHER, CELL)
    assert len(others) == len(blocks) - 1
    stray = next(one for one in (stray, *others) if one.blocks == blocks[:1])
    assert stray.effect == pytest.approx(math.exp(-0.2), abs=0.03)
    assert stray.following == (None if following is None else pytest.approx(following, abs=0.03))


def test_runs_that_wander_with_the_machine_do_not_stray():
    plan = make_plan(blocks=24, floors={CELL: 0.005})
    assert find_anomalies(plan, simulate(plan, sd=0.005, drift=0.1)) == ()


def test_what_looks_wrong_stays_in_the_estimate():
    plan = make_plan(blocks=7)
    runs = dent(make_runs(plan), blocks=(3,), clients=4)
    (comparison,) = compare_study(plan, runs, metrics=())
    assert comparison.blocks == 7
