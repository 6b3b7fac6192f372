import contextlib
import dataclasses
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.collectors.procfs.parse import parse_client, parse_window, see_clients, tree_ticks
from pgstrata.collectors.procfs.snapshot import ProcessTime, join_captures, parse_snapshot
from pgstrata.errors import ParseError
from pgstrata.model.metrics import METRICS
from pgstrata.model.shared import SharedResources
from pgstrata.ports.clients import FurtherClient
from pgstrata.ports.collector import Window

CAPTURES = Path(__file__).parents[2] / "captures" / "procfs"
CASES = sorted(path.parent for path in CAPTURES.glob("*/*/expected.json"))
WINDOW = Window(
    seconds=10.0, transactions=1000, client_cpu=2.0, postmaster_pid=100, transport_pids=(7,), server_version=180000
)


def measured(before, after, window=WINDOW):
    return {found.metric: found.value for found in parse_window(before.encode(), after.encode(), window)}


def window_of(case):
    window = json.loads((case / "window.json").read_text())
    lists = {name: tuple(value) for name, value in window.items() if isinstance(value, list)}
    return Window(**{**window, **lists, "shared": SharedResources(window.get("shared", ""))})


def process(pid, parent, own, waited=0, start=50, name="postgres"):
    zeros = " ".join("0" * 9)
    return f"{pid} ({name}) S {parent} {zeros} {own} 0 {waited} 0 20 0 1 0 {start} 0 0\n"


def text(*, uptime="1000.00 1.00", cpu="0 0 0 0 0 0 0 0 0 0", more="", disks=None, processes=()):
    parts = {
        "getconf CLK_TCK": "100",
        "/proc/uptime": uptime,
        "/proc/stat": f"cpu  {cpu}\n{more}",
        "/proc/[0-9]*/stat": "".join(processes),
    }
    if disks is not None:
        parts["/proc/diskstats"] = disks
    return "".join(f"==> {name} <==\n{content.rstrip()}\n" for name, content in parts.items())


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
class TestEveryCapture:
    def test_gives_the_expected_measurements(self, case):
        found = parse_window((case / "before.txt").read_bytes(), (case / "after.txt").read_bytes(), window_of(case))
        expected = json.loads((case / "expected.json").read_text())
        assert {one.metric: one.value for one in found} == pytest.approx(expected)
        assert expected.keys() <= METRICS.keys()

    def test_without_a_server_on_this_host_says_nothing_of_server_and_foreign_cpu(self, case):
        window = replace(window_of(case), postmaster_pid=None)
        found = parse_window((case / "before.txt").read_bytes(), (case / "after.txt").read_bytes(), window)
        assert {"client_cpu", "disk_read", "pressure_cpu"} <= {one.metric for one in found}
        assert not {"server_cpu", "server_cpu_per_tx", "foreign_cpu", "client_share"} & {one.metric for one in found}


def test_a_second_of_foreign_work_is_seen():
    case = CAPTURES / "6.18" / "foreign"
    window = window_of(case)
    found = measured((case / "before.txt").read_text(), (case / "after.txt").read_text(), window)
    assert found["foreign_cpu"] * window.seconds == pytest.approx(1.0, abs=0.1)


def test_what_a_backend_used_before_the_window_is_not_counted_when_it_ends_in_it():
    before = text(processes=[process(100, 1, 10, 500), process(101, 100, 9000)])
    after = text(uptime="1010.00 1.00", processes=[process(100, 1, 12, 9600)])
    assert measured(before, after)["server_cpu"] == pytest.approx((12 + 9600 - 10 - 500 - 9000) / 100 / 10)


@given(st.integers(0, 10**6), st.lists(st.tuples(st.integers(0, 10**4), st.booleans()), max_size=8))
def test_the_time_of_a_tree_does_not_change_by_the_end_of_its_children(own, children):
    def tree(*, reaped):
        ended = sum(time for time, ends in children if ends and reaped)
        living = [
            ProcessTime(pid=10 + n, parent=5, own=time, waited=0, start=0)
            for n, (time, ends) in enumerate(children)
            if not (ends and reaped)
        ]
        return [ProcessTime(pid=5, parent=1, own=own, waited=ended, start=0), *living]

    assert tree_ticks(tree(reaped=True), 5) == tree_ticks(tree(reaped=False), 5)


