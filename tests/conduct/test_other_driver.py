"""A driver that is not pgbench, cannot be paused and writes no log: planned run by run, and carried out to the end."""

from dataclasses import replace

import pytest

import fakes
from little_plan import CELLS, carry_out
from little_plan import make_plan as lay_out
from pgstrata.conduct.ceiling import CEILINGS
from pgstrata.drivers.registry import driver_capabilities, find_driver
from pgstrata.errors import PlanRefusedError, StudyError
from pgstrata.model.experiment import Interleave, Placement, Protocol, Script
from pgstrata.model.plan import HostCapacity
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import RunStatus
from pgstrata.plan import make_plan
from pgstrata.ports.studies import StudyHead
from pgstrata.store.serialise import parse_plan_file, render_plan_file
from plain_driver import PLAIN, PLAIN_CAPABILITIES, PlainDriver

CELL = replace(CELLS[0], driver=PLAIN)
CAPACITY = HostCapacity(memory=1 << 40, cpus=4, free_disk=1 << 40)
DRIVERS = {**driver_capabilities(), PLAIN: PLAIN_CAPABILITIES}


def plan_of(cell, *, drivers=DRIVERS, interleave=Interleave.AUTO):
    experiment = lay_out(cells=(cell,)).experiment
    return make_plan(experiment, {"select-only": fakes.WORKLOAD}, CAPACITY, drivers=drivers, interleave=interleave)


def test_a_driver_that_cannot_be_paused_is_measured_run_by_run_and_the_design_says_why():
    (design,) = plan_of(CELL).designs
    assert not design.sliced
    assert design.reason == Reason(code="driver", names=("plain",))
    (usual,) = plan_of(CELLS[0]).designs
    assert usual.sliced


def test_a_whole_plan_is_carried_out_by_it():
    world, plan = fakes.World(), plan_of(CELL)
    driver = PlainDriver(fakes.FakeClock(world), tps=250.0)
    _, rig = carry_out(plan, world, drivers={PLAIN: driver})
    assert rig.store.done == {run.identity for run in plan.runs}
    assert {run.status for run in rig.store.kept.values()} == {RunStatus.COMPLETED}
    assert {run.value("tps") for run in rig.store.kept.values()} == {250.0}
    assert rig.sampling == {}
    named = {name for header in rig.store.headers.values() for name in header.facts if PLAIN in name}
    assert named == {"driver.plain.version"}, "beside pgbench its facts have its name, and nothing else has"
    assert driver.loads
    assert not world.loads


def test_an_environment_is_the_same_whichever_driver_a_cell_has():
    world = fakes.World()
    experiment = lay_out(cells=(CELL, replace(CELLS[0], clients=CELL.clients + 1, placement=Placement.FREE))).experiment
    known = {"select-only": fakes.WORKLOAD}
    plan = make_plan(experiment, known, CAPACITY, drivers=DRIVERS, interleave=Interleave.RUNS)
    _, rig = carry_out(plan, world, drivers={PLAIN: PlainDriver(fakes.FakeClock(world), tps=250.0)})
    assert rig.store.done == {run.identity for run in plan.runs}
    assert {reason.code for run in rig.store.kept.values() for reason in run.reasons} <= {"near_ceiling"}
    assert {header.facts["driver.version"] for header in rig.store.headers.values()} == {"18"}


def test_what_its_client_alone_could_drive_is_not_taken_for_that_of_another_driver():
    class Asking(PlainDriver):
        def least_load(self, load):
            return load

    world, plan = fakes.World(), plan_of(CELL)
    _, rig = carry_out(plan, world, drivers={PLAIN: Asking(fakes.FakeClock(world), tps=250.0)})
    kept = rig.store.fingerprint(CEILINGS).facts
    assert kept
    assert all(way.endswith(", plain") for way in kept)


@pytest.mark.parametrize(
    ("change", "what", "remedy"),
    [
        ({"rate": 10.0}, "the driver plain cannot keep a fixed rate", "leave out rate"),
        ({"latency_limit": 0.1}, "the driver plain neither counts nor skips late", "leave out latency_limit"),
        ({"scripts": (Script(file="a.sql", text="SELECT 1;"),)}, "the driver plain does not run scripts", "workload"),
        ({"driver": "other"}, "there is no driver 'other'", "pgbench, plain"),
    ],
)
def test_a_cell_that_asks_for_more_than_its_driver_can_do_is_refused(change, what, remedy):
    with pytest.raises(PlanRefusedError) as caught:
        plan_of(replace(CELL, **change))
    assert what in caught.value.what
    assert caught.value.where == "[[cells]]"
    assert remedy in caught.value.remedy


ABLE = replace(
    PLAIN_CAPABILITIES, fixed_rate=True, whole_rates=True, shares_threads=False, profile=False, protocols=("prepared",)
)


@pytest.mark.parametrize(
    ("change", "what", "remedy"),
    [
        ({"rate": 10.5}, "the driver plain cannot keep a rate of 10.5 per second", "a whole number, such as 10"),
        ({"rate": 10.0, "latency_limit": 0.1}, "neither counts nor skips late transactions", "latency_limit"),
        ({"clients": 4, "threads": 2}, "the driver plain has a thread for each client", "leave out threads"),
        ({"profile": True}, "does not tell the latency of each statement", "leave out profile"),
        ({"protocol": Protocol.EXTENDED}, "does not speak the extended protocol", 'protocol = "prepared"'),
    ],
)
def test_of_what_its_driver_can_only_do_in_part_the_rest_is_refused(change, what, remedy):
    usual = replace(CELL, clients=2, threads=2, rate=None)
    plan_of(replace(usual, rate=10.0), drivers={PLAIN: ABLE})
    with pytest.raises(PlanRefusedError) as caught:
        plan_of(replace(usual, **change), drivers={PLAIN: ABLE})
    assert what in caught.value.what
    assert remedy in caught.value.remedy


def test_a_driver_that_cannot_load_its_data_is_refused():
    with pytest.raises(PlanRefusedError, match="does not load its data"):
        plan_of(CELL, drivers={PLAIN: replace(PLAIN_CAPABILITIES, loads_data=False)})


def test_slices_are_refused_for_it():
    with pytest.raises(PlanRefusedError, match=r"code='driver', .*'plain'"):
        plan_of(CELL, interleave=Interleave.SLICES)


def test_the_driver_fixes_a_plan_and_is_kept_with_it():
    plan = plan_of(CELL, interleave=Interleave.RUNS)
    assert plan.identity != plan_of(CELLS[0], interleave=Interleave.RUNS).identity
    file = StudyHead(plan=plan, created="", version="")
    assert parse_plan_file(render_plan_file(file), where="").plan.experiment.cells[0].driver == PLAIN


def test_a_study_with_a_driver_that_is_not_known_here_cannot_be_read():
    with pytest.raises(StudyError, match="no driver 'plain'"):
        find_driver(PLAIN)


def test_the_parser_of_every_driver_bears_a_run_that_left_nothing():
    for key, known in driver_capabilities().items():
        parser = find_driver(key).parser()
        assert known == find_driver(key).capabilities
        assert not parser.ran({})
        assert not parser.parse({}).complete
        assert parser.messages({}) == ()
