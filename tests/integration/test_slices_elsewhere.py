"""Servers on another host that take turns: clients paused and resumed here, a kill -9 in the middle, and what was seen."""

import json
import os
import signal
import statistics
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

import sshd
from far_place import FarPlace
from pgstrata.app.wiring import make_derive
from pgstrata.store.load import load_study
from pgstrata.store.study import load_plan_file
from working_folder import working_folder

pytestmark = [
    pytest.mark.server,
    pytest.mark.root,
    pytest.mark.company,
    pytest.mark.skipif(bool(sshd.why_not()), reason=sshd.why_not()),
]

CELL = "select-only-s1-c2"
TEXT = """
blocks = 1
[[environments]]
name = "plain"
[[environments]]
name = "slow"
options.extra_work = 20000
[common]
host = "ssh:far1"
settings.shared_buffers = "32MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
"""


class Place(FarPlace):
    """With all processes of the experiment."""

    def processes(self):
        """What is there of the experiment on either side, but the sshd."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    named = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                    program = (entry / "comm").read_text().strip()
                except OSError:
                    continue
                if str(self.folder).encode() in named and program != "sshd":
                    found.append(f"{entry.name} {program}")
        return found

    def wait_for_silence(self, seconds=60):
        deadline = time.monotonic() + seconds
        while (found := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return found


@pytest.fixture(scope="module")
def made():
    """The study after a kill in its turns and a second attempt; what the kill left, and what the second one said."""
    with ExitStack() as stack:
        folder = stack.enter_context(working_folder("pgstrata-far-"))
        (folder / "there").mkdir()
        (far,) = stack.enter_context(sshd.far_hosts(folder / "net", 1, [sshd.own_folders(folder / "there")]))
        place = Place(folder, far, TEXT)
        with place.start("study", stderr=subprocess.STDOUT) as killed:
            said = [line for line in iter(killed.stdout.readline, "") if _kill_in_turns(killed, line)]
        assert killed.returncode == -signal.SIGKILL, said
        left = place.wait_for_silence()
        with place.start("study", stderr=subprocess.STDOUT) as again:
            text, _ = again.communicate(timeout=200)
        yield place, left, again.returncode, text


def _kill_in_turns(process, line):
    if "round 2 of" in line:
        os.kill(process.pid, signal.SIGKILL)
    return True


def header(place, environment):
    return json.loads((place.folder / f"study/evidence/b01/{environment}/{CELL}/run.json").read_text())


def test_a_kill_in_the_turns_leaves_nothing_on_either_side(made):
    place, left, _, _ = made
    assert not left
    assert not list((place.folder / "there" / "data" / "clones").glob("*/*"))


def test_both_take_turns_with_their_servers_there_and_their_clients_here(made):
    place, _, code, text = made
    assert code == 0, text
    plain, slow = sorted(load_study(place.folder / "study", series=True).runs, key=lambda run: run.environment)
    assert plain.together == slow.together != ""
    assert len(plain.rounds()) == len(slow.rounds()) >= 4
    assert statistics.median(slow.rounds()) < statistics.median(plain.rounds())
    assert slow.value("server_cpu_per_tx") > 1.1 * plain.value("server_cpu_per_tx")
    first, second = header(place, "plain"), header(place, "slow")
    assert (first["apart"], first["shared"]) == (True, "processes")
    assert first["resident_pids"] == [second["postmaster_pid"]]
    assert first["client_resident_pids"] == [second["client_pid"]]


def test_the_clients_time_is_known_from_its_own_host_and_is_nobody_elses(made):
    place, _, _, _ = made
    folder = place.folder / f"study/evidence/b01/plain/{CELL}"
    evidence = {path.name: path.read_bytes() for path in folder.iterdir()}

    def derived(shared):
        return make_derive(load_plan_file(place.folder / "study").plan.experiment)(
            {**evidence, "run.json": evidence["run.json"].replace(b'"processes"', f'"{shared}"'.encode())}
        )

    run, strangers = derived("processes"), derived("")
    assert run.value("client_cpu") > 0.05
    # it stands still while either host is looked at
    assert strangers.value("client_cpu") == pytest.approx(run.value("client_cpu"))
    assert run.value("client_share") == pytest.approx(strangers.value("client_share"))
    assert strangers.value("foreign_cpu") > run.value("foreign_cpu") + 0.02
    assert run.value("client_foreign_cpu") is None
    assert strangers.value("client_foreign_cpu") is not None
