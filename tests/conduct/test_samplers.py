"""Samplers that go wrong: the run stays, with what they saw, and says what they did not."""

import gzip
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import fakes
from little_plan import make_plan
from pgstrata.conduct.arm import make_arm
from pgstrata.conduct.loop import Conduct
from pgstrata.conduct.prompt import LONG_BURST, TIME_SLICE, program
from pgstrata.conduct.samplers import kill_samplers, start_samplers, stop_samplers
from pgstrata.errors import HostFileError, HostLostError, HostNotFitError, ServerFailedError
from pgstrata.model.runs import RunStatus, Validity
from pgstrata.ports.collector import Sampled, Sampling
from pgstrata.ports.host import CpuTime, ProcessExit

LEFT = b"@ 1.0\n"


class Watching:
    """A process; `ended`: it has died by itself; `deaf`: it does not end when it is told to."""

    pid = 4711

    def __init__(self, *, ended=False, deaf=False):
        self.ended, self.deaf, self.signals = ended, deaf, []

    def poll(self):
        return ProcessExit(code=1, cpu=CpuTime(user=0, system=0)) if self.ended else None

    def wait(self, timeout):
        if self.deaf and "KILL" not in self.signals:
            raise TimeoutError
        self.ended = True
        return self.poll()

    def signal(self, signal, *, group=False):
        self.signals.append(str(signal))


class Files(fakes.FakeHost):
    def __init__(self, world, files):
        super().__init__(world)
        self.files = files

    def read(self, path, *, offset=0):
        if path not in self.files:
            raise HostFileError("there is no such file", where=path)
        return self.files[path]

    def read_files(self, paths):
        return {path: self.files[path] for path in paths if path in self.files} | {"/proc/vmstat": b"oom_kill 0\n"}


class Watcher:
    """A sampler that leaves what it is told to."""

    name, paused = "seconds", False

    def __init__(self, process=None, *, refused=""):
        self.process, self.refused = process or Watching(), refused

    def start(self, subject, folder):
        if self.refused:
            raise ServerFailedError(self.refused)
        return Sampling(host=subject.host, process=self.process, output="/o", errors="/o.err", patience=0.1)

    def parse(self, evidence, window):
        return Sampled()


def watched(watcher, files):
    """The arm of a run beside which a sampler was at work."""
    world, plan = fakes.World(), make_plan()
    host = Files(world, files)
    rig = fakes.make_rig(world, plan)
    home = replace(fakes.home_of(rig), host=host)
    rig = fakes.enter(fakes.with_hosts(rig, dict.fromkeys(rig.targets, home), client=host, samplers=(watcher,)))
    arm = make_arm(plan, plan.runs[0])
    server = fakes.FakeControl(world).start(arm.environment, fakes.build(), fakes.FakeDatasets(world).clone(None, "c"))
    at_work = start_samplers(rig, arm, server)
    stop_samplers(rig, arm, at_work)
    kill_samplers((at_work,))
    return arm


@pytest.mark.parametrize(
    ("process", "files", "said"),
    [
        (Watching(ended=True), {"/o": LEFT, "/o.err": b"one\nFATAL: \x1b[31mno more connections\n"},
         ("ended", "FATAL: \ufffd[31mno more connections")),
        (
            Watching(ended=True),
            {"/o": LEFT, "/o.err": b"psql:1: ERROR:  58P01: no such file\nLINE 1: SELECT\n        ^\nHINT:  look\nLOCATION:  read, genfile.c:195\n"},
            ("ended", "psql:1: ERROR:  58P01: no such file"),
        ),
        (Watching(ended=True), {"/o": LEFT, "/o.err": b"LOCATION:  read\n"}, ("ended", "LOCATION:  read")),
        (Watching(ended=True), {"/o": LEFT, "/o.err": b""}, ("ended", "")),
        (Watching(), {"/o": b"", "/o.err": b""}, ("silent", "")),
        (Watching(), {}, ("silent", "")),
        (Watching(deaf=True), {"/o": LEFT, "/o.err": b"busy\n"}, ("deaf", "busy")),
    ],
)  # fmt: skip
def test_what_a_sampler_did_not_see_is_said_with_its_last_words(process, files, said):
    arm = watched(Watcher(process), files)
    (remark,) = arm.remarks
    assert (remark.code, remark.names, remark.how, remark.said) == ("sampler_lost", ("seconds",), *said)
    if files.get("/o"):
        assert gzip.decompress(arm.files["seconds.samples.gz"]) == LEFT


