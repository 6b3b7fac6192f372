"""What only the shell host does."""

import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from pgstrata.errors import CommandFailedError, HostLostError, HostNotFitError
from pgstrata.hosts.shell import ShellHost
from pgstrata.hosts.transport import Transport
from pgstrata.ports.host import Command, StopSignal
from timing import least_seconds

pytestmark = pytest.mark.company


@pytest.fixture(params=["dash", "bash"])
def host(request):
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param} here")
    opened = ShellHost((request.param,), name="rig")
    yield opened
    opened.close()


def test_a_killed_shell_is_a_lost_host_from_then_on(host, request):
    folder = Path(host.run(Command(argv=("readlink", "/proc/self/fd/1"))).text).parents[1]
    request.addfinalizer(lambda: shutil.rmtree(folder))  # nobody was left to do it
    os.kill(host.transport_pids[0], signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(HostLostError, match="rig"):
            host.clock()
    host.close()


def test_what_does_not_become_a_shell_is_lost_with_its_last_words():
    with pytest.raises(HostLostError) as caught:
        ShellHost(("sh", "-c", "echo 'Permission denied (publickey).' >&2; exit 255"), name="rig")
    assert caught.value.details == ("Permission denied (publickey).",)
    assert caught.value.remedy


def test_a_missing_way_in_is_named():
    with pytest.raises(HostNotFitError, match="no-such-way"):
        ShellHost(("no-such-way", "sh"), name="rig")


def test_a_folder_in_path_that_may_not_be_entered_hides_no_missing_way_in(tmp_path, monkeypatch):
    barred = tmp_path / "barred"
    barred.mkdir(mode=0)
    monkeypatch.setenv("PATH", f"{barred}:{os.environ['PATH']}")
    with pytest.raises(HostNotFitError, match="no-such-way"):
        ShellHost(("no-such-way", "sh"), name="rig")


def test_programs_that_the_host_lacks_are_named_with_their_packages(tmp_path):
    for program in ("cat", "chmod", "date", "dd", "df", "env", "head", "id", "mkdir", "mktemp", "mv", "rm", "stat"):
        (tmp_path / program).symlink_to(shutil.which(program))
    argv = (shutil.which("env"), f"PATH={tmp_path}", shutil.which("sh"))
    with pytest.raises(HostNotFitError, match="setsid") as caught:
        ShellHost(argv, name="rig")
    assert "util-linux" in caught.value.remedy
    (tmp_path / "df").unlink()
    with pytest.raises(HostNotFitError, match="2 programs") as caught:
        ShellHost(argv, name="rig")
    assert "coreutils" in str(caught.value)


def test_chatter_before_the_shell_is_ignored():
    host = ShellHost(("sh", "-c", "echo 'Welcome!'; exec sh"), name="rig")
    assert host.run(Command(argv=("echo", "hello"))).text == "hello\n"
    host.close()


def test_an_interrupt_ends_the_command_and_the_transport_stays_open(host, scratch):
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        host.run(Command(argv=("sh", "-c", 'echo $$ >"$0"; exec sleep 100', f"{scratch}/pid")))
    timer.join()
    assert not host.pid_alive(int(host.read(f"{scratch}/pid")))
    assert host.run(Command(argv=("echo", "still here"))).text == "still here\n"


def test_the_transport_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # others have transports at the usual place
    host = ShellHost(name="rig")
    host.run(Command(argv=("cat",), stdin=b"x"))
    assert len(list(tmp_path.glob("pgstrata-transport.*"))) == 1
    host.close()
    assert not list(tmp_path.iterdir())


@pytest.fixture
def bystander():
    process = subprocess.Popen(["sleep", "100"])
    yield process
    process.kill()
    process.wait()


def test_what_another_user_puts_beside_the_transports_folder_ends_no_process(tmp_path, monkeypatch, bystander):
    """In /tmp everybody sees the folder's name, and may make one with a name that is like it."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    host = ShellHost(name="rig")
    (folder,) = tmp_path.iterdir()
    for beside in (".gone", "gone", ".work"):
        theirs = tmp_path / f"{folder.name}{beside}"
        theirs.mkdir()
        (theirs / "job.1").write_text(f"{bystander.pid} KILL\n")
    host.close()
    assert bystander.poll() is None
    assert not folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_what_another_user_puts_in_the_place_of_the_transports_folder_is_left_alone(tmp_path, monkeypatch, bystander):
    """As after a cleaner of /tmp, which removes what nobody has used for days."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    host = ShellHost(name="rig")
    (folder,) = tmp_path.iterdir()
    shutil.rmtree(folder)
    for name in ("work", "gone"):
        (folder / name).mkdir(parents=True)
        (folder / name / "job.1").write_text(f"{bystander.pid} KILL\n")
    shutil.chown(folder, "nobody")
    host.close()
    assert bystander.poll() is None
    assert (folder / "work" / "job.1").exists()


def test_a_shell_that_says_without_end_is_given_up():
    with pytest.raises(HostLostError, match="the shell said more than 2 MiB at once"):
        Transport(("yes",), "rig", most=1 << 20)


def test_a_command_that_says_more_than_can_be_kept_is_named(host, monkeypatch):
    monkeypatch.setattr(host._transport, "most", 1 << 20)
    for way in ("1", "2"):
        loud = Command(argv=("sh", "-c", f"head -c {(1 << 20) + 1} /dev/zero >&{way}"))
        with pytest.raises(CommandFailedError, match="sh printed more than 1 MiB"):
            host.run(loud)
    assert host.run(Command(argv=("echo", "still here"))).text == "still here\n"


def test_a_process_keeps_no_hold_of_the_door(host, scratch):
    process = host.spawn(Command(argv=("ls", "-l", "/proc/self/fd")), stdout=f"{scratch}/o", stderr=f"{scratch}/e")
    process.wait(10)
    assert b"pipe:" not in host.read(f"{scratch}/o")


def test_programs_and_environment_may_hold_an_equals_sign(host, scratch):
    host.make_folder(f"{scratch}/a=b")
    host.write(f"{scratch}/a=b/program", b'#!/bin/sh\nprintf "%s" "$1 $X"\n', mode=0o755)
    command = Command(argv=(f"{scratch}/a=b/program", "c=d"), environment={"X": "y=z"})
    assert host.run(command).text == "c=d y=z"


def test_a_signal_right_after_the_start_is_never_lost(host, scratch):
    for stop in (StopSignal.INT, StopSignal.TERM) * 5:
        process = host.spawn(Command(argv=("sleep", "100")), stdout=f"{scratch}/o", stderr=f"{scratch}/e")
        process.signal(stop, group=True)
        assert process.wait(10).code in (-2, -15)


def test_an_exchange_takes_milliseconds(host):
    for ask in (lambda: host.exists("/tmp"), lambda: host.read("/etc/passwd"), host.clock):
        assert least_seconds(ask, 0.02, clock=time.perf_counter) < 0.05