def test_a_tree_has_grandchildren_and_leaves_strangers_out():
    processes = [
        ProcessTime(pid=pid, parent=parent, own=own, waited=1, start=0)
        for pid, parent, own in ((1, 0, 1000), (5, 1, 10), (6, 5, 20), (7, 6, 40), (8, 1, 5000))
    ]
    assert tree_ticks(processes, 5) == 10 + 20 + 40 + 3


@given(
    st.lists(
        st.builds(
            ProcessTime,
            pid=st.integers(0, 9),
            parent=st.integers(0, 9),
            own=st.integers(0, 9),
            waited=st.integers(0, 9),
            start=st.just(0),
        )
    ),
    st.integers(0, 9),
)
def test_a_torn_process_list_with_circles_still_ends(processes, root):
    assert tree_ticks(processes, root) >= 0


class TestProcesses:
    @pytest.mark.parametrize(
        "name", ["postgres", "a b", "a) S 1 (b", "tmux: server", ")", "", "two\nlines", "((sd-pam)", "0 (x) R 1 2 3"]
    )
    def test_of_any_name_are_read(self, name):
        found = parse_snapshot(text(processes=[process(100, 1, 3, 4, name=name), process(101, 100, 5)]).encode())
        assert found.processes.keys() == {100, 101}
        assert (found.processes[100].own, found.processes[100].waited, found.processes[100].start) == (3, 4, 50)
        assert found.processes[101].parent == 100

    def test_whose_pid_was_reused_say_nothing(self):
        before = text(processes=[process(100, 1, 10), process(7, 1, 1)])
        after = text(uptime="1010.00 1.00", processes=[process(100, 1, 20, start=99), process(7, 1, 2, start=99)])
        assert not {"server_cpu", "observer_cpu"} & measured(before, after).keys()

    def test_of_pgstrata_count_with_their_own_time_only(self):
        before = text(processes=[process(7, 1, 10, 1000)])
        after = text(uptime="1010.00 1.00", processes=[process(7, 1, 30, 9000)])
        assert measured(before, after)["observer_cpu"] == pytest.approx(0.02)

    def test_that_cannot_be_read_at_all_are_an_unknown_shape(self):
        with pytest.raises(ParseError, match="100 postgres"):
            parse_snapshot(text(processes=["100 postgres S 1\n"]).encode())


class TestForeign:
    BEFORE = text(processes=[process(100, 1, 0), process(7, 1, 0)])

    def after(self, cpu):
        return text(uptime="1010.00 1.00", cpu=cpu, processes=[process(100, 1, 500), process(7, 1, 10)])

    def test_is_busy_time_without_server_client_and_observer_and_counts_guests_once(self):
        found = measured(self.BEFORE, self.after("600 100 100 9000 70 20 30 40 300 0"))
        assert found["foreign_cpu"] == pytest.approx((8.5 - 5.0 - 2.0 - 0.1) / 10)
        assert found["steal_cpu"] == pytest.approx(0.04)
        assert found["client_share"] == pytest.approx(2 / 7)

    def test_slightly_below_nothing_is_nothing(self):
        assert measured(self.BEFORE, self.after("680 0 0 0 0 0 0 0"))["foreign_cpu"] == 0

    def test_where_ticks_missed_the_servers_time_other_processes_are_asked(self):
        assert measured(self.BEFORE, self.after("300 0 0 0 0 0 0 0"))["foreign_cpu"] == 0

    def test_another_process_is_seen_even_where_ticks_missed_it(self):
        stranger = "99 (hog) S 1 0 0 0 0 0 0 0 0 0 {} 0 0 0 20 0 1 0 50 0 0\n"
        before, after = self.BEFORE + stranger.format(100), self.after("300 0 0 0 0 0 0 0") + stranger.format(600)
        assert measured(before, after)["foreign_cpu"] == pytest.approx(0.5)

    def test_the_kernels_own_threads_are_not_foreign(self):
        thread = "99 (kworker) S 2 0 0 0 0 0 0 0 0 0 {} 0 0 0 20 0 1 0 50 0 0\n"
        before, after = self.BEFORE + thread.format(100), self.after("300 0 0 0 0 0 0 0") + thread.format(600)
        assert measured(before, after)["foreign_cpu"] == 0


