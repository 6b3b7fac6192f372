"""A little plan in slices, its servers here or on another machine, with fakes on every port."""

from dataclasses import replace

import fakes
from little_plan import make_plan
from pgstrata.model.experiment import HostKind, HostSpec, Interleave
from pgstrata.model.plan import Design

FAR = HostSpec(kind=HostKind.SSH, destination="db1")
POSTMASTERS = {"a": 71, "b": 72}


def sliced_plan(host, *, blocks=1, **changes):
    plan = make_plan(blocks=blocks, together=True)
    environments = tuple(replace(each, host=host) for each in plan.experiment.environments)
    (cell,) = plan.experiment.cells
    design = Design(cell=cell.identity, interleave=Interleave.SLICES, slice_seconds=0.25, rounds=2, **changes)
    return replace(plan, experiment=replace(plan.experiment, environments=environments), designs=(design,))


class Process(fakes.FakeProcess):
    """Runs until it is told to end; what it was told is in the log with its pid."""

    def __init__(self, world, pid):
        super().__init__(world, float("inf"), 0)
        self.pid = pid

    def signal(self, signal, *, group=False):
        self.world.log.append((str(signal), self.pid))
        if str(signal) == "KILL":
            self.ends = self.world.now


class ClientHost(fakes.FakeHost):
    """Runs the turns' script, which is over at once; `script` is what was written for it."""

    name = "local"

    def write(self, path, content, *, mode=0o600):
        if path.endswith("turns.sh"):
            self.script = content.decode()

    def spawn(self, command, *, stdout, stderr, on_parent_death=None):
        return fakes.FakeProcess(self.world, self.world.now, 0)

    def read(self, path, *, offset=0):
        return b"1 0 0 250000000\n1 1 250000000 500000000\n" if path.endswith("turns.txt") else b""

    def read_files(self, paths):
        return dict.fromkeys(paths, b"")


class ServerHost(fakes.FakeHost):
    name = "ssh:db1"


class Driver(fakes.FakeDriver):
    """Clients that stay, with pids from 91 on; others end as usual."""

    pids = iter(())

    def start(self, load, folder, *, on_parent_death=None):
        usual = super().start(load, folder, on_parent_death=on_parent_death)
        return Process(self.world, next(self.pids)) if folder.endswith("/run") else usual


class Control(fakes.FakeControl):
    def start(self, environment, build, clone, launch=None):
        server = super().start(environment, build, clone, launch)
        return replace(server, postmaster_pid=POSTMASTERS[environment.name])


def sliced_rig(world, plan, **more):
    (host,) = plan.experiment.hosts
    rig = fakes.make_rig(world, plan)
    home = fakes.home_of(rig)
    client = ClientHost(world)
    driver = Driver(world)
    driver.pids = iter(range(91, 100))
    supplies = {name: replace(supply, control=Control(world)) for name, supply in home.supplies.items()}
    home = replace(home, supplies=supplies, host=ServerHost(world) if host.remote else client)
    return fakes.with_hosts(rig, {host: home}, client=client, drivers={"pgbench": driver}, **more)
