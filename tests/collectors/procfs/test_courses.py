"""The host and the server's processes over the seconds of a run."""

import json
import math
import statistics
from pathlib import Path

import pytest

from pgstrata.collectors.procfs.seconds import SecondsSampler
from pgstrata.errors import ParseError
from pgstrata.model.courses import COURSES
from pgstrata.ports.collector import Window

WINDOW = Window(
    seconds=4.0, transactions=1000, client_cpu=2.0, postmaster_pid=100, transport_pids=(7,), server_version=180000
)


def host(moment, **changes):
    """A host on which each second all counters grow by what is written here, since boot."""
    cpu = changes.pop("cpu", {"user": 50, "system": 20, "iowait": 10})
    kinds = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    second = moment - 500
    times = " ".join(str(round(cpu.get(kind, 0) * second)) for kind in kinds)
    disk = f"{100 * second:.0f} 5 {800 * second:.0f} {200 * second:.0f} {300 * second:.0f} 5 {2400 * second:.0f} "
    disk += f"{600 * second:.0f} 0 900 {900 * second:.0f} 0 0 0 0 0 0"
    lines = (
        f"stat:cpu  {times} 0 0",
        f"stat:ctxt {5000 * second:.0f}",
        "stat:procs_running 3",
        "stat:procs_blocked 0",
        f"vmstat:pgfault {700 * second:.0f}",
        "meminfo:MemAvailable:   1024 kB",
        "meminfo:Dirty:    16 kB",
        "meminfo:Writeback:    0 kB",
        f"diskstats: 254 0 vda {disk}",
        f"diskstats: 254 1 vda1 {disk}",
        f"diskstats: 7 0 loop0 {disk}",
        f"pressure/io:some avg10=0.00 avg60=0.00 avg300=0.00 total={250000 * second:.0f}",
        *changes.pop("more", ()),
    )
    return f"@ {moment:.2f}\n" + "".join(f"/proc/{line}\n" for line in lines)


def process(pid, cpu, *, parent=100, name="postgres", start=50, written=0):
    stat = f"{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {round(cpu * 100)} 0 0 0 20 0 1 0 {start} 0 0"
    lines = (
        f"stat:{stat}",
        f"schedstat:{cpu * 1e9:.0f} 0 7",
        f"io:read_bytes: {2 * written}",
        f"io:write_bytes: {written}",
    )
    return "".join(f"/proc/{pid}/{line}\n" for line in lines)


def courses(samples, sessions="", window=WINDOW):
    evidence = {"seconds.samples": "".join(samples).encode(), "sessions.samples": sessions.encode()}
    found = SecondsSampler().parse(evidence, window).series
    assert {series.metric for series in found} <= COURSES.keys()
    return {f"{series.subject} {series.metric}".strip(): series for series in found}


def session(pid, kind="client backend", ours=1):
    return f"1.0\t{pid}\t{kind}\t{ours}\tactive\t\t\t1\t\t\tselect ?\n"


class TestTheHost:
    found = courses([host(at) for at in (500, 501, 502, 503, 504.2)])

    def test_has_a_value_for_each_stretch_at_its_end(self):
        assert self.found["context_switches"].times == pytest.approx((1, 2, 3, 4.2))
        assert {len(series.values) for series in self.found.values()} == {4}

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("host_user_cpu", 0.5), ("host_system_cpu", 0.2), ("host_iowait_cpu", 0.1), ("context_switches", 5000),
            ("page_faults", 700), ("run_queue_length", 3), ("memory_available", 1 << 20), ("memory_dirty", 16384),
            ("disk_iops", 400), ("disk_throughput", 3200 * 512), ("disk_await", 800 / 400 / 1000), ("disk_queue", 0.9),
            ("io_stalled", 0.25),
        ],
    )  # fmt: skip
    def test_is_told_in_base_units(self, name, value):
        assert self.found[name].values == pytest.approx((value,) * 4, rel=0.01)

    def test_what_is_zero_throughout_or_not_told_is_left_out(self):
        assert not {"host_steal_cpu", "memory_writeback", "cpu_stalled", "checkpointer_cpu"} & self.found.keys()