SLICED = dataclasses.replace(WINDOW, seconds=5.0, client_pids=(50,), resident_pids=(200, 60))


class TestSlices:
    BEFORE = text(processes=[process(pid, 1, 100) for pid in (100, 7, 50, 200, 60)])
    AFTER = text(
        uptime="1010.00 1.00",
        cpu="900 0 0 9000 0 0 0 0 0 0",
        processes=[
            process(100, 1, 300),
            process(7, 1, 100),
            process(50, 1, 150),
            process(200, 1, 500),
            process(60, 1, 200),
        ],
    )

    def test_a_persistent_client_is_read_from_the_captures_over_its_own_turns(self):
        found = measured(self.BEFORE, self.AFTER, SLICED)
        assert found["server_cpu"] == pytest.approx(2.0 / 5)
        assert found["client_cpu"] == pytest.approx(0.5 / 5)
        assert found["client_share"] == pytest.approx(0.2)

    def test_environments_that_take_their_turns_are_no_strangers(self):
        found = measured(self.BEFORE, self.AFTER, SLICED)
        assert found["foreign_cpu"] == pytest.approx((9.0 - 2.0 - 0.5 - 4.0 - 1.0) / 10)


class TestDisks:
    LINE = "{} 0 {} 10 0 {} 0 20 0 {} 0 0 0 0 0 0 0 0 0 0\n"

    def disks(self, **names):
        return "".join(self.LINE.format(8, name, read, written) for name, (read, written) in names.items())

    def found(self, **names):
        before = text(disks=self.disks(**dict.fromkeys(names, (0, 0))))
        return measured(before, text(uptime="1010.00 1.00", disks=self.disks(**names)))

    def test_count_whole_devices_once(self):
        found = self.found(sda=(10, 20), sda1=(6, 20), sda2=(4, 0), sdaa=(1, 2), nvme0n1=(100, 200), nvme0n1p1=(9, 9))
        assert (found["disk_read"], found["disk_written"]) == (111 * 512, 222 * 512)

    def test_leave_out_memory_and_layers_above_other_devices(self):
        found = self.found(**{"vda": (1, 2), "loop0": (9, 9), "zram0": (9, 9), "dm-0": (9, 9), "md127": (9, 9)})
        assert (found["disk_read"], found["disk_written"]) == (512, 1024)

    def test_that_are_not_there_say_nothing(self):
        assert "disk_read" not in self.found(loop0=(9, 9))

    def test_that_count_backwards_say_nothing(self):
        before = text(disks=self.disks(vda=(10, 10)))
        after = text(uptime="1010.00 1.00", disks=self.disks(vda=(9, 20)))
        assert "disk_read" not in measured(before, after)


def test_figures_of_the_host_are_per_transaction():
    before = text(more="ctxt 1000\n")
    found = measured(before, text(uptime="1010.00 1.00", more="ctxt 4000\n"))
    assert found["context_switches_per_tx"] == pytest.approx(3.0)


def test_without_transactions_nothing_is_given_per_transaction():
    window = replace(WINDOW, transactions=0)
    found = measured(text(more="ctxt 1\n"), text(uptime="1010.00 1.00", more="ctxt 2\n"), window)
    assert not [metric for metric in found if metric.endswith("_per_tx")]
    assert found["client_cpu"] == pytest.approx(0.2)


def test_rates_are_over_the_time_that_the_captures_cover():
    found = measured(text(), text(uptime="1020.00 1.00"))
    assert found["client_cpu"] == pytest.approx(0.1)


