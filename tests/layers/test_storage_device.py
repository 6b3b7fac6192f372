"""A block device is overwritten only if it is on the list, in nobody's use, and empty or pgstrata's; loop devices stand in."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from fake_ledger import FakeLedger
from pgstrata.errors import HostNotFitError, LevelNotTakenError, UsageError
from pgstrata.hosts.local import LocalHost
from pgstrata.layers.storage.layer import StorageLayer, assert_file_system
from pgstrata.layers.storage.making import accept_device
from pgstrata.layers.storage.sites import FileSystem, find_sites, mkfs_words
from pgstrata.layers.storage.stack import Observed, observe_script, parse_observed
from pgstrata.model.experiment import Environment, ServerKind, ServerSpec
from pgstrata.model.launch import Needs
from pgstrata.ports.host import Command
from pgstrata.system.storage import device_change
from pgstrata.testing import failure_of

MB = 1024 * 1024


def asking(kind="ext4", **storage):
    layers = {"filesystem": kind, **{f"storage.{name}": value for name, value in storage.items()}}
    return Environment(name=kind, levels=(), server=ServerSpec(kind=ServerKind.EMBEDDED), layers=layers)


def run(*argv, check=True):
    return subprocess.run(argv, check=check, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def folder():
    path = Path(tempfile.mkdtemp(prefix="pgstrata-device-", dir="/var/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def disk(folder):
    """The user's disk, empty: its path."""
    (folder / "disk").touch()
    os.truncate(folder / "disk", 320 * MB)
    device = run("losetup", "--find", "--show", str(folder / "disk"))
    yield device
    run("losetup", "--detach", device)


@pytest.fixture
def layer(folder):
    """A layer whose list is the file `devices`, and whose images would be in `data`."""
    (folder / "data").mkdir()
    host = LocalHost(user="nobody") if os.getuid() == 0 else LocalHost()
    yield StorageLayer(
        host, "0a1b2c", data=str(folder / "data"), storage=str(folder / "data"), devices=str(folder / "devices")
    )
    host.close()


def begin(path, length):
    """The first bytes of a device."""
    with Path(path).open("rb") as file:
        return file.read(length)


def allow(folder, *lines):
    (folder / "devices").write_text("# mine\n\n" + "\n".join(lines))


def refused(layer, ledger, disk, **levels):
    """What is said, after everything is undone."""
    error = failure_of(HostNotFitError, lambda: layer.prepare(asking(device=disk, **levels), Needs(), ledger))
    ledger.undo_to(0)
    return "\n".join((error.what, *error.details))


