"""The samples of the server's processes: the real script on this machine, and what is made of what it writes."""

import os
import shutil
import subprocess
import time
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.collectors.procfs.samples import parse_seconds
from pgstrata.collectors.procfs.seconds import SecondsSampler
from pgstrata.collectors.procfs.snapshot import read_block_devices
from pgstrata.errors import ParseError
from pgstrata.model.metrics import METRICS
from pgstrata.ports.collector import Window

SCRIPT = files("pgstrata.collectors.procfs") / "seconds.sh"
LOOP = files("pgstrata.collectors.procfs") / "seconds.pl"
WINDOW = Window(
    seconds=10.0, transactions=1000, client_cpu=2.0, postmaster_pid=100, transport_pids=(7,), server_version=180000
)
TURNS = ((1000.0, 1001.0), (1002.0, 1003.0), (1004.0, 1005.0))


def process(pid, cpu, *, queue=0.0, start=50, user=None, system=0, switches=(0, 0), faults=0):
    user = round(cpu * 100) if user is None else user
    stat = f"{pid} (postgres) S 100 1 1 0 -1 0 {faults} 0 0 0 {user} {system} 0 0 20 0 1 0 {start} 0 0"
    lines = (
        f"stat:{stat}",
        f"schedstat:{cpu * 1e9:.0f} {queue * 1e9:.0f} 7",
        f"status:voluntary_ctxt_switches:\t{switches[0]}",
        f"status:nonvoluntary_ctxt_switches:\t{switches[1]}",
        "io:read_bytes: 0",
        "io:write_bytes: 4096",
    )
    return "".join(f"/proc/{pid}/{line}\n" for line in lines)


def sample(moment, *processes):
    return f"@ {moment:.2f}\n/proc/loadavg:1.17 1.63 1.86 3/126 21545\n{''.join(processes)}"


def session(time, pid, *, ours=1, kind="client backend"):
    return f"{time:.4f}\t{pid}\t{kind}\t{ours}\tactive\t\t\t1\t\t\tselect ?\n"


def measured(samples, sessions, window=WINDOW, captures=()):
    evidence = {"seconds.samples": "".join(samples).encode(), "sessions.samples": "".join(sessions).encode()}
    evidence |= {f"procfs.{name}": text.encode() for name, text in zip(("before", "after"), captures, strict=False)}
    found = SecondsSampler().parse(evidence, window).measurements
    assert {one.metric for one in found} <= METRICS.keys()
    return {one.metric: one.value for one in found}


def capture(waited, ticks=100):
    stat = f"100 (postgres) S 1 1 1 0 -1 0 0 0 0 0 5 0 {waited} 0 20 0 1 0 50 0 0\n"
    return f"==> getconf CLK_TCK <==\n{ticks}\n==> /proc/[0-9]*/stat <==\n{stat}"


