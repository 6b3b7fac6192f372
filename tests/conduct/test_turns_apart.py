"""Environments that take turns while their servers are on another machine, with fakes on every port."""

import pytest

import fakes
from little_slices import FAR, Process, sliced_plan, sliced_rig
from pgstrata.conduct.loop import Conduct, Ending
from pgstrata.conduct.visit import conduct_visit
from pgstrata.errors import HostLostError
from pgstrata.model.experiment import HostSpec
from pgstrata.ports.collector import Sampling


class Looking:
    """A collector that notes when it looked; `broken` are errors of its next looks, the last first."""

    def __init__(self, world, name, broken=()):
        self.world, self.name, self.broken = world, name, list(broken)
        self.with_clients = name != "counters"

    def capture(self, subject):
        self.world.log.append(
            ("look", self.name, subject.host.name, next((client.name for client in subject.clients), None))
        )
        if self.broken and (error := self.broken.pop()):
            raise error
        return b"x"

    def parse(self, before, after, window):
        return ()


class Sampler:
    """Over there it can be lost: then its process cannot even be asked."""

    def __init__(self, world, name, *, paused, lost=False):
        self.world, self.name, self.paused, self.lost = world, name, paused, lost
        self.pid = 81 if paused else 82

    def start(self, subject, folder):
        process = Process(self.world, self.pid)
        if self.lost:
            process.poll = self.fail
        return Sampling(host=next(iter(subject.clients), subject.host), process=process, output="o", errors="e")

    def fail(self):
        raise HostLostError("the shell has ended", where="db1")

    def parse(self, evidence, window):
        raise AssertionError("nothing was written")


@pytest.mark.parametrize(
    ("host", "resident", "of_client"),
    [(HostSpec(), {92, 72}, ()), (FAR, {72}, (92,))],
    ids=["here", "there"],
)
def test_processes_of_the_others_are_known_by_host(host, resident, of_client):
    plan, world = sliced_plan(host), fakes.World()
    rig = sliced_rig(world, plan)
    (visit,) = plan.blocks[0].visits
    conduct_visit(rig, plan, visit, todo={run.identity for run in plan.runs}, tell=lambda record: None)
    header = rig.store.headers["b01/a/select-only-s1-c2"]
    assert (header.client_pid, set(header.resident_pids), header.client_resident_pids) == (91, resident, of_client)
    assert header.apart == host.remote
    assert not header.failure
    # the script runs where the clients are, and pauses nothing else
    assert {line.split("'")[1] for line in rig.here.host.script.splitlines() if line.startswith("turn ")} == {
        "-91",
        "-92",
    }


def test_processes_of_both_hosts_are_looked_at_while_the_clients_are_there():
    plan, world = sliced_plan(FAR), fakes.World()
    looks = tuple(Looking(world, name) for name in ("counters", "client's", "server's"))
    rig = sliced_rig(world, plan, collectors=looks)
    (visit,) = plan.blocks[0].visits
    conduct_visit(rig, plan, visit, todo={run.identity for run in plan.runs}, tell=lambda record: None)
    steps = [entry[:2] for entry in world.log if entry[0] in {"look", "measure", "end"}]
    begun = max(place for place, entry in enumerate(steps) if entry[0] == "measure")
    ended = min(place for place, entry in enumerate(steps) if entry[0] == "end")
    within = [name for _, name in steps[begun + 1 : ended]]
    assert within == ["client's", "server's"] * 2 + ["server's", "client's"] * 2
    assert {entry[2:] for entry in world.log if entry[0] == "look"} == {("ssh:db1", "local")}


def test_a_host_that_is_lost_in_the_turns_leaves_no_client_and_its_visit_is_repeated():
    plan, world = sliced_plan(FAR), fakes.World()
    lost = HostLostError("the shell has ended", where="db1")
    samplers = (Sampler(world, "far", paused=False, lost=True), Sampler(world, "near", paused=True))
    # it looks at both before the turns, and then is lost
    looks = (Looking(world, "client's"), Looking(world, "server's", [lost, None, None]))
    rig = sliced_rig(world, plan, collectors=looks, samplers=samplers)

    def reopen():
        world.log.append(("reopen", "ssh:db1"))
        samplers[0].lost = False

    rig.targets[FAR].reopen = reopen
    assert Conduct(rig=rig, plan=plan, budget=None).carry_out() is Ending.COMPLETE
    until = world.log[: world.log.index(("reopen", "ssh:db1"))]
    assert {("KILL", 91), ("KILL", 92), ("KILL", 81)} <= set(until)
    assert {rig.store.headers[run.identity].client_pid for run in plan.runs} == {93, 94}
    assert not any(rig.store.headers[run.identity].failure for run in plan.runs)
