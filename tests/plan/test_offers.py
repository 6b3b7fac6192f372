"""Changes that are offered where a plan takes too long, and the order of a rising load."""

from dataclasses import replace
from functools import partial

import pytest

import records
from pgstrata.drivers.registry import driver_capabilities
from pgstrata.model.experiment import Cell, Interleave, Order
from pgstrata.model.plan import HostCapacity
from pgstrata.model.workload import DataKind, Workload
from pgstrata.plan import make_plan as make_plan_for
from pgstrata.plan.identity import identify
from pgstrata.report.planning.plan import render_plan
from studies import BASE, OTHER, make_environment

GB = 1024**3
CAPACITY = HostCapacity(memory=32 * GB, cpus=4, free_disk=500 * GB)
WORKLOADS = {
    name: Workload(
        name=name,
        title="",
        data=DataKind(name="pgbench", title="", unit="", bytes_per_scale=16 * 1024**2),
        writes=name == "simple-update",
        builtin=name,
    )
    for name in ("select-only", "simple-update")
}
make_plan = partial(make_plan_for, drivers=driver_capabilities())


def plan(*, clients=(1, 2, 4, 8, 16, 32, 64), run=1800.0, workload="select-only", **more):
    environments = [make_environment(name, settings={"max_connections": "100"}) for name in (BASE, OTHER)]
    cells = tuple(Cell(workload=workload, scale=1, clients=each, threads=1, run=run) for each in clients)
    asked = records.make_experiment(environments, cells=cells, **more)
    return make_plan(asked, WORKLOADS, CAPACITY)


def offers(made):
    return [note.names for note in made.notes if note.code == "offer"]


def codes(made):
    return [note.code for note in made.notes]


def test_a_plan_that_fits_gets_no_offer():
    assert offers(plan(run=30.0)) == []
    assert "too_long" not in codes(plan(run=30.0))


def test_a_copy_of_a_published_plan_says_how_long_it_takes_and_what_would_fit():
    made = plan(blocks=3)
    assert {"few_blocks", "too_long"} <= set(codes(made))
    names = offers(made)
    assert ('interleave = "auto"',) in names
    assert ('run = "60s"',) in names
    shown = " ".join(render_plan(made).split())
    assert "8 blocks, the fewest that give an interval, take" in shown
    assert shown.index('with run = "60s", 8 blocks would take') < shown.index("Environments")


def test_the_longest_run_that_fits_is_offered():
    made = plan(budget=7200.0, workload="simple-update", run=120.0)
    lengths = [each for (each,) in offers(made) if each.startswith("run")]
    assert lengths == ['run = "30s"']
    assert all(note.seconds <= 7200.0 for note in made.notes if note.code == "offer")
    assert "too_long" not in codes(made)


def test_where_no_change_is_enough_alone_several_are_offered_together():
    asked = {"workload": "simple-update", "run": 60.0}
    (names,) = offers(plan(**asked, budget=1000.0))
    assert names == ('run = "10s"', "clients = [1, 4, 16, 64]")


def test_where_nothing_is_enough_nothing_is_offered():
    made = plan(workload="simple-update", budget=60.0, blocks=3)
    assert offers(made) == []
    assert "too_long" in codes(made)


@pytest.mark.parametrize("interleave", [Interleave.RUNS, Interleave.SLICES])
def test_a_rising_load_has_fewer_clients_first_in_every_visit_and_says_so(interleave):
    made = plan(order=Order.RISING, run=60.0, interleave=interleave)
    for block in made.blocks:
        for visit in block.visits:
            clients = [made.experiment.cell(stage.cell).clients for stage in visit.stages]
            assert clients == sorted(clients)
    assert "load and time are confounded" in " ".join(render_plan(made).split())


def test_a_random_order_keeps_its_identity_and_is_not_warned_of():
    made, rising = plan(run=60.0), plan(run=60.0, order=Order.RISING)
    assert made.identity == identify(replace(rising.experiment, order=Order.RANDOM), made.designs)
    assert made.identity != rising.identity
    assert "rising_load" not in codes(made)