class TestDisks:
    """The data on a loop device of which each second 100 + 300 requests are done, the WAL on a disk beside it."""

    wal = "diskstats: 254 16 vdb {} 0 {} {} {} 0 {} {} 0 0 {} 0"

    def found(self, *lines):
        samples = [
            host(at, more=(self.wal.format(*(round(n * (at - 500)) for n in (1, 8, 4, 9, 16, 6, 10))),))
            for at in (500, 501, 503)
        ]
        samples[0] = "".join(f"device {line}\n" for line in lines) + samples[0]
        return courses(samples)

    def test_below_data_and_wal_are_told_apart_from_all_of_them_together(self):
        found = self.found("data 7:0", "wal 254:16")
        assert found["data disk_iops"].values == pytest.approx((400, 400))
        assert found["wal disk_iops"].values == pytest.approx((10, 10))
        assert found["wal disk_throughput"].values == pytest.approx((24 * 512,) * 2)
        assert found["wal disk_await"].values == pytest.approx((0.001,) * 2)
        assert found["wal disk_queue"].values == pytest.approx((0.01,) * 2)
        assert found["disk_iops"].values == pytest.approx((410, 410))
        assert not any(name.startswith(("data ", "wal ")) and "disk" not in name for name in found)

    def test_of_one_file_system_add_up(self):
        assert self.found("data 7:0 254:16")["data disk_iops"].values == pytest.approx((410, 410))

    def test_that_the_kernel_does_not_count_are_left_out(self):
        found = self.found("data 0:45", "wal 254:16 8:0")
        assert not [name for name in found if name.startswith(("data ", "wal "))]

    @pytest.mark.parametrize("line", ["", "cache 254:16"])
    def test_of_something_unknown_are_refused(self, line):
        with pytest.raises(ParseError, match="unknown shape"):
            self.found(line)


def test_a_counter_that_went_backwards_is_not_known_for_that_second():
    found = courses([host(501), host(502), host(501.5).replace("501.50", "503.00"), host(504)])
    values = found["context_switches"].values
    assert [math.isnan(value) for value in values] == [False, True, False]


def test_of_a_stretch_without_samples_nothing_is_known():
    found = courses([host(500), host(501), host(504)])
    assert [math.isnan(value) for value in found["host_user_cpu"].values] == [False, True]


def test_samples_after_the_window_are_left_out():
    assert courses([host(at) for at in (500, 502, 504, 506, 508)])["page_faults"].times == pytest.approx((2, 4))


def test_slices_have_no_seconds_of_their_own():
    window = Window(
        seconds=4.0,
        transactions=1,
        client_cpu=0,
        postmaster_pid=100,
        transport_pids=(),
        server_version=180000,
        turns=((1.0, 2.0),),
    )
    assert courses([host(500), host(504)], window=window) == {}


def test_an_unknown_line_is_refused():
    with pytest.raises(ParseError, match="unknown shape"):
        courses([host(500), host(501, more=["meminfo:Dirty: much"])])


