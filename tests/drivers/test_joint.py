"""One load from several machines: divided, begun at one time, told and kept as one."""

from dataclasses import replace

import pytest

from driver_host import DriverHost
from fake_clock import FakeClock
from pgstrata.drivers.joint import JointDriver, Place, divide
from pgstrata.drivers.registry import driver_capabilities
from pgstrata.drivers.shares import join_evidence
from pgstrata.errors import HostNotFitError, ParseError, UsageError
from pgstrata.model.experiment import Cell
from pgstrata.model.server import Address
from pgstrata.ports.clients import STARTS, ClientProcesses, parse_delays
from pgstrata.ports.driver import Load, ProgressPoint
from pgstrata.ports.host import ClockReading
from pgstrata.ports.target import Generator
from pgstrata.workloads import builtin_workloads

WORKLOADS = builtin_workloads()


def load(clients=5, threads=4, rate=None):
    cell = Cell(workload="select-only", scale=1, clients=clients, threads=threads, rate=rate)
    address = Address(host="10.0.0.1", port=5432, database="d", user="u")
    return Load(cell=cell, workload=WORKLOADS["select-only"], address=address, seconds=10.0, seed=7)


class Host(DriverHost):
    name = "far"

    def __init__(self, ahead=0.0):
        super().__init__()
        self.ahead = ahead

    def clock(self):
        return ClockReading(wall=1_700_000_000.0 + self.ahead, monotonic=5.0)

    def read_files(self, paths):
        return {path: self.files[path] for path in paths if path in self.files}


class Process:
    def __init__(self):
        self.signals = []

    def signal(self, signal, *, group=False):
        self.signals.append(signal)


class OneMachine:
    """A driver that remembers what it was asked for."""

    name = "pgbench"
    capabilities = driver_capabilities()["pgbench"]

    def __init__(self, version="18.0", points=()):
        self.asked, self.version, self.points = [], version, points

    def facts(self):
        return {"version": self.version}

    def start(self, load, folder, *, on_parent_death):
        self.asked.append((load, folder))
        return ClientProcesses(processes=[Process()])

    def progress(self, folder, offset):
        return tuple(self.points[offset:]), len(self.points)

    def collect(self, folder):
        return {"pgbench.out": folder.encode(), "transactions.log.gz": b"-"}


def place(number, driver, ahead=0.0):
    return Place(generator=Generator(host=Host(ahead), scratch=f"/scratch{number}", facts={}), driver=driver)


def two_machines(**changes):
    drivers = OneMachine(), OneMachine(**changes)
    places = [place(1, drivers[0]), place(2, drivers[1], ahead=3600.0)]
    return JointDriver(places, FakeClock(wall=1_700_000_000.0)), places, drivers


class TestDividing:
    def test_clients_go_round_and_threads_with_them(self):
        parts = divide(load(clients=5, threads=4), 2)
        assert [(part.cell.clients, part.cell.threads) for part in parts] == [(3, 2), (2, 2)]
        assert len({part.seed for part in parts}) == 2

    def test_machines_beyond_the_clients_have_none(self):
        assert [part.cell.clients for part in divide(load(clients=2), 3)] == [1, 1]

    @pytest.mark.parametrize("rate", [7.0, 100.0, 0.5])
    def test_the_parts_of_a_rate_are_the_rate(self, rate):
        parts = divide(load(clients=5, rate=rate), 3)
        assert sum(part.cell.rate for part in parts) == pytest.approx(rate)

    def test_whole_rates_stay_whole(self):
        parts = divide(load(clients=5, rate=7.0), 3, whole_rates=True)
        assert [part.cell.rate for part in parts] == [3.0, 3.0, 1.0]

    def test_a_whole_rate_that_is_too_low_for_all_is_refused(self):
        with pytest.raises(UsageError, match="too low to be divided among the client machines"):
            divide(load(clients=2, rate=1.0), 2, whole_rates=True)


class TestStarting:
    def test_all_begin_at_one_time_by_their_own_clocks(self):
        joint, _, drivers = two_machines()
        joint.start(load(), "/scratch1/run/x")
        (one, folder), (other, there) = drivers[0].asked[0], drivers[1].asked[0]
        assert (folder, there) == ("/scratch1/run/x", "/scratch2/run/x")
        assert float(other.launch[4]) - float(one.launch[4]) == pytest.approx(3600.0)
        assert float(one.launch[4]) > 1_700_000_000.1

    def test_if_one_cannot_be_started_none_is_left(self):
        joint, _, drivers = two_machines()
        first = ClientProcesses(processes=[Process()])
        drivers[0].start = lambda *_, **__: first

        def fail(*_, **__):
            raise HostNotFitError("no")

        drivers[1].start = fail
        with pytest.raises(HostNotFitError):
            joint.start(load(), "/scratch1/x")
        assert first.processes[0].signals

    def test_versions_that_differ_are_refused(self):
        joint, _, _ = two_machines(version="17.0")
        with pytest.raises(HostNotFitError, match=r"18\.0 on far and 17\.0 on far"):
            joint.facts()


class TestWhatIsLeft:
    def test_progress_is_that_of_all_and_told_once(self):
        points = [ProgressPoint(time=1.0, tps=10.0, latency=0.1)]
        joint, _, drivers = two_machines(points=points)
        drivers[0].points = [*points, replace(points[0], time=2.0)]
        joint.start(load(), "/scratch1/x")
        told, offset = joint.progress("/scratch1/x", 0)
        assert [point.tps for point in told] == [20.0]
        assert joint.progress("/scratch1/x", offset) == ((), offset)

    def test_files_are_numbered_by_machine_and_say_when_each_began(self):
        joint, places, _ = two_machines()
        joint.start(load(), "/scratch1/x")
        places[0].generator.host.files["/scratch1/x/started"] = b"1700000000.44\n"
        found = joint.collect("/scratch1/x")
        assert found["pgbench.out"] == b"/scratch1/x"
        assert found["pgbench.1.out"] == b"/scratch2/x"
        assert {"transactions.log.gz", "transactions.1.log.gz"} <= found.keys()
        assert parse_delays(found[STARTS]) == (pytest.approx(0.1, abs=1e-5),)

    def test_of_what_was_never_started_nothing_is_left(self):
        joint, _, _ = two_machines()
        assert joint.collect("/scratch1/x") == {}

    def test_names_of_the_first_have_no_number(self):
        assert join_evidence([{"a.b": b"1"}, {"a.b": b"2"}]) == {"a.b": b"1", "a.1.b": b"2"}

    def test_a_damaged_start_is_named(self):
        with pytest.raises(ParseError):
            parse_delays(b"yesterday today far\n")
