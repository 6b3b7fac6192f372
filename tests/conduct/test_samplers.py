"""Samplers that go wrong: the run stays, with what they saw, and says what they did not."""

import gzip
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pgstrata.conduct.prompt import AT_ONCE, SLICE, program
from pgstrata.conduct.samplers import kill_samplers, start_samplers, stop_samplers
from pgstrata.errors import HostFileError, HostLostError, PgstrataError, ServerFailedError
from pgstrata.model.runs import RunStatus, Validity
from pgstrata.ports.collector import Sampled, Sampling
from pgstrata.ports.host import CpuTime, ProcessExit

sys.path.insert(0, str(Path(__file__).parent))
import fakes
from test_loop import make_plan

from pgstrata.conduct.arm import make_arm
from pgstrata.conduct.loop import Conduct

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
    rig = replace(rig, server_hosts=dict.fromkeys(rig.server_hosts, home), client=host, samplers=(watcher,))
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
         "the sampler seconds ended before the run did: FATAL:  [31mno more connections"),
        (Watching(ended=True), {"/o": LEFT, "/o.err": b""}, "ended before the run did: without a word"),
        (Watching(), {"/o": b"", "/o.err": b""}, "wrote nothing: without a word"),
        (Watching(), {}, "wrote nothing: without a word"),
        (Watching(deaf=True), {"/o": LEFT, "/o.err": b"busy\n"}, "did not end when it was told to: busy"),
    ],
)  # fmt: skip
def test_what_a_sampler_did_not_see_is_said_with_its_last_words(process, files, said):
    arm = watched(Watcher(process), files)
    (remark,) = arm.remarks
    assert remark.code == "sampler_lost"
    assert said in remark.text
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
        assert [reason.text for reason in record.reasons] == ["the sampler seconds could not be started: no room"]


class Lone(Watcher):
    """One that is of no use where environments take turns."""

    def start(self, subject, folder):
        return None if subject.turns else super().start(subject, folder)


def test_a_sampler_knows_whether_its_environment_takes_turns():
    world, plan = fakes.World(), make_plan()
    rig = replace(fakes.make_rig(world, plan), samplers=(Lone(),))
    arm = make_arm(plan, plan.runs[0])
    server = fakes.FakeControl(world).start(arm.environment, fakes.build(), fakes.FakeDatasets(world).clone(None, "c"))
    assert set(start_samplers(rig, arm, server).samplings) == {"seconds"}
    assert start_samplers(rig, arm, server, turns=True).samplings == {}


class Prompt(Watcher):
    def start(self, subject, folder):
        return replace(super().start(subject, folder), prompt=True)


class Refusing(Files):
    """A host on which nothing can be run."""

    error: PgstrataError

    def run(self, command, *, timeout=600.0, check=True):
        raise self.error


def hurried(files, *, postmaster=7, error=None):
    """What was run when a sampler began that wants a CPU at once, and how long that took."""
    world, plan = fakes.World(), make_plan()
    host = Files(world, files) if error is None else Refusing(world, files)
    host.error = error
    rig = fakes.make_rig(world, plan)
    home = replace(fakes.home_of(rig), host=host)
    rig = replace(rig, server_hosts=dict.fromkeys(rig.server_hosts, home), client=host, samplers=(Prompt(),))
    arm = make_arm(plan, plan.runs[0])
    server = fakes.FakeControl(world).start(arm.environment, fakes.build(), fakes.FakeDatasets(world).clone(None, "c"))
    begin = world.now
    assert set(start_samplers(rig, arm, replace(server, postmaster_pid=postmaster)).samplings) == {"seconds"}
    return [(entry[5], *entry[7:]) for entry in world.log if entry[0] == "run"], world.now - begin


def test_where_a_cpu_cannot_be_asked_for_the_sampler_looks_all_the_same():
    assert hurried({"/o.backend": b"4242\n"}, error=HostFileError("it took too long"))[0] == []
    with pytest.raises(HostLostError):
        hurried({"/o.backend": b"4242\n"}, error=HostLostError("the connection broke"))


def test_the_session_that_looks_gets_a_cpu_at_once():
    assert hurried({"/o.backend": b"4242\n"}) == ([("7", str(SLICE), "4242")], 0)
    # one of a server that somebody else started may be on any machine
    assert hurried({"/o.backend": b"4242\n"}, postmaster=None) == ([], 0)


def test_a_session_that_does_not_come_is_not_waited_for_long():
    done, seconds = hurried({})
    assert done == []
    assert seconds == pytest.approx(1.0, abs=0.02)


def test_only_children_of_the_postmaster_are_scheduled_otherwise():
    child = subprocess.Popen(["sleep", "30"])
    stranger = subprocess.Popen(["sh", "-c", "sleep 30 & echo $!; wait"], stdout=subprocess.PIPE)
    try:
        grandchild = int(stranger.stdout.readline())
        before = slice_of(grandchild)
        words = (str(os.getpid()), program(), str(SLICE), str(child.pid), str(grandchild))
        subprocess.run(["sh", "-c", AT_ONCE, "sh", *words], check=False, stderr=subprocess.DEVNULL)
        if before is not None:
            assert slice_of(child.pid) == SLICE
        assert (slice_of(grandchild), os.getpriority(os.PRIO_PROCESS, grandchild)) == (before, 0)
        os.kill(grandchild, signal.SIGKILL)
    finally:
        for process in (child, stranger):
            process.kill()
            process.communicate()


def slice_of(pid):
    """The slices of a process in nanoseconds as its kernel tells; None where it does not, before Linux 6.12."""
    lines = [line.split() for line in Path(f"/proc/{pid}/sched").read_text().splitlines()]
    return next((int(words[2]) for words in lines if words[:1] == ["se.slice"]), None)
