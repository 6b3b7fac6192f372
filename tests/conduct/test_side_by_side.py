"""What several arms of a visit do at once: begun in all, awaited in each, and apart in what fails."""

from dataclasses import replace

import pytest

import fakes
from little_slices import Control, sliced_plan, sliced_rig
from pgstrata.conduct.arm import make_arm, together
from pgstrata.conduct.visit import conduct_visit
from pgstrata.errors import DiskFullError, ServerFailedError
from pgstrata.model.experiment import HostSpec
from pgstrata.ports.steps import finish, finish_all


def conduct(plan, rig):
    for block in plan.blocks:
        (visit,) = block.visits
        conduct_visit(rig, plan, visit, todo={run.identity for run in plan.runs}, tell=lambda record: None)


def working(log, name, *, steps=2, fails=None):
    """Logs when it is begun and when it is awaited, and whether it was given up."""
    try:
        for number in range(steps):
            log.append((name, number))
            yield
        if fails is not None:
            raise fails
    except GeneratorExit:
        log.append((name, "given up"))
        raise


def test_each_is_begun_before_the_first_is_awaited():
    log = []
    finish_all([working(log, "a"), working(log, "b", steps=3)])
    assert log == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("b", 2)]


def test_the_result_of_a_work_is_that_of_its_last_step():
    def adding():
        yield
        return 3

    assert finish(adding()) == 3


def arms_of(rig, plan):
    return [make_arm(plan, run) for run in plan.runs]


def test_a_failure_of_one_arm_is_its_own_and_one_of_the_host_gives_all_up():
    plan, world = sliced_plan(HostSpec()), fakes.World()
    rig, log = sliced_rig(world, plan), []
    arms = arms_of(rig, plan)
    failing = {arms[0].planned.identity: ServerFailedError("no")}

    def begin(arm):
        return working(log, arm.environment.name, fails=failing.get(arm.planned.identity))

    together(rig, arms, "try", begin)
    assert [bool(arm.failure) for arm in arms] == [True, False]
    assert ("b", 1) in log
    # what has failed is left out from then on
    log.clear()
    together(rig, arms, "try", begin)
    assert {name for name, _ in log} == {"b"}
    arms = arms_of(rig, plan)
    failing[arms[0].planned.identity] = DiskFullError("full")
    with pytest.raises(DiskFullError):
        together(rig, arms, "try", begin)
    assert log[-1] == ("b", "given up")
    assert not any(arm.failure for arm in arms)


def test_the_seconds_of_a_step_are_shared_by_the_arms_that_took_it():
    plan, world = sliced_plan(HostSpec()), fakes.World()
    rig = sliced_rig(world, plan)
    arms = arms_of(rig, plan)

    def begin(arm):
        yield
        rig.clock.sleep(3.0)

    together(rig, arms, "wait", begin)
    assert [arm.dead_time["wait"] for arm in arms] == [3.0, 3.0]


def test_clones_servers_and_clients_of_all_arms_are_made_side_by_side():
    plan, world = sliced_plan(HostSpec()), fakes.World()
    conduct(plan, sliced_rig(world, plan))
    kinds = [entry[0] for entry in world.log if entry[0] in {"clone", "start", "measure", "stop", "discard"}]
    assert kinds == [kind for kind in ("clone", "start", "measure", "stop", "discard") for _ in range(2)]
    assert not world.up
    assert not world.clones


def test_a_server_that_does_not_start_costs_the_others_nothing():
    plan, world = sliced_plan(HostSpec()), fakes.World(fail_start={("a", False)})
    rig = sliced_rig(world, plan)
    conduct(plan, rig)
    failures = {name.split("/")[1]: header.failure for name, header in rig.store.headers.items()}
    assert "did not start" in failures["a"].said
    assert failures["b"] is None
    assert not world.up
    assert not world.clones


class Interrupted(Control):
    """The user interrupts while both servers are starting."""

    def starting(self, environment, *more):
        try:
            server = yield from super().starting(environment, *more)
            raise KeyboardInterrupt
        except GeneratorExit:
            self.world.log.append(("given up", environment.name))
            raise
        return server


def test_an_interruption_gives_up_what_was_begun_and_keeps_nothing():
    plan, world = sliced_plan(HostSpec()), fakes.World()
    rig = sliced_rig(world, plan)
    home = fakes.home_of(rig)
    supplies = {name: replace(supply, control=Interrupted(world)) for name, supply in home.supplies.items()}
    rig = fakes.with_hosts(rig, {HostSpec(): replace(home, supplies=supplies)})
    with pytest.raises(KeyboardInterrupt):
        conduct(plan, rig)
    assert sum(entry[0] == "given up" for entry in world.log) == 1
    assert not world.clones
    assert not rig.store.kept


def test_after_so_many_blocks_the_unlogged_stretch_is_left_out_and_the_throughput_with_it():
    plan, world = sliced_plan(HostSpec(), blocks=3, stretched=2), fakes.World()
    rig = sliced_rig(world, plan)
    conduct(plan, rig)
    warm = sorted(folder.split("/")[-2] for folder, _ in world.loads if folder.endswith("/warmup"))
    assert warm == [f"b0{block}--{name}--select-only-s1-c2" for block in (1, 2) for name in "ab"]
    headers = {run.block: rig.store.headers[run.identity] for run in plan.runs}
    assert [headers[block].stretched for block in (1, 2, 3)] == [True, True, False]
    assert [headers[block].warmup_seconds > 0 for block in (1, 2, 3)] == [True, True, False]
    values = {run.block: rig.store.kept[run.identity].value("tps") for run in plan.runs}
    assert [value is None for value in (values[1], values[2], values[3])] == [False, False, True]
    assert {record.status for record in rig.store.kept.values()} == {"completed"}