class TestARunThatWasAlone:
    def test_the_stretch_that_was_seen_stands_for_the_whole_window(self):
        samples = [
            sample(500),
            sample(501, process(11, 0.1), process(12, 0.2, queue=0.01)),
            sample(509, process(11, 0.9, switches=(800, 8), faults=40), process(12, 1.0, queue=0.09)),
            sample(510),
        ]
        found = measured(samples, [session(1, 11), session(1, 12)])
        assert found["backend_cpu_per_tx"] == pytest.approx(1.6 * 10 / 8 / 1000)
        assert found["run_queue_per_tx"] == pytest.approx(0.08 * 10 / 8 / 1000)
        assert found["backend_voluntary_switches_per_tx"] == pytest.approx(1.0)
        assert found["backend_involuntary_switches_per_tx"] == pytest.approx(0.01)
        assert found["backend_page_faults_per_tx"] == pytest.approx(0.05)

    def test_time_in_the_kernel_is_a_share_of_what_the_scheduler_counted(self):
        samples = [
            sample(501, process(11, 1.0, user=60, system=40)),
            sample(511, process(11, 3.0, user=110, system=190)),
        ]
        found = measured(samples, [session(1, 11)])
        assert found["backend_system_cpu_per_tx"] == pytest.approx(2.0 * 150 / 200 / 1000)

    def test_parallel_workers_other_sessions_and_background_processes_are_not_the_drivers_sessions(self):
        samples = [sample(at, *(process(pid, at - 500) for pid in (11, 12, 13, 14))) for at in (501, 511)]
        sessions = [session(1, 11), session(1, 12, kind="parallel worker"), session(1, 13, ours=0)]
        assert measured(samples, sessions)["backend_cpu_per_tx"] == pytest.approx(10 / 1000)

    def test_a_session_that_took_the_place_of_another_does_not_count_twice(self):
        samples = [
            sample(500, process(11, 1.0)),
            sample(505, process(11, 2.0)),
            sample(505.5, process(12, 0.0)),
            sample(510.5, process(12, 1.0)),
        ]
        found = measured(samples, [session(1, 11), session(6, 12)])
        assert found["backend_cpu_per_tx"] == pytest.approx(2.0 / 1000)

    def test_a_process_id_that_was_given_to_another_process_is_another_one(self):
        samples = [
            sample(500, process(11, 90.0, start=1)),
            sample(501, process(11, 0.1, start=9)),
            sample(511, process(11, 1.1, start=9)),
        ]
        assert measured(samples, [session(1, 11)])["backend_cpu_per_tx"] == pytest.approx(1.0 / 1000)

    def test_a_process_that_ended_while_it_was_looked_at_counts_up_to_the_sample_before(self):
        gone = "\n".join(process(11, 7.0).splitlines()[:1]) + "\n"
        samples = [sample(500, process(11, 1.0)), sample(505, process(11, 2.0)), sample(506, gone)]
        assert measured(samples, [session(1, 11)])["backend_cpu_per_tx"] == pytest.approx(2.0 / 1000)

    @pytest.mark.parametrize("schedule", ["", "0 0 0"])
    def test_without_the_schedulers_statistics_there_is_no_cpu_time_but_the_rest(self, schedule):
        samples = []
        for at, switches in ((500, 10), (510, 1010)):
            lines = process(11, at, switches=(switches, 0)).splitlines(keepends=True)
            lines[1:2] = [f"/proc/11/schedstat:{schedule}\n"] if schedule else []
            samples.append(sample(at, *lines))
        found = measured(samples, [session(1, 11)])
        assert not {"backend_cpu_per_tx", "run_queue_per_tx", "backend_system_cpu_per_tx"} & found.keys()
        assert found["backend_voluntary_switches_per_tx"] == pytest.approx(1.0)

    def test_without_two_samples_of_a_session_nothing_is_said(self):
        assert measured([sample(500, process(11, 1.0))], [session(1, 11)], captures=(capture(0), capture(90))) == {}
        assert measured([sample(500), sample(501)], [session(1, 11)]) == {}
        assert measured([], []) == {}


class TestTurns:
    def test_what_was_used_between_the_first_and_the_last_sample_is_that_of_all_slices(self):
        window = Window(
            seconds=3.0,
            transactions=1000,
            client_cpu=0.0,
            postmaster_pid=100,
            transport_pids=(),
            server_version=180000,
            outside=400,
            turns=TURNS,
        )
        samples = [sample(at, process(11, cpu, queue=cpu / 10)) for at, cpu in ((500, 0.5), (503, 1.5), (505.2, 2.0))]
        found = measured(samples, [session(1000.5, 11)], window)
        assert found["backend_cpu_per_tx"] == pytest.approx(1.5 / 1000)
        assert found["run_queue_per_tx"] == pytest.approx(0.15 / 1000)

    def test_a_sampler_that_did_not_see_the_last_turn_says_nothing(self):
        window = Window(
            seconds=3.0,
            transactions=1000,
            client_cpu=0.0,
            postmaster_pid=100,
            transport_pids=(),
            server_version=180000,
            turns=TURNS,
        )
        assert measured([sample(at, process(11, at)) for at in (500, 504)], [session(1000.5, 11)], window) == {}


