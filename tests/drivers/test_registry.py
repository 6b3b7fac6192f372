"""A driver that is known by its entry in the registry alone: planned, loaded, driven and derived, as the only one."""

from dataclasses import replace

import pytest

import fakes
from little_plan import CELLS, carry_out
from little_plan import make_plan as lay_out
from pgstrata.app.targets import make_recipe
from pgstrata.app.wiring import make_derive
from pgstrata.drivers import registry
from pgstrata.model.experiment import Interleave
from pgstrata.model.plan import HostCapacity
from pgstrata.plan import make_plan
from pgstrata.ports.studies import StudyHead
from pgstrata.servers.packages import Packages
from pgstrata.servers.shelf import ServerSite
from pgstrata.store.serialise import render_header, render_plan_file
from plain_driver import PLAIN, PLAIN_CAPABILITIES, PlainDriver

CELL = replace(CELLS[0], driver=PLAIN)
WORKLOAD = replace(fakes.WORKLOAD, data=replace(fakes.DATA, name="plain rows"), builtin="")
CAPACITY = HostCapacity(memory=1 << 40, cpus=4, free_disk=1 << 40)


class Store(fakes.FakeStore):
    """Keeps the evidence too."""

    def __init__(self):
        super().__init__()
        self.evidence = {}

    def commit(self, *finished):
        super().commit(*finished)
        for run in finished:
            self.evidence[run.record.identity] = {**run.evidence.files, "run.json": render_header(run.header)}


@pytest.fixture
def world(monkeypatch):
    """A world in which there is no other driver; `loaded` is what it was asked to load."""
    world = fakes.World()
    world.loaded = []
    clock = fakes.FakeClock(world)
    entry = registry.RegisteredDriver(
        capabilities=PLAIN_CAPABILITIES,
        parser=lambda: PlainDriver(clock),
        make=lambda host, tools: PlainDriver(clock, tps=250.0),
        load=lambda host, tools, address, cell, folder: world.loaded.append(cell.scale),
        verify=lambda cell: f"SELECT 'rows', {cell.scale}, {cell.scale}, true",
        programs=("plainbench",),
    )
    monkeypatch.setattr(registry, "_DRIVERS", {PLAIN: entry})
    return world


@pytest.fixture
def plan(world):
    experiment = lay_out(cells=(CELL,)).experiment
    drivers = registry.driver_capabilities()
    return make_plan(experiment, {"select-only": WORKLOAD}, CAPACITY, drivers=drivers, interleave=Interleave.AUTO)


def test_a_run_is_driven_by_it_and_derived_from_what_it_left(world, plan):
    store = Store()
    carry_out(plan, world, store=store, drivers={PLAIN: registry.find_driver(PLAIN).make(None, None)})
    assert store.done == {run.identity for run in plan.runs}
    derive = make_derive(plan.experiment)
    for identity, evidence in store.evidence.items():
        record = derive(evidence)
        assert record.value("tps") == store.kept[identity].value("tps") == 250.0
        assert record.status is store.kept[identity].status
        assert b"pgbench" not in b"".join((*map(str.encode, evidence), *evidence.values()))
    assert b"pgbench" not in render_plan_file(StudyHead(plan=plan, created="", version=""))


def test_its_data_are_made_and_checked_by_it(world, plan):
    recipe = make_recipe()
    recipe.load(None, None, None, CELL, "")
    assert world.loaded == [CELL.scale]
    assert recipe.verify(CELL) == "SELECT 'rows', 1, 1, true"


def test_servers_are_checked_for_the_programs_that_it_runs(world):
    packages = Packages(site=ServerSite(here=None, host=None, cache="", note=print), drivers=registry.driver_programs())
    assert packages.programs[-2:] == ("plainbench", "psql")
    assert "pgbench" not in packages.programs