def test_without_an_uptime_the_window_counts():
    assert measured("", "")["client_cpu"] == pytest.approx(0.2)


def test_a_host_that_was_booted_in_between_says_nothing():
    assert measured(text(uptime="5000.00 1.00"), text(uptime="10.00 1.00")) == {}


@pytest.mark.parametrize(
    "line",
    ["==> /proc/uptime <==\nsoon", "==> /proc/stat <==\ncpu  1 2 x", "==> /proc/stat <==\nctxt many",
     "==> /proc/diskstats <==\n8 0 sda 1", "==> /proc/pressure/io <==\nsome avg10=0.00", "cpu 1 2 3",
     "==> getconf CLK_TCK <==\n0", "==> getconf CLK_TCK <==\nundefined", "==> /proc/vmstat <==\npgfault 12 34",
     "==> /proc/stat <==\nctxt 12 garbage", "==> /proc/stat <==\ncpu  1 2 3 4 5 6 7 8 x y",
     "==> /proc/pressure/io <==\nnone total=1"],
)  # fmt: skip
def test_an_unknown_shape_is_quoted(line):
    with pytest.raises(ParseError) as error:
        parse_snapshot(f"{line}\n".encode())
    assert line.splitlines()[-1] in str(error.value)


WHOLE = (CAPTURES / "6.18" / "select-only" / "before.txt").read_text().splitlines(keepends=True)


@given(st.lists(st.one_of(st.sampled_from(WHOLE), st.text(max_size=20)), max_size=40).map("".join))
def test_no_capture_ends_in_anything_but_a_parse_error(capture):
    with contextlib.suppress(ParseError):
        parse_window(capture.encode(), "".join(WHOLE).encode(), WINDOW)


@given(st.integers(0, sum(len(line) for line in WHOLE)))
def test_no_truncated_capture_ends_in_anything_but_a_parse_error(length):
    with contextlib.suppress(ParseError):
        parse_window("".join(WHOLE)[:length].encode(), "".join(WHOLE).encode(), WINDOW)


def test_a_client_elsewhere_takes_no_time_from_the_servers_host():
    case = CAPTURES / "6.18" / "select-only"
    captures = [(case / f"{name}.txt").read_text() for name in ("before", "after")]
    window = window_of(case)
    together = measured(*captures, window)
    apart = measured(*captures, replace(window, apart=True))
    assert apart["foreign_cpu"] >= together["foreign_cpu"]
    assert apart["client_cpu"] == together["client_cpu"]


class TestHostsThatAreOneMachine:
    """17 s busy: 5 s of the server, 4 s of the client (pid 50, below pgstrata's 9), 1 s of pgstrata, 7 s of a stranger."""

    BEFORE = text(processes=[process(pid, 1, 0) for pid in (100, 7, 9, 99)] + [process(50, 9, 0)])
    AFTER = text(
        uptime="1010.00 1.00",
        cpu="1700 0 0 9000 0 0 0 0 0 0",
        processes=[
            process(100, 1, 500),
            process(7, 1, 0),
            process(9, 1, 100),
            process(50, 9, 400),
            process(99, 1, 600),
        ],
    )
    APART = replace(WINDOW, apart=True, client_cpu=4.0, client_transport_pids=(9,))

    @pytest.mark.parametrize(
        ("shared", "foreign"),
        [(SharedResources.NOTHING, 1.2), (SharedResources.KERNEL, 1.1), (SharedResources.PROCESSES, 0.7)],
    )
    def test_know_the_clients_time_as_far_as_they_share(self, shared, foreign):
        # where its pids mean nothing, the client stays a stranger among the processes that are seen
        found = measured(self.BEFORE, self.AFTER, replace(self.APART, shared=shared))
        assert found["foreign_cpu"] == pytest.approx(foreign)

    def test_were_captured_and_without_knowing_so_the_client_would_be_foreign_cpu(self):
        case = CAPTURES / "6.18" / "one-machine"
        captures = [(case / f"{name}.txt").read_text() for name in ("before", "after")]
        known = measured(*captures, window_of(case))
        unknown = measured(*captures, replace(window_of(case), shared=SharedResources.NOTHING))
        assert known["foreign_cpu"] < 0.02
        assert unknown["foreign_cpu"] == pytest.approx(known["foreign_cpu"] + 0.32 / 1.07)

    def test_are_told_of_by_one_capture(self):
        for shared in (SharedResources.KERNEL, SharedResources.PROCESSES):
            assert not parse_client(self.BEFORE.encode(), self.AFTER.encode(), replace(self.APART, shared=shared))