def test_a_deaf_sampler_is_killed():
    process = Watching(deaf=True)
    watched(Watcher(process), {"/o": LEFT})
    assert process.signals == ["TERM", "CONT", "KILL"]


def test_a_sampler_that_saw_everything_leaves_no_remark():
    arm = watched(Watcher(), {"/o": LEFT, "/o.err": b""})
    assert arm.remarks == []
    assert set(arm.files) == {"seconds.samples.gz"}


def test_the_run_of_a_sampler_that_cannot_be_started_is_valid_and_says_so():
    world, plan = fakes.World(), make_plan(blocks=1)
    rig = replace(fakes.make_rig(world, plan), samplers=(Watcher(refused="no room"),))
    Conduct(rig=rig, plan=plan, budget=None, spent=0.0).carry_out()
    for record in rig.store.kept.values():
        assert (record.status, record.validity) == (RunStatus.COMPLETED, Validity.VALID)
        assert [(reason.how, reason.said) for reason in record.reasons] == [("not started", "no room")]


class Lone(Watcher):
    """One that is of no use where environments take turns."""

    def start(self, subject, folder):
        return None if subject.turns else super().start(subject, folder)


def test_a_sampler_knows_whether_its_environment_takes_turns():
    world, plan = fakes.World(), make_plan()
    rig = fakes.enter(replace(fakes.make_rig(world, plan), samplers=(Lone(),)))
    arm = make_arm(plan, plan.runs[0])
    server = fakes.FakeControl(world).start(arm.environment, fakes.build(), fakes.FakeDatasets(world).clone(None, "c"))
    assert set(start_samplers(rig, arm, server).samplings) == {"seconds"}
    assert start_samplers(rig, arm, server, turns=True).samplings == {}


class Curious(Watcher):
    """One that remembers what it was to look at."""

    def start(self, subject, folder):
        self.subject = subject
        return super().start(subject, folder)


@pytest.mark.parametrize(("workload", "reconnects"), [("connect", 4), ("select-only", 0)])
def test_a_sampler_knows_how_many_clients_connect_for_each_transaction(workload, reconnects):
    world, plan = fakes.World(), make_plan()
    sampler = Curious()
    rig = fakes.enter(replace(fakes.make_rig(world, plan), samplers=(sampler,)))
    arm = make_arm(plan, plan.runs[0])
    arm.cell = replace(arm.cell, workload=workload, clients=4)
    server = fakes.FakeControl(world).start(arm.environment, fakes.build(), fakes.FakeDatasets(world).clone(None, "c"))
    start_samplers(rig, arm, server)
    assert sampler.subject.reconnects == reconnects


class Prompt(Watcher):
    def start(self, subject, folder):
        return replace(super().start(subject, folder), prompt=True)


class Dead(Watcher):
    """One whose session could not be had."""

    def start(self, subject, folder):
        return replace(super().start(subject, folder), prompt=True, process=Watching(ended=True))


class Spawning(Files):
    """A host that starts processes, or cannot."""

    error = None

    def spawn(self, command, *, stdout, stderr, on_parent_death=None):
        if self.error is not None:
            raise self.error
        self.spawned = (command.argv, Watching())
        return self.spawned[1]