class TestProcesses:
    titles = (
        "title 21 postgres: checkpointer \ntitle 22 postgres: main: walwriter \ntitle 23 postgres: writer process   \n"
        "title 24 postgres: io worker 0\ntitle 25 postgres: checkpointer bench [local] idle\n"
        "title 26 postgres: autovacuum worker bench\n"
    )

    def test_are_told_apart_by_what_the_server_says_of_them_or_by_their_titles(self):
        rates = {21: 0.1, 22: 0.2, 23: 0.03, 24: 0.04, 25: 0.5, 26: 0.06, 27: 0.07, 28: 0.08, 100: 0.01}
        samples = [
            host(at)
            + "".join(process(pid, rate * (at - 490), parent=1 if pid == 100 else 100) for pid, rate in rates.items())
            for at in (500, 501, 502)
        ]
        samples[0] += self.titles
        found = courses(samples, session(25) + session(27, "parallel worker", 1) + session(28, ours=0))
        kinds = {name: found[name].values[0] for name in found if not name.startswith(("host", "disk", "mem"))}
        assert {name: round(value, 3) for name, value in kinds.items() if name.endswith("_cpu")} == {
            "sessions_cpu": 0.5,
            "parallel_cpu": 0.07,
            "checkpointer_cpu": 0.1,
            "walwriter_cpu": 0.2,
            "bgwriter_cpu": 0.03,
            "autovacuum_cpu": 0.06,
            "io_workers_cpu": 0.04,
            "other_server_cpu": 0.09,
        }

    def test_that_come_count_from_their_beginning_and_where_one_went_nothing_is_known(self):
        samples = [
            host(500),
            host(501) + process(26, 0.4),
            host(502) + process(26, 0.6),
            host(503) + process(26, 0.7) + process(27, 0.1),
            host(504) + process(27, 0.2),
        ]
        samples[0] += self.titles
        samples[0] += "title 27 postgres: autovacuum worker bench\n"
        found = courses(samples)
        assert found["autovacuum_cpu"].values == pytest.approx((0.4, 0.2, 0.2, math.nan), nan_ok=True)

    def test_that_had_the_same_id_are_not_mistaken_for_each_other(self):
        samples = [
            host(500) + process(26, 0.4),
            host(501) + process(26, 0.5, start=99),
            host(502) + process(26, 0.7, start=99),
        ]
        samples[0] += self.titles
        assert courses(samples)["autovacuum_cpu"].values == pytest.approx((math.nan, 0.2), nan_ok=True)

    def test_of_the_server_read_and_write_for_disks(self):
        samples = [host(at) + process(21, 0, written=4096 * (at - 499)) + process(31, 0, parent=1) for at in (500, 501)]
        found = courses(samples)
        assert found["server_written"].values == pytest.approx((4096,))
        assert found["server_read"].values == pytest.approx((8192,))

    def test_the_client_is_a_pgbench_of_ours(self):
        samples = [
            host(at)
            + process(41, 0.3 * (at - 499), parent=7, name="pgbench")
            + process(42, at, parent=7, name="psql")
            + process(43, at, parent=8, name="pgbench")
            for at in (500, 501)
        ]
        assert courses(samples)["client_cpu_course"].values == pytest.approx((0.3,))

    def test_without_the_schedulers_statistics_are_told_in_ticks(self):
        samples = [host(at) + process(21, 0.3 * (at - 499)) for at in (500, 501)]
        samples = [
            sample.replace("schedstat:300000000", "schedstat:0").replace("schedstat:600000000", "schedstat:0")
            for sample in samples
        ]
        samples[0] += self.titles
        assert courses(samples)["checkpointer_cpu"].values == pytest.approx((0.3,))


CAPTURES = Path(__file__).parents[2] / "captures" / "seconds"


@pytest.mark.parametrize(
    "case", [path.parent for path in CAPTURES.glob("*/*/expected.json")], ids=lambda case: case.name
)
class TestEveryCapture:
    @staticmethod
    def sampled(case):
        told = json.loads((case / "window.json").read_text())
        window = Window(**{name: tuple(value) if isinstance(value, list) else value for name, value in told.items()})
        return SecondsSampler().parse({path.name: path.read_bytes() for path in case.glob("*.samples")}, window), window

    def test_gives_the_expected_measurements_and_series(self, case):
        expected = json.loads((case / "expected.json").read_text())
        found, _ = self.sampled(case)
        assert {one.metric: one.value for one in found.measurements} == pytest.approx(expected["measurements"])
        assert {one.metric for one in found.series} == expected["series"].keys()
        for one in found.series:
            assert one.values == pytest.approx(expected["series"][one.metric], nan_ok=True, abs=1e-6), one.metric
            assert one.times == pytest.approx(expected["times"])

    def test_sessions_that_left_at_the_end_are_not_idle_there(self, case):
        found, window = self.sampled(case)
        (sessions,) = (one.values for one in found.series if one.metric == "sessions_cpu")
        assert math.isnan(sessions[-1])
        # what is seen second by second is what is told of a transaction
        (per_transaction,) = (one.value for one in found.measurements if one.metric == "backend_cpu_per_tx")
        told = per_transaction * window.transactions / window.seconds
        assert statistics.mean(sessions[1:-1]) == pytest.approx(told, rel=0.05)
