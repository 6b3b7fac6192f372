"""One pgstrata at a time on a host."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pgstrata.app.machine import SystemClock
from pgstrata.errors import HostNotFitError
from pgstrata.hosts.local import LocalHost
from pgstrata.hosts.shell import ShellHost
from pgstrata.ledger.lock import HostHeldError, find_lock_file, hold_host
from pgstrata.system import commands

CLOCK = SystemClock()
HOLDER = """
import sys, time
{construction}
from pgstrata.app.machine import SystemClock
from pgstrata.ledger.lock import hold_host
lock = hold_host(host, {path!r}, "studies/first", SystemClock())
print(lock.process.pid, flush=True)
time.sleep(100)
"""
CONSTRUCTIONS = [
    "from pgstrata.hosts.local import LocalHost\nhost = LocalHost()",
    "from pgstrata.hosts.shell import ShellHost\nhost = ShellHost(name='a shell')",
]


@pytest.fixture(params=[LocalHost, lambda: ShellHost(name="a shell")], ids=["local", "shell"])
def either(request):
    host = request.param()
    yield host
    host.close()


@pytest.fixture
def started():
    processes = []

    def start(source):
        process = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
        processes.append(process)
        return process, int(process.stdout.readline())

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()


def test_the_lock_can_be_taken_again_after_it_was_released(either, tmp_path):
    path = str(tmp_path / "a lock")
    for _ in range(2):
        lock = hold_host(either, path, "a", CLOCK)
        assert either.pid_alive(lock.process.pid)
        lock.release()
        lock.release()
        assert not either.pid_alive(lock.process.pid)


def test_the_second_is_refused_with_the_identity_of_the_first(either, tmp_path):
    path = str(tmp_path / "lock")
    lock = hold_host(either, path, "studies/first", CLOCK)
    with pytest.raises(HostHeldError) as caught:
        hold_host(either, path, "studies/second", CLOCK)
    for part in (f"process {either.transport_pids[0]} of {either.user}", "studies/first", "since 20"):
        assert part in caught.value.what
    assert "PGSTRATA_LOCK=FILE" in caught.value.remedy
    assert caught.value.exit_code == 4
    lock.release()


@pytest.mark.parametrize("construction", CONSTRUCTIONS, ids=["local", "shell"])
def test_the_lock_dies_with_a_killed_owner(host, started, tmp_path, construction):
    path = str(tmp_path / "lock")
    process, pid = started(HOLDER.format(construction=construction, path=path))
    with pytest.raises(HostHeldError, match="studies/first"):
        hold_host(host, path, "b", CLOCK)
    process.send_signal(signal.SIGKILL)
    process.wait()
    hold_host(host, path, "b", CLOCK).release()
    deadline = time.monotonic() + 5
    while host.pid_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not host.pid_alive(pid)


def test_a_file_that_cannot_be_a_lock_is_named(either, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "link", "none/lock", "pipe"):
        with pytest.raises(HostNotFitError) as caught:
            hold_host(either, str(tmp_path / name), "a", CLOCK)
        assert caught.value.where == str(tmp_path / name)
    assert not (tmp_path / "elsewhere").exists()


def test_a_holder_that_says_nonsense_is_a_holder_all_the_same(host, tmp_path):
    path = tmp_path / "lock"
    clock = FastClock()
    lock = hold_host(host, str(path), "a", CLOCK)
    deep = '{"pid": ' + "[" * 900 + "]" * 900 + ', "user": "u", "study": "s", "since": "now"}'
    for said in (
        "",
        "[1]",
        "{",
        "[" * 4000,
        deep,
        '{"pid": "x"}',
        '{"pid": 1, "user": "\\u001b[31m", "study": "s", "since": "now"}',
    ):
        path.write_text(said)
        with pytest.raises(HostHeldError) as caught:
            hold_host(host, str(path), "b", clock)
        assert "\x1b" not in str(caught.value)
        assert "its process is not known" in caught.value.what
    lock.release()


def test_who_holds_the_lock_without_a_word_is_not_taken_for_the_last_that_did(host, tmp_path):
    path = tmp_path / "lock"
    hold_host(host, str(path), "studies/first", CLOCK).release()
    path.write_text(path.read_text().replace('"started": "', '"started": "1'))
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        with pytest.raises(
            HostHeldError, match=f"its process is not known, `fuser {path}` names it; the last"
        ) as caught:
            hold_host(host, str(path), "studies/second", FastClock())
    assert "studies/first, since" in caught.value.what
    assert "has ended or cannot be seen" in caught.value.what


class FastClock(SystemClock):
    """Patience is short: each look at it is a second."""

    def __init__(self):
        self.looks = 0

    def monotonic(self):
        self.looks += 1
        return float(self.looks)


@pytest.mark.root
@pytest.mark.company
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can work as another user")
def test_root_and_an_ordinary_user_share_one_lock_whoever_comes_first():
    folder = Path(tempfile.mkdtemp(prefix="pgstrata-test-", dir="/tmp"))
    folder.chmod(0o1777)
    hosts = (LocalHost(), LocalHost(user="nobody"))
    try:
        for number, (first, second) in enumerate((hosts, hosts[::-1], hosts)):
            path = str(folder / f"lock-{number % 2}")
            lock = hold_host(first, path, "a", CLOCK)
            with pytest.raises(HostHeldError, match=f"of {first.user}"):
                hold_host(second, path, "b", CLOCK)
            lock.release()
            hold_host(second, path, "b", CLOCK).release()
    finally:
        for host in hosts:
            host.close()
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def test_the_file_lies_where_everybody_may_write_or_in_the_state_folder(host):
    found = find_lock_file(host, "/state")
    common = Path("/run/lock").is_dir() and Path("/run/lock").stat().st_mode & 0o002
    assert found == ("/run/lock/pgstrata.lock" if common else "/state/pgstrata.lock")


def test_who_does_not_get_to_an_answer_is_not_waited_for_without_end(host, tmp_path, monkeypatch):
    """As where another user put a pipe in the place of the file between the check and the opening."""
    hold = commands.hold_lock
    stuck = "flock() { exec sleep 100; }\n"

    def hold_without_end(path, identity):
        return replace(hold(path, identity), text=stuck + hold(path, identity).text)

    monkeypatch.setattr(commands, "hold_lock", hold_without_end)
    with pytest.raises(HostNotFitError, match="lock of this host cannot be used"):
        hold_host(host, str(tmp_path / "lock"), "a", FastClock())


def test_reading_who_holds_a_pipe_ends(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    # as if it had been put there just after the check
    words = [word.replace('[ -f "$file" ]', "true") for word in commands.read_lock(str(tmp_path / "pipe"), 0.2)]
    assert subprocess.run(words, capture_output=True, timeout=10).returncode == 124


# Replaces a lock by a link to another file and back, at random times, until it is killed.
SWAPPING = """
import itertools, os, random, sys, time
precious, lock, spare, kind = sys.argv[1:]
link = getattr(os, kind)
for number in itertools.count():
    if number % 2:
        os.close(os.open(spare, os.O_CREAT | os.O_WRONLY, 0o644))
    else:
        link(precious, spare)
    os.replace(spare, lock)
    time.sleep(random.choice((0, 0, 0.001, 0.03)))
"""


@pytest.mark.parametrize("kind", ["symlink", "link"])
def test_a_file_of_somebody_that_is_put_in_its_place_is_never_written(tmp_path, kind):
    """Another user who may write to the folder keeps swapping the lock with a link to a precious file."""
    precious, lock, spare = tmp_path / "precious", tmp_path / "lock", tmp_path / "spare"
    precious.write_text("precious")
    neighbour = subprocess.Popen([sys.executable, "-c", SWAPPING, precious, lock, spare, kind], stderr=subprocess.PIPE)
    seen = set()
    try:
        for tries in range(400):
            if tries >= 40 and seen >= {"held", commands.LOCK_UNUSABLE}:
                break
            words = commands.hold_lock(str(lock), "who holds it").argv
            holder = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                seen.add(holder.wait(0.05))
            except subprocess.TimeoutExpired:
                seen.add("held")
            finally:
                holder.kill()
                holder.wait()
        assert neighbour.poll() is None
    finally:
        neighbour.kill()
        neighbour.communicate()
    assert precious.read_text() == "precious"
    assert seen >= {"held", commands.LOCK_UNUSABLE}