class TestASessionForEachTransaction:
    def test_cpu_time_is_that_of_the_children_that_the_postmaster_waited_for(self):
        samples = [sample(at, process(pid, 0.001)) for at, pid in ((500, 21), (501, 22), (502, 23))]
        sessions = [session(number / 10, 20 + number) for number in range(30)]
        found = measured(samples, sessions, captures=(capture(1000), capture(1250)))
        assert found == {"backend_cpu_per_tx": pytest.approx(2.5 / 1000)}

    def test_there_is_none_without_captures_or_where_they_went_backwards(self):
        sessions = [session(number / 10, 20 + number) for number in range(30)]
        samples = [sample(500), sample(501)]
        assert measured(samples, sessions) == {}
        assert measured(samples, sessions, captures=(capture(1000), capture(900))) == {}


class TestParsing:
    @given(st.integers(0, 3000))
    def test_a_text_that_ends_anywhere_is_read_up_to_its_last_whole_line(self, length):
        text = "wall 1795332920.44\n" + "".join(sample(at, process(11, at)) for at in (500, 501, 502))
        parse_seconds(text.encode()[:length])

    @pytest.mark.parametrize(
        "line", ["rubbish", "/proc/11/schedstat:1 2", "/proc/11/stat:x", "@ soon", "/proc/x/y/z:1"]
    )
    def test_an_unknown_line_is_refused_with_its_text(self, line):
        with pytest.raises(ParseError, match="unknown shape"):
            parse_seconds(f"{sample(500)}{line}\n".encode())

    def test_a_wall_clock_without_fractions_is_read(self):
        assert parse_seconds(b"wall 1795332920.%N\n").wall == 1795332920


@pytest.fixture
def family():
    """A process with two children, one of which is busy."""
    script = "sh -c 'while :; do :; done' & sleep 60 & wait"
    parent = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    yield parent
    os.killpg(parent.pid, 9)
    parent.wait()


@pytest.fixture(params=["perl", "shell"])
def loop(request):
    """The text of the loop in perl; empty for that in shell."""
    if request.param == "perl" and not shutil.which("perl"):
        pytest.skip("perl is missing")
    return LOOP.read_text() if request.param == "perl" else ""


def watch(pids, seconds, loop="", script=None, data="", wal="", environment=()):
    """What the script writes about a process and its children in so many seconds after its first look."""
    text = SCRIPT.read_text() if script is None else script
    words = ["sh", "-c", text, "seconds", str(data), str(wal), loop, *map(str, pids)]
    with TemporaryFile() as out, TemporaryFile() as err:
        process = subprocess.Popen(words, stdout=out, stderr=err, env={**os.environ, **dict(environment)})
        while process.poll() is None and b"@ " not in os.pread(out.fileno(), 1000, 0):
            time.sleep(0.01)
        time.sleep(seconds)
        process.terminate()
        process.wait(timeout=20)
        return tuple(os.pread(file.fileno(), 1 << 20, 0) for file in (out, err))


@pytest.fixture
def disk_folder():
    """A folder that is not in memory, unlike those of tests that run beside each other."""
    with TemporaryDirectory(prefix="pgstrata-test-", dir="/tmp") as folder:
        yield Path(folder)


