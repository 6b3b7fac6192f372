"""`pgstrata doctor` on this machine, and on one that lacks nearly everything."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fake_clock import FakeClock
from pgstrata.app.doctor import Installations, examine, examine_here, find_installations
from pgstrata.app.places import find_machine_places
from pgstrata.app.site import Site
from pgstrata.errors import HostFileError, HostNotFitError
from pgstrata.hosts.local import LocalHost
from pgstrata.model.doctor import Fitness, Possible
from pgstrata.ports.host import ClockReading, Completed
from pgstrata.servers.places import Places

PLACES = Places(cache="/c", state="/s", data="/s/data", storage="/s/storage", run="/r", memory="/m")
NOTHING = Installations(fetched={}, installed=())


def site(transport, places=PLACES):
    return Site(transport=transport, uid=1000, places=places, environ={}, machine="x86_64")


class EmptyHost:
    """A host with a shell and nothing else; `programs` answer by their last part, `files` are what can be read."""

    name, user, transport_pids = "empty", "nobody", (4242,)

    def __init__(self, free=10 * 1024**3, files=(), programs=()):
        self.free = free
        self.files = dict(files)
        self.programs = dict(programs)
        self.removed = []

    def run(self, command, *, timeout=600.0, check=True):
        for name, said in self.programs.items():
            if any(word.endswith(name) for word in command.argv):
                return Completed(code=0, stdout=said.encode(), stderr=b"")
        made = command.argv[-1].replace("X" * 10, "0123456789") if command.argv[0] == "mktemp" else ""
        if command.argv[0] == "rmdir":
            self.removed.append(command.argv[-1])
        if command.argv[0] in {"find", "mktemp", "rmdir", "sh"}:
            return Completed(code=0, stdout=made.encode(), stderr=b"")
        raise HostNotFitError(f"the program {command.argv[0]} is missing", remedy="install it")

    def read(self, path, *, offset=0):
        with suppress(KeyError):
            return self.files[path][offset:]
        raise HostFileError("there is no such file", where=path)

    def read_files(self, paths):
        return {path: self.files[path] for path in paths if path in self.files}

    def read_matching(self, pattern):
        return b""

    def exists(self, path):
        return path == "/" or path in self.files

    def list_folder(self, path):
        return tuple(name.rpartition("/")[2] for name in self.files if name.rpartition("/")[0] == path)

    def pid_alive(self, pid):
        return pid == 4343

    def free_bytes(self, path):
        return self.free

    def clock(self):
        return ClockReading(wall=0.0, monotonic=0.0)


def probes_of(examination):
    return {probe.name: probe for probe in examination.probes}


def factors_of(examination):
    return {finding.key: finding for finding in examination.layers}


def test_a_host_with_nothing_but_a_shell_is_examined_to_the_end():
    found = examine(site(EmptyHost()), FakeClock(), NOTHING)
    probes, factors = probes_of(found), factors_of(found)
    for name in ("timing", "fsync"):
        assert probes[name].failure.endswith("there is no server to ask yet: pgstrata servers fetch embedded")
    assert factors["settings.*"].possible is Possible.YES
    assert factors["checksums"].possible is Possible.YES
    assert "package postgresql" in factors["server=prefix:"].note
    assert all(finding.note for finding in found.layers if finding.possible is not Possible.YES)


def test_a_server_that_cannot_be_asked_is_followed_by_the_next():
    captures = Path(__file__).parents[1] / "captures"
    programs = {
        "new/bin/pg_test_timing": "odd",
        "old/bin/pg_test_timing": (captures / "pg_test_timing/16/tsc/output.txt").read_text(),
        "new/bin/pg_test_fsync": (captures / "pg_test_fsync/18/stopped/output.txt").read_text(),
    }
    host = EmptyHost(programs=programs)
    found = examine(site(host), FakeClock(), Installations(fetched={"embedded": "/new"}, installed=("/old",)))
    assert probes_of(found)["timing"].value == pytest.approx(27.36e-9)
    assert probes_of(found)["fsync"].text == "152 µs by open_sync, 152 µs by fdatasync (the default)"
    (file,) = host.removed
    assert file == "/.pgstrata-doctor-4242-0123456789"


def test_the_file_of_a_doctor_that_was_killed_is_removed():
    files = {
        f"/s/data/{name}": b""
        for name in (
            ".pgstrata-doctor-17",
            ".pgstrata-doctor-17-0f",
            ".pgstrata-doctor-4343-0f",
            ".pgstrata-doctor-x",
            "b",
        )
    }
    host = EmptyHost(files=files | {"/s/data": b""})
    examine(site(host), FakeClock(), Installations(fetched={"embedded": "/new"}, installed=()))
    assert host.removed[:-1] == ["/s/data/.pgstrata-doctor-17", "/s/data/.pgstrata-doctor-17-0f"]
    assert host.removed[-1].startswith("/s/data/.pgstrata-doctor-4242-")


def test_nothing_is_written_where_there_is_no_room():
    host = EmptyHost(free=1000)
    found = examine(site(host), FakeClock(), Installations(fetched={"embedded": "/new"}, installed=()))
    assert (found.fitness, host.removed) == (Fitness.NO, [])
    assert "1000 B of disk are free" in found.unfit[0]
    assert probes_of(found)["fsync"].failure == "there is too little room to try it"


def test_a_machine_without_ready_made_servers_is_told_so():
    host = EmptyHost()
    installations = find_installations(host, "/c", "riscv64")
    found = factors_of(examine(site(host), FakeClock(), installations))
    assert found["server=embedded"].possible is Possible.NOT_ON_HOST
    for key in ("server=embedded", "server=maven:"):
        assert found[key].possible is not Possible.YES
    assert "riscv64" in found["server=embedded"].note


@pytest.mark.root
@pytest.mark.company
@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as somebody else")
def test_an_ordinary_user_is_told_what_needs_root():
    host = LocalHost(user="nobody")
    places = Places(
        cache="/c", state="/nowhere", data="/tmp/nowhere", storage="/nowhere/storage", run="/r", memory="/m"
    )
    found = examine(site(host, places), FakeClock(), NOTHING)
    assert found.user == "nobody"
    sysctl = factors_of(found)["sysctl.*"]
    assert sysctl.possible is not Possible.YES
    assert sysctl.note
    assert factors_of(found)["cpu.policy"].possible is Possible.YES


def test_the_command_examines_this_machine_and_leaves_nothing(tmp_path):
    names = {f"PGSTRATA_{name}": str(tmp_path / name.lower()) for name in ("CACHE", "STATE", "DATA")}
    done = subprocess.run(
        [sys.executable, "-m", "pgstrata", "doctor", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | names,
    )
    assert done.returncode in {0, 4}, done.stderr
    document = json.loads(done.stdout)
    assert (document["schema"], document["host"]) == (1, "local")
    assert (done.returncode == 4) is (document["fit"] == "no")
    assert {probe["name"] for probe in document["probes"]} >= {"foreign_cpu", "canary", "timing", "fsync", "memory"}
    assert list(tmp_path.iterdir()) == []


def has_handler(pid, number):
    """Whether the process would handle the signal by itself: then its command has begun."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_an_interrupted_command_says_so_and_leaves_nothing(tmp_path):
    names = {f"PGSTRATA_{name}": str(tmp_path / name.lower()) for name in ("CACHE", "STATE", "DATA")}
    doctor = [sys.executable, "-m", "pgstrata", "doctor"]
    process = subprocess.Popen(
        doctor, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | names
    )
    while not has_handler(process.pid, signal.SIGTERM):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=30)
    # where the signal falls into the text of a class, which `dataclass` has Python run, Python keeps that in mind and ends
    # itself by the signal after all was said; a shell shows 130 for both
    assert process.returncode in {130, -signal.SIGINT}
    assert (out, said) == ("", "pgstrata: interrupted\n")
    assert list(tmp_path.iterdir()) == []


PRESSED_EARLY = """
import os, signal, sys
class Pressing:
    def find_spec(self, name, path=None, target=None):
        if name == "pgstrata.cli.program":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressing())
from pgstrata.__main__ import main
main()
"""


def test_ctrl_c_while_modules_are_imported_ends_it_without_a_word():
    done = subprocess.run([sys.executable, "-c", PRESSED_EARLY], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.server
def test_costs_are_measured_with_the_server_that_is_there():
    places = find_machine_places()
    installations = find_installations(LocalHost(), places.cache, os.uname().machine)
    if not installations.prefixes:
        pytest.skip("no server is fetched or installed yet")
    found = probes_of(examine_here())
    assert 1e-9 < found["timing"].value < 1e-4, found["timing"]
    assert 1e-7 < found["fsync"].value < 1, found["fsync"]
    assert not list(Path(places.data).parent.glob("*doctor*"))
    assert not list(Path(places.data).parent.glob(".*doctor*"))
