from dataclasses import dataclass, field

from pgstrata.collectors.procfs.sampler import ProcfsCollector
from pgstrata.collectors.procfs.snapshot import parse_snapshot
from pgstrata.errors import HostNotFitError
from pgstrata.ports.host import Completed

FILES = {
    "/proc/uptime": b"12.34 20.00\n",
    "/proc/stat": b"cpu  1 2 3 4 5 6 7 8 9 10\nctxt 77\n",
    "/proc/loadavg": b"0.1 0.2 0.3 1/2 3",
}


@dataclass
class FakeHost:
    name: str = "fake"
    getconf: bytes | None = b"250\n"
    ran: list = field(default_factory=list)

    def read_files(self, paths):
        return {path: FILES[path] for path in paths if path in FILES}

    def read_matching(self, pattern):
        assert pattern == "/proc/[0-9]*/stat"
        return b"1 (init) S 0 " + b"0 " * 9 + b"11 22 33 44 20 0 1 0 5 0 0\n"

    def run(self, command, *, timeout=600.0, check=True):
        self.ran.append(command.argv)
        if self.getconf is None:
            raise HostNotFitError("the program getconf is missing")
        return Completed(code=0, stdout=self.getconf, stderr=b"")


@dataclass
class FakeSubject:
    host: FakeHost


def test_a_capture_can_be_read_again():
    snapshot = parse_snapshot(ProcfsCollector().capture(FakeSubject(FakeHost())))
    assert snapshot.uptime == 12.34
    assert snapshot.ticks == 250
    busy = ("cpu.user", "cpu.nice", "cpu.system", "cpu.irq", "cpu.softirq")
    assert [snapshot.counters[name] for name in busy] == [1, 2, 3, 6, 7]
    assert snapshot.counters["ctxt"] == 77
    assert (snapshot.processes[1].own, snapshot.processes[1].waited) == (33, 77)


def test_a_file_that_the_host_does_not_have_has_no_section():
    assert b"/proc/pressure" not in ProcfsCollector().capture(FakeSubject(FakeHost()))


def test_every_section_begins_on_a_line_of_its_own():
    lines = ProcfsCollector().capture(FakeSubject(FakeHost())).decode().splitlines()
    assert [line for line in lines if "==>" in line and not line.startswith("==> ")] == []


def test_the_length_of_a_tick_is_asked_once_for_each_host():
    collector = ProcfsCollector()
    one, other = FakeHost(name="one"), FakeHost(name="other")
    for host in (one, other, one):
        collector.capture(FakeSubject(host))
    assert one.ran == other.ran == [("getconf", "CLK_TCK")]


def test_a_host_without_getconf_has_ticks_of_ten_milliseconds():
    assert parse_snapshot(ProcfsCollector().capture(FakeSubject(FakeHost(getconf=None)))).ticks == 100
