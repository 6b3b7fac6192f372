"""Root does what it does in the folders of others as those; nobody makes it write, read or remove elsewhere."""

import os
import pwd
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from pgstrata.system import files, reading
from pgstrata.system.locks import take_lock
from pgstrata.system.ways import find_owner

pytestmark = [pytest.mark.root, pytest.mark.company, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]
NOBODY = pwd.getpwnam("nobody").pw_uid
DAEMON = pwd.getpwnam("daemon").pw_uid


@pytest.fixture
def theirs(open_folder):
    folder = open_folder / "theirs"
    folder.mkdir()
    os.chown(folder, NOBODY, 0)
    return folder


def owner(path):
    found = find_owner(path)
    return found and found.uid


def test_the_first_other_owner_on_the_way_counts(open_folder, theirs):
    below = theirs / "daemons"
    below.mkdir()
    os.chown(below, DAEMON, DAEMON)
    assert owner(below / "file") == NOBODY
    assert owner(theirs / "missing" / "file") == NOBODY
    assert owner(theirs) is None
    assert owner(open_folder / "missing" / "file") is None
    assert find_owner(below / "file").gid == pwd.getpwnam("nobody").pw_gid


def test_a_user_without_a_name_has_no_group_of_anybodys(open_folder):
    os.chown(open_folder, 54321, 0)
    assert (find_owner(open_folder / "file").uid, find_owner(open_folder / "file").gid) == (54321, 65534)


def test_links_are_followed_where_nobody_else_could_have_put_them(open_folder, theirs):
    (open_folder / "ours").symlink_to(theirs)
    assert owner(open_folder / "ours" / "file") == NOBODY
    back = theirs / "back"
    back.symlink_to(open_folder)
    assert owner(back / "file") == NOBODY
    (open_folder / "link").symlink_to("target")
    assert owner(open_folder / "link") is None
    os.lchown(open_folder / "link", DAEMON, DAEMON)
    assert owner(open_folder / "link") == DAEMON


def test_nobody_reaches_what_is_below_a_closed_folder(open_folder, theirs):
    open_folder.chmod(0o700)
    assert owner(theirs / "file") is None
    (theirs / "link").symlink_to(open_folder / "elsewhere" / "file")
    os.lchown(theirs / "link", NOBODY, NOBODY)
    assert owner(theirs / "link") is None


def test_up_and_out_of_a_closed_folder_everybody_counts_again(open_folder, theirs, monkeypatch):
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    assert owner(closed / ".." / "theirs" / "file") == NOBODY
    assert owner(closed / "missing" / ".." / ".." / "theirs" / "file") is None
    monkeypatch.chdir(closed)
    assert owner(Path("../theirs/file")) == NOBODY
    (closed / "up").symlink_to("../theirs")
    assert owner(Path("up/file")) == NOBODY
    assert owner(theirs / ".." / "file") == NOBODY
    assert owner(Path("/../..", str(theirs)[1:], "file")) == NOBODY


def test_what_is_missing_where_all_may_add_files_is_looked_for_without_rights(open_folder):
    shared = open_folder / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    assert owner(shared / "missing" / "file") == NOBODY
    assert owner(shared / "missing") is None
    assert find_owner(shared / "missing", making=False).uid == NOBODY
    with pytest.raises(FileNotFoundError):
        reading.read_regular(shared / "missing", most=10)
    (shared / "file").write_text("x")
    assert owner(shared / "file") is None
    os.chown(shared / "file", DAEMON, DAEMON)
    assert owner(shared / "file") == DAEMON
    files.write_new(shared / "deep" / "file", b"x")
    assert {path.stat().st_uid for path in (shared / "deep").rglob("*")} == {0}


def test_a_folder_that_comes_and_goes_leads_root_nowhere(open_folder):
    """Whoever owns a folder in /tmp or the like moves it away while root looks, and back before root writes."""
    shared, ours = open_folder / "shared", open_folder / "ours"
    shared.mkdir()
    shared.chmod(0o1777)
    ours.mkdir(mode=0o700)
    (ours / "report").write_text("ours")
    child = os.fork()
    if child == 0:
        os.setuid(NOBODY)
        (shared / "theirs").mkdir()
        (shared / "theirs" / "study").symlink_to(ours)
        while True:
            (shared / "theirs").rename(shared / "away")
            (shared / "away").rename(shared / "theirs")
    try:
        until = time.monotonic() + 2
        while time.monotonic() < until:
            with suppress(OSError):
                files.write_beside(shared / "theirs" / "study" / "report", b"theirs")
            with suppress(OSError):
                assert reading.read_regular(shared / "theirs" / "study" / "report", most=10) != b"ours"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert [path.name for path in ours.iterdir()] == ["report"]
    assert (ours / "report").read_text() == "ours"