def hurried(files, *, postmaster=7, error=None, sampler=None):
    """The host on which a sampler began that wants a CPU at once, and how long that took."""
    world, plan = fakes.World(), make_plan()
    host = Spawning(world, files)
    host.error, host.spawned = error, None
    rig = fakes.make_rig(world, plan)
    home = replace(fakes.home_of(rig), host=host)
    rig = fakes.enter(
        fakes.with_hosts(rig, dict.fromkeys(rig.targets, home), client=host, samplers=(sampler or Prompt(),))
    )
    arm = make_arm(plan, plan.runs[0])
    server = fakes.FakeControl(world).start(arm.environment, fakes.build(), fakes.FakeDatasets(world).clone(None, "c"))
    begin = world.now
    at_work = start_samplers(rig, arm, replace(server, postmaster_pid=postmaster))
    assert set(at_work.samplings) == {"seconds"}
    took = world.now - begin
    stop_samplers(rig, arm, at_work)
    return host, took


def test_what_has_the_session_that_looks_scheduled_at_once_ends_with_the_run():
    host, seconds = hurried({"/o.backend": b"4242\n", "/o": LEFT})
    argv, process = host.spawned
    words = (str(TIME_SLICE), str(LONG_BURST), "7", "4242")
    assert (argv[:4], argv[5:], seconds) == (("python3", "-I", "-S", "-c"), words, 0)
    assert process.signals == ["KILL"]
    # a process of a server that somebody else started may be on any machine
    assert hurried({"/o.backend": b"4242\n", "/o": LEFT}, postmaster=None)[0].spawned is None


def test_a_session_that_does_not_come_is_not_waited_for_long():
    host, seconds = hurried({"/o": LEFT})
    assert host.spawned is None
    assert seconds == pytest.approx(1.0, abs=0.02)


def test_a_session_that_has_ended_is_not_waited_for():
    host, seconds = hurried({"/o": LEFT}, sampler=Dead())
    assert (host.spawned, seconds) == (None, 0)


def test_where_a_cpu_cannot_be_asked_for_the_sampler_looks_all_the_same():
    for error in (HostFileError("there is no such file"), HostNotFitError("the program python3 is missing")):
        assert hurried({"/o.backend": b"4242\n", "/o": LEFT}, error=error)[0].spawned is None
    with pytest.raises(HostLostError):
        hurried({"/o.backend": b"4242\n"}, error=HostLostError("the connection broke"))


@pytest.mark.parametrize(("nanoseconds", "helped"), [(100_000, True), (10**12, False)])
def test_children_that_compute_for_long_make_short_time_slices(nanoseconds, helped):
    """Of this process's children one computes and naps in turn; the other one is to be scheduled at once."""
    own = subprocess.Popen(["sleep", "30"])
    stranger = subprocess.Popen(["sh", "-c", "sleep 30 & echo $!; wait"], stdout=subprocess.PIPE)
    busy = "import time\nwhile True:\n    end = time.perf_counter() + 0.0005\n    while time.perf_counter() < end: pass\n    time.sleep(0.0001)"
    computing = subprocess.Popen([sys.executable, "-c", busy])
    try:
        grandchild = int(stranger.stdout.readline())
        before = time_slice_of(own.pid)
        words = (str(TIME_SLICE), str(nanoseconds), str(os.getpid()), str(own.pid), str(grandchild))
        subprocess.run([sys.executable, "-c", program(), *words], check=False, timeout=30)
        if before is not None:
            assert time_slice_of(own.pid) == (TIME_SLICE if helped else before)
            assert time_slice_of(grandchild) == before
        os.kill(grandchild, signal.SIGKILL)
    finally:
        for process in (own, stranger, computing):
            process.kill()
            process.communicate()


def test_a_server_that_has_ended_is_no_error():
    gone = subprocess.Popen(["true"])
    gone.wait()
    words = (str(TIME_SLICE), str(LONG_BURST), str(gone.pid), str(gone.pid))
    assert subprocess.run([sys.executable, "-c", program(), *words], check=False).returncode == 0


def time_slice_of(pid):
    """The time slices of a process in nanoseconds as its kernel tells; None where it does not, before Linux 6.12."""
    lines = [line.split() for line in Path(f"/proc/{pid}/sched").read_text().splitlines()]
    return next((int(words[2]) for words in lines if words[:1] == ["se.slice"]), None)
