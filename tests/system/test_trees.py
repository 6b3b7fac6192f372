"""Trees are read as one user and written as another; nobody who changes them meanwhile leads root out of them."""

import os
import pwd
import time
from pathlib import Path

import pytest

from pgstrata.system.trees import copy_tree, digest_tree
from pgstrata.system.users import UserIds

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")


@pytest.fixture
def tree(tmp_path):
    source = tmp_path / "source"
    (source / "bin").mkdir(parents=True)
    (source / "bin" / "postgres").write_text("program")
    (source / "bin" / "postgres").chmod(0o750)
    (source / "lib").mkdir()
    (source / "lib" / "libpq.so.5").write_text("library")
    (source / "lib" / "libpq.so").symlink_to("libpq.so.5")
    (source / "lib64").symlink_to("lib")
    (source / ".git").mkdir()
    return source


def test_a_copy_has_links_times_and_modes_and_the_same_digest(tree, tmp_path):
    os.utime(tree / "bin" / "postgres", (1, 2))
    copy = tmp_path / "copy"
    copy_tree(tree, copy, ignore=(".git",))
    assert (copy / "lib64").readlink() == Path("lib")
    assert (copy / "lib" / "libpq.so").readlink() == Path("libpq.so.5")
    assert (copy / "bin" / "postgres").stat().st_mtime == 2
    assert (copy / "bin" / "postgres").stat().st_mode & 0o777 == 0o750
    assert not (copy / ".git").exists()
    assert digest_tree(copy) == digest_tree(tree, ignore=(".git",))


def test_a_copy_for_all_can_be_read_by_all(tree, tmp_path):
    copy = tmp_path / "copy"
    (tree / "bin").chmod(0o700)
    copy_tree(tree, copy, only=("bin", "lib"), for_all=True)
    assert sorted(path.name for path in copy.iterdir()) == ["bin", "lib"]
    modes = [path.stat().st_mode & 0o777 for path in (copy / "bin", copy / "bin/postgres", copy / "lib/libpq.so.5")]
    assert modes == [0o755, 0o755, 0o644]


def test_a_link_out_of_the_tree_leads_to_the_same_place_and_is_not_followed(tree, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tree / "share").mkdir()
    (tree / "share" / "outside").symlink_to("../../secret")
    copy = tmp_path / "deep" / "copy"
    copy.parent.mkdir()
    copy_tree(tree, copy)
    assert (copy / "share" / "outside").readlink() == secret
    assert digest_tree(copy) == digest_tree(tree)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.mknod(path, 0o60000, os.makedev(1, 3))])
def test_what_is_no_file_is_refused_without_being_opened(make, tree, tmp_path):
    try:
        make(tree / "lib" / "odd")
    except PermissionError:
        pytest.skip("only root makes devices")
    with pytest.raises(OSError, match="not a file, folder or link") as caught:
        copy_tree(tree, tmp_path / "copy")
    assert caught.value.filename == str(tree / "lib" / "odd")
    with pytest.raises(OSError, match="not a file"):
        digest_tree(tree)


def test_folders_without_end_are_refused(tmp_path):
    path = tmp_path / "source"
    path.mkdir()
    (path / "/".join(["d"] * 150)).mkdir(parents=True)
    with pytest.raises(OSError, match="more than 100 folders"):
        digest_tree(path)


def test_a_folder_that_becomes_a_link_is_not_entered(tree, tmp_path, monkeypatch):
    """The neighbour is as fast as can be: between the look at a folder and its opening."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "key").write_text("secret")
    look = os.stat

    def swap(path, **keywords):
        facts = look(path, **keywords)
        if path == "lib" and not (tree / "lib").is_symlink():
            (tree / "lib").rename(tree / "aside")
            (tree / "lib").symlink_to(outside)
        return facts

    monkeypatch.setattr(os, "stat", swap)
    with pytest.raises(OSError, match=r"directory|symbolic"):
        copy_tree(tree, tmp_path / "copy")
    assert not (tmp_path / "copy" / "lib" / "key").exists()


@as_root
class TestAsRoot:
    nobody = UserIds(uid=pwd.getpwnam("nobody").pw_uid, gid=pwd.getpwnam("nobody").pw_gid)

    def test_the_reader_sees_what_it_may_and_the_writer_owns_the_copy(self, open_folder):
        source, work = open_folder / "source", open_folder / "work"
        for folder in (source, work):
            folder.mkdir()
            os.chown(folder, self.nobody.uid, self.nobody.gid)
        (source / "mine").write_text("x")
        (source / "mine").chmod(0o644)
        copy_tree(source, work / "copy", reader=self.nobody, writer=self.nobody)
        assert (work / "copy" / "mine").stat().st_uid == self.nobody.uid
        (source / "roots").write_text("secret")
        (source / "roots").chmod(0o600)
        with pytest.raises(PermissionError) as caught:
            copy_tree(source, work / "other", reader=self.nobody, writer=self.nobody)
        assert caught.value.filename.endswith("roots")
        assert os.geteuid() == 0


def test_a_tree_that_holds_too_much_is_not_read_to_its_end(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(15 << 40)
    begun = time.monotonic()
    with pytest.raises(OSError, match="more than 16 GiB"):
        digest_tree(tmp_path)
    with pytest.raises(OSError, match="more than 16 GiB"):
        copy_tree(tmp_path, tmp_path.with_name("copy"))
    assert time.monotonic() - begun < 10