class TestSlicesOfServersElsewhere:
    """10 s of two environments; seconds of CPU over there: servers 2 and 4, pgstrata 0.5, a stranger 1; here: clients
    1 and 2, pgstrata 1, a stranger 0.5. Client and server have the same pid, as they may on two machines."""

    THERE = (100, 200, 7, 99)
    HERE = (100, 60, 9, 98)
    WINDOW = replace(
        WINDOW,
        seconds=5.0,
        apart=True,
        client_cpu=0.0,
        client_pids=(100,),
        client_resident_pids=(60,),
        resident_pids=(200,),
        client_transport_pids=(9,),
    )

    def captures(self, pids, used, busy):
        """Text before and after; `used` are ticks of each process, `busy` of the machine."""
        processes = [process(pid, 1, ticks) for pid, ticks in zip(pids, used, strict=True)]
        before = text(processes=[process(pid, 1, 0) for pid in pids])
        return before, text(uptime="1010.00 1.00", cpu=f"{busy} 0 0 9000 0 0 0 0 0 0", processes=processes)

    def there(self, *, more=()):
        return self.captures((*self.THERE, *more), (200, 400, 50, 100, *(0 for _ in more)), 750)

    def here(self):
        return self.captures(self.HERE, (100, 200, 100, 50), 450)

    def seen(self, window):
        return see_clients(*(each.encode() for each in self.here()), window)

    def test_have_their_clients_time_from_the_clients_host(self):
        seen = self.seen(self.WINDOW)
        assert (seen.client_cpu, seen.resident_cpu) == (1.0, 2.0)
        found = measured(*self.there(), seen)
        assert found["client_cpu"] == pytest.approx(1.0 / 5)
        assert found["client_cpu_per_tx"] == pytest.approx(0.001)
        assert found["server_cpu"] == pytest.approx(2.0 / 5)
        assert found["client_share"] == pytest.approx(1 / 3)

    def test_know_strangers_on_both_hosts(self):
        assert measured(*self.there(), self.seen(self.WINDOW))["foreign_cpu"] == pytest.approx(0.1)
        found = parse_client(*(each.encode() for each in self.here()), self.WINDOW)
        assert {one.metric: one.value for one in found}["client_foreign_cpu"] == pytest.approx(0.05)

    def test_do_not_take_a_process_for_the_client_because_it_has_its_pid(self):
        window = replace(self.WINDOW, client_pids=(99,))
        assert measured(*self.there(), window)["foreign_cpu"] == pytest.approx(0.1)

    def test_know_all_clients_where_the_two_hosts_are_one_machine_with_two_tables_of_processes(self):
        before, after = self.captures(self.THERE, (200, 400, 50, 0), 1050)
        found = measured(before, after, self.seen(replace(self.WINDOW, shared=SharedResources.KERNEL)))
        # 10.5 s busy: servers 6, clients 3, pgstrata over there 0.5
        assert found["foreign_cpu"] == pytest.approx(0.1)

    def test_know_all_clients_where_the_two_hosts_have_one_table_of_processes(self):
        pids = (100, 200, 7, 99, 50, 60, 9)
        before, after = self.captures(pids, (200, 400, 50, 100, 100, 200, 100), 1150)
        window = replace(self.WINDOW, client_pids=(50,), shared=SharedResources.PROCESSES)
        seen = see_clients(before.encode(), after.encode(), window)
        found = measured(before, after, seen)
        assert found["client_cpu"] == pytest.approx(1.0 / 5)
        assert found["foreign_cpu"] == pytest.approx(0.1)
        assert not parse_client(before.encode(), after.encode(), seen)

    def test_are_no_others(self):
        for window in (WINDOW, SLICED, replace(WINDOW, apart=True)):
            assert self.seen(window) is window