@pytest.mark.root
@pytest.mark.skipif(os.getuid() != 0 or not Path("/dev/loop-control").exists(), reason="needs root and loop devices")
@pytest.mark.skipif(not (shutil.which("mkfs.xfs") and shutil.which("mkfs.btrfs")), reason="xfsprogs, btrfs-progs")
class TestAsRoot:
    @pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
    def test_an_empty_device_on_the_list_is_used_and_is_empty_afterwards(
        self, kind, layer, folder, disk, direct_ledger
    ):
        allow(folder, f"{disk}   the fast one")
        launch = layer.prepare(asking(kind, device=disk, mount="discard"), Needs(data=1), direct_ledger)
        assert Path(launch.data).owner() == "nobody"
        assert run("findmnt", "-no", "SOURCE,FSTYPE", "--target", launch.data).split() == [disk, kind]
        assert run("blkid", "-p", "-s", "LABEL", "-o", "value", disk).startswith("pgstrata-")
        direct_ledger.undo_to(0)
        assert run("blkid", "-p", disk, check=False) == ""
        # as empty as it was accepted: it is accepted again
        layer.prepare(asking(kind, device=disk), Needs(), direct_ledger)
        direct_ledger.undo_to(0)
        assert list((folder / "data").iterdir()) == []

    def test_a_link_to_a_device_on_the_list_is_that_device(self, layer, folder, disk, direct_ledger):
        link = Path(f"/dev/pgstrata-test-{os.getpid()}")
        link.symlink_to(disk)
        try:
            allow(folder, str(link))
            layer.prepare(asking(device=disk), Needs(), direct_ledger)
            direct_ledger.undo_to(0)
            allow(folder, disk)
            layer.prepare(asking(device=str(link)), Needs(), direct_ledger)
            direct_ledger.undo_to(0)
        finally:
            link.unlink()

    def test_a_device_that_is_not_on_the_list_is_not_touched(self, layer, folder, disk, direct_ledger):
        assert "not on the list" in refused(layer, direct_ledger, disk)
        allow(folder, f"# {disk}", "/dev/null", "not a path")
        assert "not on the list" in refused(layer, direct_ledger, disk)
        assert "not a block device" in refused(layer, direct_ledger, "/dev/null")
        assert "not a block device" in refused(layer, direct_ledger, "/dev/gone")

    @pytest.mark.parametrize("label", ["", "precious", "my-pgstrata"])
    def test_a_file_system_that_is_not_pgstratas_stays_as_it_is(self, label, layer, folder, disk, direct_ledger):
        run("mkfs.ext4", "-q", "-L", label, disk)
        before = begin(disk, 8 * MB)
        allow(folder, disk)
        assert "not pgstrata's" in refused(layer, direct_ledger, disk)
        assert begin(disk, 8 * MB) == before

    def test_a_partition_table_stays_as_it_is(self, layer, folder, disk, direct_ledger):
        table = b"\0" * 446 + bytes.fromhex("00000000830000000008000070110100") + b"\0" * 48 + b"\x55\xaa"
        Path(disk).write_bytes(table)
        allow(folder, disk)
        assert "not pgstrata's" in refused(layer, direct_ledger, disk)
        assert begin(disk, 512) == table

    def test_bytes_that_are_no_file_system_stay_as_they_are(self, layer, folder, disk, direct_ledger):
        content = b"\0" * 70_000 + b"precious"
        with Path(disk).open("wb") as file:
            file.write(content)
        allow(folder, disk)
        assert "not empty" in refused(layer, direct_ledger, disk)
        assert begin(disk, len(content)) == content

    @pytest.mark.parametrize("kind", ["ext4", "btrfs"])
    def test_a_mounted_device_is_refused_even_if_it_is_pgstratas(self, kind, layer, folder, disk, direct_ledger):
        run(f"mkfs.{kind}", "-q", "-L", "pgstrata-0a1", disk)
        mount = folder / "a mount"
        mount.mkdir()
        run("mount", disk, str(mount))
        (mount / "file").write_text("precious")
        allow(folder, disk)
        try:
            assert "mounted" in refused(layer, direct_ledger, disk)
            assert (mount / "file").read_text() == "precious"
        finally:
            run("umount", str(mount))

    def test_a_device_that_is_swap_or_carries_a_loop_device_is_refused(self, layer, folder, disk, direct_ledger):
        allow(folder, disk)
        above = run("losetup", "--find", "--show", disk)
        try:
            assert "used by a loop device" in refused(layer, direct_ledger, disk)
        finally:
            run("losetup", "--detach", above)
        run("mkswap", "-L", "pgstrata-0a1", disk)
        run("chmod", "600", disk)
        run("swapon", disk)
        try:
            assert "used as swap" in refused(layer, direct_ledger, disk)
        finally:
            run("swapoff", disk)

    def test_what_a_killed_pgstrata_left_on_a_device_is_used_again(self, layer, folder, disk, direct_ledger):
        run("mkfs.xfs", "-q", "-L", "pgstrata-fff", disk)
        allow(folder, disk)
        launch = layer.prepare(asking("ext4", device=disk), Needs(), direct_ledger)
        assert run("findmnt", "-no", "FSTYPE", "--target", launch.data) == "ext4"

    def test_a_device_with_a_label_of_pgstratas_is_empty_afterwards(self, layer, folder, disk, direct_ledger):
        run("mkfs.xfs", "-q", "-L", "pgstrata-0a1", disk)
        allow(folder, disk)
        layer.prepare(asking("ext4", device=disk), Needs(), direct_ledger)
        direct_ledger.undo_to(0)
        assert run("blkid", "-p", disk, check=False) == ""

    def test_a_file_of_the_users_is_out_of_reach_of_options(self, folder, disk, monkeypatch):
        """mkfs.ext4 -l NAME reads a file: a name without a folder is one in pgstrata's own."""
        (folder / "mine").write_text("1\n")
        (folder / "own").mkdir()
        monkeypatch.chdir(folder)
        label = "pgstrata-0a1"
        change = device_change(str(folder / "own"), disk, label, mkfs_words(FileSystem.EXT4, "-l mine", label))
        done = subprocess.run(change.do.argv, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert "mine" in done.stderr

    def test_the_device_is_seen_from_inside(self, layer, folder, disk, direct_ledger):
        allow(folder, disk)
        launch = layer.prepare(asking(device=disk), Needs(), direct_ledger)
        seen = parse_observed(LocalHost().run(Command(argv=observe_script(launch.data).argv)).text)
        (site,) = find_sites(asking(device=disk), {})
        assert_file_system(site, seen.stack, Path(disk).name, "here")
        error = failure_of(
            LevelNotTakenError,
            lambda: assert_file_system(site, seen.stack, "other", "here"),
        )
        assert "ext4 on other was asked for" in error.what


def test_the_list_decides_by_real_paths():
    seen = Observed(facts={"device": "/dev/nvme1n1"}, allowed=("/dev/sdb", "/dev/nvme1n1"))
    assert accept_device(seen, "/dev/disk/by-id/x", "/etc/list", where="here") == "/dev/nvme1n1"
    other = replace(seen, allowed=("/dev/nvme1n1p1", "/dev/nvme1n"))
    error = failure_of(HostNotFitError, lambda: accept_device(other, "/dev/disk/by-id/x", "/etc/list", where="here"))
    assert "/etc/list" in error.remedy


def test_a_device_has_a_size_of_its_own(layer):
    asked = asking(device="/dev/x", size=str(512 * MB))
    error = failure_of(UsageError, lambda: layer.prepare(asked, Needs(), FakeLedger()))
    assert "size" in error.what
