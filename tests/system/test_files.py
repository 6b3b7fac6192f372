"""What this process does with files where somebody else may have put something before."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from pgstrata.errors import DiskFullError, UsageError
from pgstrata.system import files, reading
from pgstrata.system.locks import take_lock


def test_a_file_is_replaced_whatever_lies_beside_it(tmp_path):
    precious, target = tmp_path / "precious", tmp_path / "plan.json"
    precious.write_bytes(b"precious")
    target.symlink_to(precious)
    (tmp_path / ".plan.json.new").symlink_to(precious)
    files.write_atomically(target, b"plan")
    assert precious.read_bytes() == b"precious"
    assert (target.is_symlink(), target.read_bytes()) == (False, b"plan")


@pytest.mark.parametrize("open_it", [take_lock, files.open_appending])
def test_a_link_is_no_lock_and_no_log(tmp_path, open_it):
    precious, path = tmp_path / "precious", tmp_path / "file"
    precious.write_bytes(b"precious")
    path.symlink_to(precious)
    with pytest.raises(OSError, match="symbolic links"):
        open_it(path)


def test_a_new_file_takes_the_place_of_nothing(tmp_path):
    path = tmp_path / "file"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        files.write_new(path, b"text")
    assert not (tmp_path / "elsewhere").exists()


def test_drafts_of_ours_are_removed_and_nothing_that_only_looks_like_them(tmp_path):
    draft, other = tmp_path / f".pgstrata-{'0f' * 8}", tmp_path / ".pgstrata-notes"
    for path in (draft, other):
        path.write_bytes(b"")
    files.remove_drafts(tmp_path)
    assert (draft.exists(), other.exists()) == (False, True)


@pytest.mark.parametrize("kind", ["device", "pipe", "large"])
def test_what_has_no_end_is_not_read(tmp_path, kind):
    path = tmp_path / "file"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "large":
        path.write_bytes(b"x" * (1 << 20) + b"x")
    with pytest.raises(OSError, match="larger than 1 MiB" if kind == "large" else "not an ordinary file"):
        reading.read_regular(Path("/dev/zero") if kind == "device" else path, most=1 << 20)


def test_a_folder_is_not_read_and_its_descriptor_is_closed(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with pytest.raises(IsADirectoryError):
            reading.read_regular(tmp_path, most=1)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_stream_that_has_nothing_now_is_empty():
    end, writing = os.pipe2(os.O_NONBLOCK)
    with open(end, "rb", buffering=0) as stream:
        assert reading.read_bounded(stream, "pipe", most=1) == b""
    os.close(writing)


def test_folders_deep_in_each_other_are_removed_or_an_error_and_no_traceback(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2000):
        Path("x").mkdir()
        os.chdir("x")
    monkeypatch.chdir(tmp_path)
    # since Python 3.13 they are removed
    with suppress(OSError):
        files.remove_tree(tmp_path / "x")
    files.remove_rest(tmp_path / "x")
    subprocess.run(["rm", "-rf", tmp_path / "x"], check=True)


def test_a_copy_follows_no_link_and_replaces_nothing(tmp_path):
    source, target, precious = tmp_path / "source", tmp_path / "target", tmp_path / "precious"
    source.write_bytes(b"new")
    precious.write_bytes(b"precious")
    files.copy_file(source, target)
    assert target.read_bytes() == b"new"
    with pytest.raises(FileExistsError):
        files.copy_file(precious, target)
    (tmp_path / "there").symlink_to(precious)
    with pytest.raises(FileExistsError):
        files.copy_file(source, tmp_path / "there")
    with pytest.raises(OSError, match="symbolic links"):
        files.copy_file(tmp_path / "there", tmp_path / "other")
    assert (target.read_bytes(), precious.read_bytes()) == (b"new", b"precious")


def test_what_comes_from_a_stream_replaces_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        files.save_for_all(io.BytesIO(b"new"), path, executable=False)
    assert path.read_bytes() == b"precious"


def test_a_pipe_is_no_log_and_nobody_waits_for_its_reader(tmp_path):
    os.mkfifo(tmp_path / "log")
    with pytest.raises(OSError, match="No such device or address"):
        files.open_appending(tmp_path / "log")
    reader = os.open(tmp_path / "log", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(PermissionError, match="not an ordinary file"):
        files.open_appending(tmp_path / "log")
    os.close(reader)


def test_a_log_goes_on_where_it_ended(tmp_path):
    for text in (b"one ", b"two"):
        files.append(tmp_path / "log", text)
    assert (tmp_path / "log").read_bytes() == b"one two"


def test_a_private_file_is_private_from_its_beginning(tmp_path, monkeypatch):
    modes = []
    monkeypatch.setattr(os, "fchmod", lambda descriptor, mode: modes.append(os.fstat(descriptor).st_mode & 0o777))
    before = os.umask(0)
    try:
        files.write_beside(tmp_path / "page", b"1", mode=files.PRIVATE)
        files.write_beside(tmp_path / "program", b"1", mode=0o755)
    finally:
        os.umask(before)
    assert modes == [0o600, 0o600]


def read_below(folder, path, owner=None):
    with reading.open_below(str(folder), path, owner=os.getuid() if owner is None else owner) as stream:
        return stream.read()


def test_a_file_below_a_folder_is_read_from_there(tmp_path):
    (tmp_path / "var" / "log").mkdir(parents=True)
    (tmp_path / "var" / "log" / "server.log").write_bytes(b"lines")
    (tmp_path / "root").symlink_to(tmp_path)
    for path in ("/var/log/server.log", "var//./log/server.log"):
        assert read_below(tmp_path / "root", path) == b"lines"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("linked/file", "Not a directory|symbolic links"),
        ("link", "not an ordinary file"),
        ("dangling", "not an ordinary file"),
        ("pipe", "not an ordinary file"),
        ("folder", "not an ordinary file"),
        ("../file", "no path of a file"),
        ("/", "no path of a file"),
        ("missing", "No such file"),
    ],
)
def test_nothing_that_leads_elsewhere_is_read_below_a_folder(tmp_path, path, said):
    (tmp_path / "file").write_bytes(b"secret")
    inside = tmp_path / "inside"
    (inside / "folder").mkdir(parents=True)
    (inside / "linked").symlink_to(tmp_path)
    (inside / "link").symlink_to(tmp_path / "file")
    (inside / "dangling").symlink_to("nowhere")
    os.mkfifo(inside / "pipe")
    with pytest.raises(OSError, match=said):
        read_below(inside, path)


def test_a_file_of_another_user_is_not_read_below_a_folder(tmp_path):
    (tmp_path / "file").write_bytes(b"secret")
    with pytest.raises(OSError, match="of the server's user"):
        read_below(tmp_path, "file", os.getuid() + 1)


@pytest.mark.parametrize(
    ("number", "kind", "remedy"),
    [
        (errno.ENOSPC, DiskFullError, "free some space, or name another"),
        (errno.EDQUOT, DiskFullError, "free some space, or name another"),
        (errno.EACCES, UsageError, "name another"),
    ],
)
def test_what_cannot_be_written_is_told_with_the_reason_and_a_full_disk_as_such(number, kind, remedy):
    error = files.write_error(
        "the page cannot be written", OSError(number, os.strerror(number)), where=Path("/x"), remedy="name another",
        kind=UsageError,
    )  # fmt: skip
    assert type(error) is kind
    assert (error.what, error.where) == (f"the page cannot be written: {os.strerror(number)}", "/x")
    assert error.remedy == remedy


@pytest.mark.parametrize(
    "read", [lambda path: read_below(path.parent, path.name), lambda path: reading.read_regular(path, most=99)]
)
def test_nobody_waits_for_whoever_holds_a_lease_of_a_file(tmp_path, read):
    (tmp_path / "file").write_bytes(b"lines")
    holder = (
        "import fcntl, os, signal, sys, time; signal.signal(signal.SIGIO, signal.SIG_IGN);"
        "fcntl.fcntl(os.open(sys.argv[1], os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK); print(flush=True);"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(tmp_path / "file")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.read(1)
        begun = time.monotonic()
        with pytest.raises(BlockingIOError):
            read(tmp_path / "file")
        assert time.monotonic() - begun < 30
        process.communicate()
