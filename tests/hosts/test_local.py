"""What only the local host does."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from pgstrata.errors import HostNotFitError
from pgstrata.hosts.local import LocalHost
from pgstrata.hosts.local_process import kill_group
from pgstrata.hosts.shell import ShellHost
from pgstrata.ports.host import Command, StopSignal
from timing import least_seconds

pytestmark = pytest.mark.company


@pytest.fixture
def host():
    opened = LocalHost()
    yield opened
    opened.close()


def interrupt_soon(seconds=0.3):
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def test_a_password_in_the_environment_is_passed_on_to_no_program(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "geheim")
    monkeypatch.setenv("PGHOST", "db")
    shown = Command(argv=("sh", "-c", 'printf "%s|%s" "$PGHOST" "$PGPASSWORD"'))
    for host in (LocalHost(), ShellHost(name="shell")):
        with closing(host):
            assert host.run(shown).text == "db|"


def test_an_interrupt_ends_the_command_and_goes_on(host, scratch):
    timer = interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        host.run(Command(argv=("sh", "-c", 'echo $$ >"$0"; exec sleep 100', f"{scratch}/pid")))
    timer.join()
    assert not host.pid_alive(int(host.read(f"{scratch}/pid")))


def test_an_unknown_user_is_named():
    with pytest.raises(HostNotFitError, match="no-such-user"):
        LocalHost(user="no-such-user")


def test_naming_the_user_of_the_coordinator_changes_nothing():
    host = LocalHost()
    assert LocalHost(user=host.user).user == host.user


def test_a_command_costs_little_more_than_a_bare_process(host):
    bare = least_seconds(lambda: subprocess.run(["true"], check=True), 0.05, clock=time.perf_counter)
    cost = least_seconds(lambda: host.run(Command(argv=("true",))), 0.05, clock=time.perf_counter)
    # on a busy machine both take longer
    assert cost < max(0.1, 10 * bare)


def test_no_descriptor_is_left_open(host, scratch):
    def work():
        host.run(Command(argv=("cat",), stdin=b"x" * 300_000))
        with pytest.raises(HostNotFitError):
            host.run(Command(argv=("no-such-program",)))
        process = host.spawn(Command(argv=("cat",), stdin=b"x"), stdout=f"{scratch}/o", stderr=f"{scratch}/e")
        process.wait(10)

    work()
    before = len(list(Path("/proc/self/fd").iterdir()))
    work()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can work as another user")
def test_another_user_gets_nothing_of_roots_environment_and_no_rights(monkeypatch, scratch):
    monkeypatch.setenv("TOKEN_OF_ROOT", "secret")
    host = LocalHost(user="nobody")
    shown = host.run(Command(argv=("env",))).text
    assert "TOKEN_OF_ROOT" not in shown
    assert "USER=nobody" in shown
    assert os.geteuid() == 0
    assert host.read_files(["/etc/shadow"]) == {}
    assert host.run(Command(argv=("id", "-G"))).text.split() == [str(gid) for gid in os.getgrouplist("nobody", 65534)]


def test_close_kills_what_does_not_want_to_end(host, scratch, monkeypatch):
    monkeypatch.setattr("pgstrata.hosts.local._GRACE", 0.2)
    stubborn = Command(argv=("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"))
    process = host.spawn(stubborn, stdout=f"{scratch}/o", stderr=f"{scratch}/e", on_parent_death=StopSignal.TERM)
    while not host.read(f"{scratch}/o"):
        time.sleep(0.01)
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        process.wait(0.1)
    host.close()
    assert process.poll().code == -9
    assert time.monotonic() - started < 5


@pytest.mark.root
@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_nothing_is_imported_while_acting_as_a_user_who_may_be_unable_to_read_the_library():
    program = """
import os, sys, tempfile
class Closed:
    def find_spec(self, name, path=None, target=None):
        assert os.geteuid() == 0, f"{name} is imported as another user"
sys.meta_path.insert(0, Closed())
from pgstrata.hosts.local import LocalHost
from pgstrata.hosts.local_process import kill_group
from pgstrata.hosts.shell import ShellHost
from pgstrata.ports.host import Command
host = LocalHost(user="nobody")
folder = f"/tmp/pgstrata-test-imports-{os.getpid()}"
host.make_folder(f"{folder}/deeper")
host.write(f"{folder}/a", b"1")
host.read(f"{folder}/a"), host.read_files([f"{folder}/a"]), host.read_matching(f"{folder}/*")
host.list_folder(folder), host.exists(folder), host.free_bytes(folder), host.clock()
host.rename(f"{folder}/a", f"{folder}/b")
host.run(Command(argv=("true",)))
host.spawn(Command(argv=("true",), stdin=b"x"), stdout=f"{folder}/o", stderr=f"{folder}/e").wait(10)
try:
    host.run(Command(argv=("no-such-program",)))
except Exception as error:
    assert "missing" in str(error)
host.remove_tree(folder)
host.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can work as another user")
def test_that_a_group_may_not_be_killed_is_no_error_in_the_middle_of_an_interruption():
    """As sudo is for the user that has called it."""
    foreign = subprocess.Popen(["sleep", "100"], start_new_session=True)
    try:
        child = os.fork()
        if not child:
            try:
                os.setuid(65534)
                os._exit(0 if kill_group(foreign.pid) is False else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert foreign.poll() is None
        assert kill_group(foreign.pid) is True
        assert foreign.wait(5) == -signal.SIGKILL
        assert kill_group(foreign.pid) is True  # it has gone
    finally:
        foreign.kill()
        foreign.wait()