@pytest.mark.parametrize(("mode", "group", "refused"), [
    (0o777, 0, True), (0o1777, 0, False), (0o775, 1, True), (0o775, 0, False), (0o2775, 1, True),
])  # fmt: skip
def test_a_folder_in_which_several_write_is_refused_unless_it_is_sticky(open_folder, mode, group, refused):
    os.chown(open_folder, 0, group)
    open_folder.chmod(mode)
    if refused:
        with pytest.raises(PermissionError, match="other users may write"):
            files.write_new(open_folder / "file", b"")
    else:
        files.write_new(open_folder / "file", b"")


def test_links_without_end_are_refused(open_folder):
    (open_folder / "round").symlink_to("round")
    with pytest.raises(OSError, match="symbolic"):
        find_owner(open_folder / "round" / "file")


@pytest.mark.parametrize("do", [
    lambda path: files.write_new(path / "new", b"x"),
    lambda path: files.write_atomically(path / "secret", b"x"),
    lambda path: files.write_beside(path / "secret", b"x"),
    lambda path: files.create(path / "new", b"x"),
    lambda path: files.append(path / "secret", b"x"),
    lambda path: os.close(files.open_appending(path / "secret")),
    lambda path: files.save_for_all(__import__("io").BytesIO(b"x"), path / "new", executable=False),
    lambda path: files.make_link(path / "new", "target"),
    lambda path: files.copy_file(path / "secret", path.parent / "copy"),
    lambda path: files.copy_file(Path("/etc/hostname"), path / "new"),
    lambda path: files.link_or_copy(path / "secret", path.parent / "copy"),
    lambda path: reading.read_regular(path / "secret", most=100),
    lambda path: reading.open_regular(path / "secret").__enter__(),
    lambda path: files.remove_file(path / "secret"),
    lambda path: files.remove_tree(path / "below"),
    lambda path: files.rename(path / "secret", path / "other"),
    lambda path: files.make_folder(path / "new"),
    lambda path: files.make_folders(path / "new" / "newer"),
    lambda path: files.open_file(path / "secret"),
    lambda path: files.open_folder(path / "below"),
    lambda path: os.close(take_lock(path / "secret")),
    lambda path: files.sync_file(path / "secret"),
])  # fmt: skip
def test_a_link_to_roots_folder_is_not_used_with_roots_rights(do, open_folder, theirs):
    """The folder that root is to work in is exchanged for a link at the last moment."""
    ours = open_folder / "ours"
    (ours / "below").mkdir(parents=True)
    (ours / "secret").write_text("secret")
    (ours / "secret").chmod(0o600)
    ours.chmod(0o755)
    (theirs / "work").symlink_to(ours)
    before = sorted((str(path), path.lstat().st_mode, path.lstat().st_uid) for path in ours.rglob("*"))
    with pytest.raises(PermissionError):
        do(theirs / "work")
    assert sorted((str(path), path.lstat().st_mode, path.lstat().st_uid) for path in ours.rglob("*")) == before
    assert (ours / "secret").read_text() == "secret"
    assert not (theirs / "copy").exists()


@pytest.mark.parametrize("kind", ["theirs", "second name"])
def test_root_writes_at_the_end_of_files_of_its_own_only(open_folder, kind, monkeypatch):
    """Somebody puts a file into a shared folder between the look at it and the opening."""
    precious, path = open_folder / "precious", open_folder / "log"
    precious.write_text("precious")
    if kind == "theirs":
        os.chown(precious, NOBODY, 0)
        precious.rename(path)
    else:
        path.hardlink_to(precious)
    monkeypatch.setattr("pgstrata.system.ways.find_owner", lambda *_, **__: None)
    with pytest.raises(PermissionError):
        files.append(path, b"x")
    assert path.read_text() == "precious"


def test_what_root_makes_in_the_folder_of_another_belongs_to_that_user(theirs):
    files.write_atomically(theirs / "deep" / "file", b"x")
    assert {path.stat().st_uid for path in theirs.rglob("*")} == {NOBODY}
    assert os.geteuid() == 0


class TestFilesThatWillBeExecuted:
    def test_are_read_where_root_alone_can_change_them(self, open_folder):
        path = open_folder / "script.lua"
        path.write_bytes(b"-- ours")
        assert reading.read_own(path, most=10) == b"-- ours"

    @pytest.mark.parametrize("change", ["owner", "group", "others"])
    def test_are_refused_where_another_user_can_change_them(self, open_folder, change):
        path = open_folder / "script.lua"
        path.write_bytes(b"-- theirs")
        if change == "owner":
            os.chown(path, NOBODY, 0)
        else:
            path.chmod(0o664 if change == "group" else 0o646)
        with pytest.raises(PermissionError, match="another user may change it"):
            reading.read_own(path, most=10)

    def test_are_refused_where_another_user_can_replace_them(self, theirs):
        path = theirs / "script.lua"
        path.write_bytes(b"-- ours")
        with pytest.raises(PermissionError, match="another user may change it"):
            reading.read_own(path, most=10)
        with pytest.raises(FileNotFoundError):
            reading.read_own(theirs / "missing.lua", most=10)
