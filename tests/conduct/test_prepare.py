"""The layers of a host beneath a run: prepared, launched, undone, with fakes on every port."""

from contextlib import suppress
from dataclasses import replace

import pytest

import fakes
from little_plan import CELLS, make_plan
from pgstrata.conduct.loop import Conduct
from pgstrata.drivers.registry import driver_capabilities
from pgstrata.errors import DiskFullError, HostNotFitError, LevelNotTakenError, ServerFailedError
from pgstrata.model.changes import Change, ShellScript
from pgstrata.model.experiment import Interleave, Reset
from pgstrata.model.launch import Launch
from pgstrata.model.plan import HostCapacity
from pgstrata.model.runs import RunStatus
from pgstrata.plan.design import choose_designs


class FakeLayer:
    """Sets one thing to the level that an environment asks for; the levels in `untaken` do not take."""

    def __init__(self, key, *, launch=None, untaken=(), error=LevelNotTakenError):
        self.name = self.key = key
        self.launch, self.untaken, self.error = launch or Launch(), untaken, error
        self.needs = []

    def concerns(self, environment):
        return self.key in environment.layers

    def prepare(self, environment, needs, ledger):
        self.needs.append(needs)
        level = environment.layers[self.key]
        nothing = ShellScript(text=":")
        ledger.change(Change(what=self.key, value=level, read=nothing, do=nothing, undo=nothing))
        if level in self.untaken:
            raise self.error(f"{self.key} = {level} did not take")
        return self.launch

    def observe(self, server, sql):
        return {f"layer.{self.key}": server.environment.layers.get(self.key, "")}


def layered(plan, **levels):
    environments = tuple(
        replace(environment, layers=levels.get(environment.name, {})) for environment in plan.experiment.environments
    )
    return replace(plan, experiment=replace(plan.experiment, environments=environments))


def carry_out(plan, *layers):
    world = fakes.World()
    rig = fakes.make_rig(world, plan, host_layers=layers)
    Conduct(rig=rig, plan=plan, budget=None).carry_out()
    return world, rig


def test_an_environment_that_asks_for_a_layer_has_it_in_each_of_its_runs_and_nothing_is_left():
    layer = FakeLayer("thp")
    plan = layered(make_plan(), b={"thp": "always"})
    world, rig = carry_out(plan, layer)
    # once before the first block, and in each of two blocks
    assert [change.value for change in fakes.home_of(rig).ledger.changes] == ["always"] * 3
    assert not fakes.home_of(rig).ledger.open
    assert len(fakes.home_of(rig).ledger.undone) == 3
    assert ("needs", "b") not in world.log


def test_layers_are_prepared_from_the_lowest_up_and_the_outer_words_come_first():
    low = FakeLayer("filesystem", launch=Launch(data="/mnt/x", client=("nice",)))
    high = FakeLayer("cpu.quota", launch=Launch(server=("in-group",), client=("taskset",), settings={"jit": "on"}))
    plan = layered(make_plan(names=("a",)), a={"filesystem": "xfs", "cpu.quota": "0.5"})
    world, rig = carry_out(plan, low, high)
    assert [change.what for change in fakes.home_of(rig).ledger.changes[:2]] == ["filesystem", "cpu.quota"]
    assert [change.what for change in fakes.home_of(rig).ledger.undone[:2]] == ["cpu.quota", "filesystem"]
    assert {load.launch for _, load in world.loads} == {("nice", "taskset")}
    assert low.needs[0].data > 256 * 1024**2


def test_images_are_as_large_for_every_environment_of_a_cell():
    layer = FakeLayer("filesystem")
    plan = layered(make_plan(), a={"filesystem": "xfs"}, b={"filesystem": "ext4"})
    plan = replace(
        plan,
        experiment=replace(
            plan.experiment,
            environments=tuple(
                replace(one, settings={"max_wal_size": wal})
                for one, wal in zip(plan.experiment.environments, ("1GB", "16GB"), strict=True)
            ),
        ),
    )
    carry_out(plan, layer)
    assert len({needs.data for needs in layer.needs}) == 1
    assert layer.needs[0].data > 24 * 1024**3


def test_an_environment_without_an_image_makes_no_other_larger():
    layer = FakeLayer("filesystem")
    plan = layered(make_plan(), a={"filesystem": "xfs"}, b={"filesystem": "xfs", "storage.device": "/dev/x"})
    plan = replace(
        plan,
        experiment=replace(
            plan.experiment,
            environments=(
                plan.experiment.environments[0],
                replace(plan.experiment.environments[1], settings={"max_wal_size": "16GB"}),
            ),
        ),
    )
    carry_out(plan, layer)
    assert layer.needs[0].data < 4 * 1024**3