def test_what_others_use_on_the_clients_machine_is_seen():
    before = text(uptime="1000.00 1.00", cpu="100 0 0 0 0 0 0 0 0 0", processes=[process(9, 1, 0, name="pgstrata")])
    after = text(uptime="1010.00 1.00", cpu="1600 0 0 0 0 0 0 50 0 0", processes=[process(9, 1, 100, name="pgstrata")])
    window = replace(WINDOW, apart=True, client_cpu=4.0, client_transport_pids=(9,))
    found = {one.metric: one.value for one in parse_client(before.encode(), after.encode(), window)}
    # 15 s busy, of which 4 s are the client's and 1 s is pgstrata's own
    assert found == {"client_foreign_cpu": pytest.approx(1.0), "client_steal_cpu": pytest.approx(0.05)}


def test_of_several_machines_of_the_client_the_busiest_with_strangers_counts():
    def capture(uptime, busy, own):
        pgstrata = [process(9, 1, own, name="pgstrata")]
        return text(uptime=f"{uptime}.00 1.00", cpu=f"{busy} 0 0 0 0 0 0 0 0 0", processes=pgstrata).encode()

    before = join_captures([capture(1000, 100, 0), capture(500, 100, 0)])
    # 10 s on both: busy for 4 s with 4 s of clients; busy for 7 s with 1 s of clients and 1 s of pgstrata
    after = join_captures([capture(1010, 500, 0), capture(510, 800, 100)])
    further = FurtherClient(cpu=1.0, transport_pids=(9,))
    window = replace(WINDOW, apart=True, client_cpu=5.0, client_transport_pids=(9,), further_clients=(further,))
    found = {one.metric: one.value for one in parse_client(before, after, window)}
    assert found["client_foreign_cpu"] == pytest.approx(0.5)


class TestSamplers:
    """10 s: the server's own 3 s, 1 s of the session that answers a sampler; 2 s of samplers, and 0.5 s of pgstrata."""

    BEFORE = text(processes=[process(pid, parent, 0) for pid, parent in ((100, 1), (200, 1), (7, 1))])
    AFTER = text(
        uptime="1010.00 1.00",
        cpu="700 0 0 0 0 0 0 0 0 0",
        processes=[
            process(100, 1, 300),
            process(101, 100, 100),
            process(7, 1, 50),
            process(8, 7, 150, 50),
            process(200, 1, 0),
            process(201, 200, 50),
        ],
    )
    WATCHED = replace(WINDOW, client_cpu=0.0, sampler_pids=(8,), sampler_backends=(101, 201), resident_pids=(200,))

    def test_are_the_observer_with_the_sessions_that_answer_them(self):
        found = measured(self.BEFORE, self.AFTER, self.WATCHED)
        assert found["observer_cpu"] == pytest.approx((0.5 + 2.0 + 1.0 + 0.5) / 10)
        assert found["server_cpu"] == pytest.approx(0.3)
        assert found["foreign_cpu"] == 0

    def test_that_were_there_before_count_from_then_on_and_those_that_have_gone_do_not(self):
        before = text(processes=[process(pid, parent, 50) for pid, parent in ((100, 1), (7, 1), (8, 7), (101, 100))])
        found = measured(before, self.AFTER, replace(self.WATCHED, sampler_pids=(8, 99)))
        assert found["observer_cpu"] == pytest.approx((0.0 + 1.5 + 0.5 + 0.5) / 10)
        assert found["server_cpu"] == pytest.approx(0.25)

    def test_a_number_that_is_no_process_of_our_servers_is_not_taken_for_a_session(self):
        found = measured(self.BEFORE, self.AFTER, replace(self.WATCHED, sampler_backends=(8,), sampler_pids=()))
        assert found["observer_cpu"] == pytest.approx(0.05)
