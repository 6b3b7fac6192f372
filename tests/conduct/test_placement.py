"""Backends of paired sessions are found by name, put on CPUs and looked at, over a host that is none."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

import fakes
import little_plan
from pgstrata.conduct.arm import make_arm
from pgstrata.conduct.placement import PLACEMENT, place_backends, place_clients
from pgstrata.errors import LevelNotTakenError, ServerFailedError
from pgstrata.model.experiment import Placement
from pgstrata.model.plan import Design, Interleave
from pgstrata.model.server import Address
from pgstrata.model.workload import DataKind, Workload
from pgstrata.ports.driver import Load
from pgstrata.ports.host import Completed
from pgstrata.ports.server import QueryResult

WORKLOAD = Workload(
    name="select-only",
    title="",
    data=DataKind(name="pgbench", title="", unit="", bytes_per_scale=1),
    writes=False,
    builtin="select-only",
)


class Machine:
    """A host of four CPUs with backends, which `taskset` moves unless it is deaf."""

    name = "there"

    def __init__(self, *, deaf=False, gone=frozenset()):
        self.allowed = {}
        self.deaf = deaf
        self.gone = gone

    def read(self, path):
        assert path == "/proc/self/status"
        return b"Name:\tx\nCpus_allowed_list:\t0-3\n"

    def read_files(self, paths):
        pids = {path: int(path.split("/")[2]) for path in paths}
        return {
            path: f"Cpus_allowed_list:\t{self.allowed[pid]}\n".encode()
            for path, pid in pids.items()
            if pid in self.allowed and pid not in self.gone
        }

    def run(self, command, **_):
        for word in command.argv[4:]:
            pid, cpu = map(int, word.split(":"))
            if pid in self.allowed and not self.deaf:
                self.allowed[pid] = str(cpu)
        return Completed(code=0, stdout=b"", stderr=b"")


class Server:
    """Sessions as they come, a set of (name, pid) for each look; the last one stays."""

    def __init__(self, machine, *looks):
        self.machine, self.looks, self.asked = machine, list(looks), []

    def query(self, address, statement):
        self.asked.append(statement)
        rows = self.looks[0] if len(self.looks) == 1 else self.looks.pop(0)
        for _, pid in rows:
            self.machine.allowed.setdefault(pid, "0-3")
        return QueryResult(columns=("application_name", "pid"), rows=tuple((name, str(pid)) for name, pid in rows))


class Driver:
    def session_names(self, load):
        return {f"it's {cpu}": cpu for cpu in load.cpus}


def rig(machine, *looks):
    world = fakes.World()
    home, server = SimpleNamespace(host=machine), Server(machine, *looks)
    return SimpleNamespace(
        client=lambda environment: machine,
        clock=fakes.FakeClock(world),
        sql=lambda environment: server,
        driver=lambda environment, cell: Driver(),
        server_host=lambda environment: home,
    )


def arm(clients=2, placement=Placement.PAIRED, layers=None):
    cell = replace(little_plan.CELLS[0], clients=clients)
    plan = little_plan.make_plan(cells=(cell,))
    design = Design(cell=cell.identity, interleave=Interleave.RUNS, placement=placement)
    made = make_arm(replace(plan, designs=(design,)), plan.runs[0])
    made.environment = replace(made.environment, layers=layers or {})
    return made


def load(made):
    address = Address(host="/s", port=1, database="b", user="u")
    return Load(cell=made.cell, workload=WORKLOAD, address=address, seconds=1.0, seed=1)


def test_free_sessions_are_left_alone():
    made, there = arm(placement=Placement.FREE), rig(Machine())
    assert place_clients(there, made, load(made)).cpus == ()
    place_backends(there, made, load(made))
    assert not there.sql(made.environment).asked


def test_all_environments_of_a_block_have_the_same_cpus():
    made, there = arm(clients=4), rig(Machine())
    other = arm(clients=4)
    cpus = place_clients(there, made, load(made)).cpus
    assert sorted(cpus) == [0, 1, 2, 3]
    assert place_clients(there, other, load(other)).cpus == cpus


def test_clients_keep_to_the_cpus_of_their_layer():
    made = arm(clients=4, layers={"cpu.client": "1-2"})
    assert sorted(place_clients(rig(Machine()), made, load(made)).cpus) == [1, 1, 2, 2]


def test_each_backend_goes_to_the_cpu_of_its_client_and_that_is_kept():
    machine, made = Machine(), arm()
    asked = replace(load(made), cpus=(3, 1))
    place_backends(rig(machine, [("it's 3", 30), ("it's 1", 10)]), made, asked)
    assert machine.allowed == {30: "3", 10: "1"}
    assert made.files[PLACEMENT] == b"1 10 1\n3 30 3\n"


def test_backends_keep_to_the_cpus_of_their_layer():
    machine, made = Machine(), arm(layers={"cpu.server": "0,2"})
    place_backends(rig(machine, [("it's 1", 10), ("it's 3", 30)]), made, replace(load(made), cpus=(1, 3)))
    assert sorted(machine.allowed.values()) == ["0", "2"]


def test_it_waits_for_all_clients_and_looks_again_where_a_session_was_only_the_driver_s_own():
    machine, made = Machine(), arm()
    early, own = [("it's 1", 10)], [("it's 1", 10), ("it's 3", 29)]
    last = [("it's 1", 10), ("it's 3", 30)]
    place_backends(rig(machine, [], early, own, last), made, replace(load(made), cpus=(1, 3)))
    assert machine.allowed[30] == "3"
    assert made.files[PLACEMENT] == b"1 10 1\n3 30 3\n"


def test_a_session_that_ended_before_it_was_looked_at_is_no_client_s():
    machine, made = Machine(gone={29}), arm(clients=1)
    own, last = [("it's 3", 29)], [("it's 3", 30)]
    place_backends(rig(machine, own, own, last), made, replace(load(made), cpus=(3,)))
    assert made.files[PLACEMENT] == b"3 30 3\n"


def test_sessions_that_cannot_be_looked_at_are_not_waited_for_without_end():
    machine, made = Machine(gone={30}), arm(clients=1)
    with pytest.raises(LevelNotTakenError, match="cannot be read"):
        place_backends(rig(machine, *[[("it's 3", 30)]] * 20), made, replace(load(made), cpus=(3,)))


def test_names_are_quoted():
    machine, made = Machine(), arm(clients=1)
    there = rig(machine, [("it's 1", 10)])
    place_backends(there, made, replace(load(made), cpus=(1,)))
    assert "IN ('it''s 1')" in there.sql(made.environment).asked[0]


def test_clients_that_do_not_connect_end_the_run_with_a_remedy():
    made = arm()
    with pytest.raises(ServerFailedError, match="1 of 2 clients have connected") as caught:
        place_backends(rig(Machine(), [("it's 1", 10)]), made, replace(load(made), cpus=(1, 3)))
    assert "placement" in caught.value.remedy


def test_a_backend_that_stays_where_it_was_is_a_level_that_was_not_taken():
    made = arm(clients=1)
    with pytest.raises(LevelNotTakenError, match=r"may run on CPUs \[0, 1, 2, 3\] and was put on CPU 1"):
        place_backends(rig(Machine(deaf=True), [("it's 1", 10)]), made, replace(load(made), cpus=(1,)))