def test_wal_on_storage_of_its_own_is_sized_alike_and_quiet_before_each_run():
    layer = FakeLayer("storage.wal", launch=Launch(wal="/mnt/w", prefix="/mnt/i"))
    plan = layered(make_plan(), a={"storage.wal": "loop"}, b={"storage.wal": "memory"})
    plan = replace(
        plan,
        experiment=replace(
            plan.experiment,
            environments=tuple(
                replace(one, settings={"max_wal_size": wal})
                for one, wal in zip(plan.experiment.environments, ("1GB", "16GB"), strict=True)
            ),
        ),
    )
    world, _ = carry_out(plan, layer)
    assert len({needs.wal for needs in layer.needs}) == 1
    assert layer.needs[0].wal > 24 * 1024**3
    assert layer.needs[0].build.prefix == "/pg"
    quiet = [entry for entry in world.log if entry[:3] == ("run", "sync", "-f")]
    assert quiet
    assert all(len([folder for folder in entry[3:] if folder.startswith("/mnt/w/")]) == 1 for entry in quiet)


def test_full_storage_of_the_wal_has_a_remedy_of_its_own():
    full = b'PANIC: could not write to file "pg_wal/xlogtemp.7": No space left on device'
    plan = layered(make_plan(names=("a",)), a={"filesystem": "xfs", "storage.wal": "loop"})
    rig = fakes.make_rig(fakes.World(server_logs={"a": full}), plan, host_layers=(FakeLayer("filesystem"),))
    with pytest.raises(DiskFullError) as caught:
        Conduct(rig=rig, plan=plan, budget=None).carry_out()
    assert "max_wal_size" in caught.value.remedy


def test_a_full_file_system_of_a_runs_own_has_a_remedy_of_its_own():
    full = b"PANIC: could not write to file: No space left on device"
    plan = layered(make_plan(names=("a",)), a={"filesystem": "xfs"})
    rig = fakes.make_rig(fakes.World(server_logs={"a": full}), plan, host_layers=(FakeLayer("filesystem"),))
    with pytest.raises(DiskFullError) as caught:
        Conduct(rig=rig, plan=plan, budget=None).carry_out()
    assert "storage.size" in caught.value.remedy
    assert "PGSTRATA_DATA" not in caught.value.remedy


def test_only_pages_ask_the_server_how_much_memory_it_wants():
    layer = FakeLayer("pages")
    world, _ = carry_out(layered(make_plan(names=("a",)), a={"pages": "2MB"}), layer)
    assert ("needs", "a") in world.log
    assert {needs.shared_memory for needs in layer.needs} == {1000}


def test_a_level_that_does_not_take_is_found_before_the_first_block_and_undone():
    plan = layered(make_plan(), b={"thp": "always"})
    layer = FakeLayer("thp", untaken=("always",))
    world = fakes.World()
    rig = fakes.make_rig(world, plan, host_layers=(layer,))
    with pytest.raises(LevelNotTakenError, match="did not take"):
        Conduct(rig=rig, plan=plan, budget=None).carry_out()
    assert not fakes.home_of(rig).ledger.open
    assert not rig.store.kept


def test_a_level_that_is_lost_later_fails_its_run_and_the_other_environment_goes_on():
    plan = layered(make_plan(), b={"thp": "always"})

    class Losing(FakeLayer):
        def prepare(self, environment, needs, ledger):
            self.untaken = ("always",) if self.needs else ()
            return super().prepare(environment, needs, ledger)

    world, rig = carry_out(plan, Losing("thp"))
    statuses = {identity: record.status for identity, record in rig.store.kept.items()}
    assert {status for identity, status in statuses.items() if "/b/" in identity} == {RunStatus.FAILED}
    assert {status for identity, status in statuses.items() if "/a/" in identity} == {RunStatus.COMPLETED}
    assert not fakes.home_of(rig).ledger.open
    assert not world.up


def test_what_the_host_cannot_do_ends_the_experiment_with_everything_undone():
    plan = layered(make_plan(), b={"thp": "always"})
    rig = fakes.make_rig(
        fakes.World(), plan, host_layers=(FakeLayer("thp", untaken=("always",), error=HostNotFitError),)
    )
    with pytest.raises(HostNotFitError):
        Conduct(rig=rig, plan=plan, budget=None).carry_out()
    assert not fakes.home_of(rig).ledger.open