class TestTheScript:
    def test_sees_what_children_use_at_once_soon_and_at_the_end(self, family, loop):
        out, err = watch((family.pid,), 0.7, loop)
        assert err == b""
        found = parse_seconds(out)
        assert abs(found.wall - time.time()) < 5
        assert len(found.samples) == 3
        first, last = found.samples[0], found.samples[-1]
        assert len(last.processes) == 3
        used = [last.processes[pid].cpu - first.processes[pid].cpu for pid in first.processes]
        assert max(used) > 0.2 * (last.moment - first.moment)
        assert {process.name for process in last.processes.values()} == {"sh", "sleep"}
        assert {process.parent for process in last.processes.values()} == {os.getpid(), family.pid}
        assert {"loadavg", "stat", "vmstat", "meminfo"} <= last.lines.keys()

    def test_sees_the_same_files_and_lines_with_perl_and_without(self, family):
        if not shutil.which("perl"):
            pytest.skip("perl is missing")
        seen = []
        for loop in (LOOP.read_text(), ""):
            out, _ = watch((family.pid,), 0.1, loop)
            *_, last = out.decode().rpartition("\n@ ")
            seen.append({line.rpartition(":")[0] for line in last.splitlines()[1:]})
        assert seen[0] == seen[1]
        assert any(head.endswith("/status:nonvoluntary_ctxt_switches") for head in seen[0])

    def test_starts_no_program_for_a_sample_where_perl_is_there(self, family):
        if not shutil.which("perl"):
            pytest.skip("perl is missing")
        with TemporaryDirectory() as folder:
            for name in ("date", "perl"):
                Path(folder, name).symlink_to(shutil.which(name))
            script = f'PATH="{folder}"\n{SCRIPT.read_text()}'
            # what the user's environment says to perl is not for this one
            out, err = watch((family.pid,), 0.4, LOOP.read_text(), script, environment={"PERL5OPT": "-Mnonsense"})
        assert err == b""
        assert len(parse_seconds(out).samples[-1].processes) == 3

    def test_a_perl_that_does_not_work_is_left_alone(self, family):
        with TemporaryDirectory() as folder:
            broken = Path(folder, "perl")
            broken.write_text("#!/bin/sh\nexit 1\n")
            broken.chmod(0o755)
            path = {"PATH": f"{folder}:{os.environ['PATH']}"}
            out, err = watch((family.pid,), 0.1, "the text of a program", environment=path)
        assert err == b""
        assert len(parse_seconds(out).samples[-1].processes) == 3

    def test_finds_children_where_the_kernel_keeps_no_list_of_them(self, family, loop):
        listed = '[ ! -r "/proc/$$/task/$$/children" ] || listed=yes\n'
        script = SCRIPT.read_text()
        assert listed in script
        out, err = watch((family.pid,), 0.1, loop, script.replace(listed, ""))
        assert err == b""
        assert len(parse_seconds(out).samples[-1].processes) == 3

    def test_goes_on_without_a_server_or_when_it_has_gone(self, family, loop):
        family.kill()
        for pids in ((), (999999999,)):
            out, err = watch(pids, 0.1, loop)
            assert err == b""
            assert parse_seconds(out).samples[-1].lines["loadavg"]

    def test_the_disk_below_a_folder_is_told_and_of_memory_there_is_none(self, disk_folder, loop):
        folder = disk_folder / "data with spaces"
        out, err = watch((), 0.1, loop, data=folder)
        assert err == b""
        assert parse_seconds(out).devices == {}
        folder.mkdir()
        out, err = watch((), 0.1, loop, data=folder, wal="/proc")
        assert err == b""
        found = parse_seconds(out)
        device = folder.stat().st_dev
        if not Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").exists():
            pytest.skip("temporary files lie on no block device, or on btrfs")
        ((subject, (number,)),) = found.devices.items()
        assert subject == "data"
        counted = read_block_devices(found.samples[0].lines["diskstats"])
        assert number in {device.number for device in counted}

    def test_titles_of_the_servers_processes_alone_are_told(self, loop):
        script = 'exec -a "postgres: checkpointer " sleep 60 & exec -a "secret title" sleep 60 & wait'
        parent = subprocess.Popen(["bash", "-c", script], start_new_session=True)
        try:
            out, _ = watch((parent.pid,), 0.5, loop)
        finally:
            os.killpg(parent.pid, 9)
            parent.wait()
        # its arguments follow without a space
        assert [title[:23] for title in parse_seconds(out).titles.values()] == ["postgres: checkpointer "]