def test_where_data_are_kept_from_run_to_run_layers_are_kept_as_long():
    cells = (CELLS[0], replace(CELLS[0], clients=4))
    plan = layered(make_plan(names=("a",), cells=cells, blocks=1, reset=Reset.RESTART), a={"thp": "always"})
    _, rig = carry_out(plan, FakeLayer("thp"))
    # preflight, and one for both cells
    assert len(fakes.home_of(rig).ledger.changes) == 2
    _, rig = carry_out(replace(plan, experiment=replace(plan.experiment, reset=Reset.CLONE)), FakeLayer("thp"))
    assert len(fakes.home_of(rig).ledger.changes) == 3


@pytest.mark.parametrize("reset", [Reset.RESTART, Reset.NONE])
def test_with_other_data_layers_and_server_begin_anew(reset):
    cells = (CELLS[0], replace(CELLS[0], clients=4), replace(CELLS[0], scale=10), CELLS[0])
    cells = (*cells[:3], replace(cells[3], clients=8))
    plan = layered(make_plan(names=("a",), cells=cells, blocks=1, reset=reset), a={"thp": "always"})
    held = []

    class Watching(FakeLayer):
        def prepare(self, environment, needs, ledger):
            held.append((len(ledger.open), set(world.up), set(world.clones)))
            return super().prepare(environment, needs, ledger)

    world = fakes.World()
    rig = fakes.make_rig(world, plan, host_layers=(Watching("thp"),))
    Conduct(rig=rig, plan=plan, budget=None).carry_out()
    # preflight with each dataset, and the three stretches of the block
    assert held == [(0, set(), set())] * 5
    assert not fakes.home_of(rig).ledger.open


def test_without_layers_a_server_stays_up_beside_that_of_other_data():
    cells = (CELLS[0], replace(CELLS[0], scale=10), replace(CELLS[0], clients=4))
    world, _ = carry_out(make_plan(names=("a",), cells=cells, blocks=1, reset=Reset.NONE))
    assert world.log.count(("start", "a")) == 2 + 2


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ({"cpu.quota": "0.5"}, {"cpu.quota": "0.5"}, ("by_periods", "cpu.quota")),
        ({"cpu.policy": "batch"}, {}, None),
        ({"cpu.server": "0"}, {"cpu.server": "1"}, None),
        ({"thp": "always"}, {"thp": "always"}, None),
        ({"thp": "always"}, {"thp": "never"}, ("of_host", "thp")),
        ({"sysctl.vm.swappiness": "1"}, {}, ("of_host", "sysctl.vm.swappiness")),
        ({"limits.memory": "1"}, {"limits.memory": "1"}, ("for_one", "limits.memory")),
        ({"filesystem": "xfs"}, {"filesystem": "ext4"}, ("for_one", "filesystem")),
        ({"storage.wal": "same"}, {"storage.wal": "loop"}, ("for_one", "storage.wal")),
        ({}, {"storage.installation": "memory"}, ("for_one", "storage.installation")),
    ],
)
def test_layers_that_belong_to_the_whole_host_keep_environments_apart(a, b, reason):
    experiment = layered(make_plan(cells=(replace(CELLS[0], scale=10),)), a=a, b=b).experiment
    capacity = HostCapacity(memory=32 * 1024**3, cpus=4, free_disk=1024**4)
    (design,) = choose_designs(
        experiment, {"select-only": fakes.WORKLOAD}, capacity, driver_capabilities(), Interleave.AUTO
    )
    assert design.sliced == (reason is None)
    assert reason is None or (design.reason.code, *design.reason.names) == reason


def test_a_layer_that_killed_a_server_is_named_and_that_is_a_collapse():
    class Killing(FakeLayer):
        def explain_death(self, environment):
            return "limits.memory was used up" if self.concerns(environment) else ""

    plan = layered(make_plan(), b={"limits.memory": "1"})
    died = b"LOG: server process (PID 5) was terminated by signal 9: Killed"
    world = fakes.World(outputs={"a": b"", "b": b""}, server_logs={"a": died, "b": died})
    rig = fakes.make_rig(world, plan, host_layers=(Killing("limits.memory"),))
    with suppress(ServerFailedError):
        Conduct(rig=rig, plan=plan, budget=None).carry_out()
    limited, other = (rig.store.kept[f"b01/{name}/select-only-s1-c2"] for name in ("b", "a"))
    assert limited.status is RunStatus.COLLAPSED
    assert limited.reasons[0].how == "died"
    assert limited.reasons[0].said.endswith("terminated by signal 9: Killed; limits.memory was used up")
    assert other.status is RunStatus.FAILED
