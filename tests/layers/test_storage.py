"""Real file systems on loop devices: made, used by a server, seen from inside it, and gone afterwards without a trace."""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from fake_clock import FakeClock
from fake_ledger import FakeLedger
from loop_devices import MISSING, as_root, left_over
from pgstrata.app.machine import SystemClock
from pgstrata.errors import DiskFullError, HostNotFitError, LevelNotTakenError, UsageError
from pgstrata.hosts.local import LocalHost
from pgstrata.layers.server import ClusterControl
from pgstrata.layers.storage.layer import StorageLayer
from pgstrata.ledger.ledger import HostLedger, restore
from pgstrata.model.experiment import Environment, ServerKind, ServerSpec
from pgstrata.model.launch import Needs
from pgstrata.ports.host import Command
from pgstrata.testing import failure_of

MB = 1024 * 1024
KINDS = ["ext4", "xfs", "btrfs"]


def environment(kind=None, **storage):
    layers = {f"storage.{name}": value for name, value in storage.items()}
    return Environment(
        name=kind or "plain",
        levels=(),
        server=ServerSpec(kind=ServerKind.EMBEDDED),
        layers={**({"filesystem": kind} if kind else {}), **layers},
    )


OF_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="file systems are made in folders of root only")


@pytest.fixture
def layer(user, folder):
    return StorageLayer(user, "0a1b2c", data=folder, storage=folder)


class TestAsRoot:
    pytestmark = as_root

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_file_system_is_made_used_and_gone(self, kind, layer, folder, user, direct_ledger):
        launch = layer.prepare(environment(kind, mount="noatime"), Needs(data=1), direct_ledger)
        user.write(f"{launch.data}/file", b"x" * MB)
        mount = user.run(Command(argv=("findmnt", "-no", "FSTYPE,OPTIONS", "--target", launch.data))).text
        assert mount.split()[0] == kind
        assert "noatime" in mount
        (image,) = Path(folder).glob("*/image")
        assert image.stat().st_size == 512 * MB
        assert image.stat().st_blocks * 512 >= 512 * MB
        assert [change.what.split()[0] for change, _ in direct_ledger.open] == [
            "folder",
            "image",
            "loop",
            "file",
            "mount",
        ]
        direct_ledger.undo_to(0)
        assert left_over(folder) == []

    @pytest.mark.parametrize("kind", KINDS)
    def test_nothing_makes_holes_in_the_image(self, kind, layer, folder, user, direct_ledger):
        launch = layer.prepare(environment(kind), Needs(data=1), direct_ledger)
        user.write(f"{launch.data}/file", b"x" * 20 * MB)
        user.run(Command(argv=("sync", "-f", launch.data)))
        user.remove_tree(f"{launch.data}/file")
        user.run(Command(argv=("sync", "-f", launch.data)))
        (image,) = Path(folder).glob("*/image")
        assert image.stat().st_blocks * 512 >= image.stat().st_size

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_block_was_written_once_before_anything_is_measured(self, kind, layer, folder, direct_ledger):
        layer.prepare(environment(kind), Needs(data=1), direct_ledger)
        (image,) = Path(folder).glob("*/image")
        extents = subprocess.run(["filefrag", "-v", str(image)], capture_output=True, text=True, check=True).stdout
        assert "eof" in extents
        assert "unwritten" not in extents

    def test_loop_devices_are_left_as_they_were_for_their_next_user(self, layer, folder, direct_ledger):
        asked = environment("ext4", size=str(64 * MB), read_ahead="65536")
        layer.prepare(asked, Needs(), direct_ledger)
        queue = Path(next(c for c, _ in direct_ledger.open if c.what.startswith("read")).read.arguments[0]).parent
        names = ("discard_max_bytes", "discard_granularity", "read_ahead_kb", "scheduler")
        direct_ledger.undo_to(3)  # all but folder, image and loop device
        states = {name: (queue / name).read_text() for name in names}
        direct_ledger.undo_to(0)
        device = f"/dev/{queue.parent.name}"
        Path(folder, "mine").touch()
        os.truncate(Path(folder, "mine"), MB)
        subprocess.run(["losetup", device, str(Path(folder, "mine"))], check=True)
        try:
            assert {name: (queue / name).read_text() for name in states} == states
            assert states["discard_max_bytes"] != "0\n"
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)
            Path(folder, "mine").unlink()

    def test_the_scheduler_without_a_file_system_is_that_of_the_device_below(self, layer, user, direct_ledger):
        """The device below is a loop device here, so that no disk of this machine is touched."""
        below = layer.prepare(environment("ext4", size=str(64 * MB)), Needs(), direct_ledger)
        disk = StorageLayer(user, "k", data=below.data, storage=below.data)
        try:
            launch = disk.prepare(environment(scheduler="mq-deadline", read_ahead="65536"), Needs(), direct_ledger)
        except HostNotFitError as error:
            pytest.skip(error.what)
        assert launch.data == ""
        assert [change.value for change, _ in direct_ledger.open[-2:]] == ["mq-deadline", "64"]
        assert all("loop" in change.what for change, _ in direct_ledger.open[-2:])

    def test_two_environments_are_up_together_and_one_twice(self, layer, folder, direct_ledger):
        small = {"size": str(64 * MB)}
        launches = [
            layer.prepare(environment("ext4", **small), Needs(), direct_ledger),
            layer.prepare(environment("ext4", **small), Needs(), direct_ledger),
            layer.prepare(replace(environment("ext4", **small), name="other"), Needs(), direct_ledger),
        ]
        assert len({launch.data for launch in launches}) == 3
        assert all(launch.data.startswith(f"{folder}/pgstrata-0a1b2c-") for launch in launches)

    def test_a_folder_behind_a_link_is_taken_by_its_real_path(self, user, folder, direct_ledger):
        link = Path(f"{folder} link")
        link.symlink_to(folder)
        try:
            layer = StorageLayer(user, "k", data=str(link), storage=str(link))
            launch = layer.prepare(environment("ext4", size=str(64 * MB)), Needs(), direct_ledger)
        finally:
            link.unlink()
        assert launch.data.startswith(f"{folder}/")

    @pytest.mark.parametrize("kind", ["ext4", "btrfs"])
    def test_scheduler_and_read_ahead_are_those_of_the_loop_device(self, kind, layer, user, direct_ledger):
        asked = environment(kind, size=str(128 * MB), scheduler="mq-deadline", read_ahead="65536")
        before = Path("/sys/block/vda/queue/scheduler")
        disk = before.read_text() if before.exists() else ""
        try:
            layer.prepare(asked, Needs(), direct_ledger)
        except HostNotFitError as error:
            pytest.skip(error.what)
        seen = {change.what.split()[0]: change for change, _ in direct_ledger.open}
        assert user.run(Command(argv=seen["scheduler"].read.argv)).text.split()[0] == "mq-deadline"
        assert user.run(Command(argv=seen["read-ahead"].read.argv)).text.strip() == "64"
        assert (kind == "btrfs") == ("btrfs" in seen["read-ahead"].read.arguments[0])
        assert (before.read_text() if before.exists() else "") == disk

    def test_what_was_set_in_a_queue_comes_back_with_its_scheduler(self, layer, user, direct_ledger):
        below = layer.prepare(environment("ext4", size=str(64 * MB), scheduler="mq-deadline"), Needs(), direct_ledger)
        queue = Path(next(c for c, _ in direct_ledger.open if c.what.startswith("sched")).read.arguments[0]).parent
        mine = {"iosched/read_expire": "400\n", "iosched/writes_starved": "7\n", "nr_requests": "64\n"}
        for name, value in mine.items():
            (queue / name).write_text(value)
        mark = direct_ledger.mark()
        disk = StorageLayer(user, "k", data=below.data, storage=below.data)
        for scheduler in ("none", "mq-deadline"):
            disk.prepare(environment(scheduler=scheduler), Needs(), direct_ledger)
            direct_ledger.undo_to(mark)
            assert {name: (queue / name).read_text() for name in mine} == mine

    def test_an_unknown_scheduler_is_refused_with_those_that_there_are(self, layer, direct_ledger):
        asked = environment("ext4", size=str(64 * MB), scheduler="nonsense")
        error = failure_of(HostNotFitError, lambda: layer.prepare(asked, Needs(), direct_ledger))
        assert "has no scheduler nonsense, it has none" in error.what

    def test_a_read_ahead_that_the_kernel_rounds_did_not_take(self, layer, direct_ledger):
        asked = environment("ext4", size=str(64 * MB), read_ahead="5000")
        error = failure_of(LevelNotTakenError, lambda: layer.prepare(asked, Needs(), direct_ledger))
        assert "5000 bytes" in error.what

    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            (environment("ext4", mkfs="-O nonsense", size=str(64 * MB)), "nonsense"),
            (environment("xfs", mkfs="-m crc=7", size=str(300 * MB)), "crc"),
            (environment("ext4", mount="nonsense=1", size=str(64 * MB)), "mount"),
        ],
    )
    def test_options_that_are_refused_show_what_the_program_says(self, asked, said, layer, folder, direct_ledger):
        error = failure_of(HostNotFitError, lambda: layer.prepare(asked, Needs(), direct_ledger))
        assert said in "\n".join(error.details)
        direct_ledger.undo_to(0)
        assert left_over(folder) == []

    def test_what_is_there_already_is_not_touched(self, layer, folder, direct_ledger):
        mine = Path(folder, "pgstrata-0a1b2c-ext4-1")
        mine.mkdir()
        (mine / "image").write_text("mine")
        error = failure_of(HostNotFitError, lambda: layer.prepare(environment("ext4"), Needs(), direct_ledger))
        assert error.where == str(mine)
        assert "host restore" in error.remedy
        assert direct_ledger.open == []
        assert (mine / "image").read_text() == "mine"
        shutil.rmtree(mine)

    def test_a_disk_that_fills_up_while_the_image_is_written(self, user, folder, direct_ledger):
        small = Path(folder, "small")
        small.mkdir(mode=0o755)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=150m,mode=755", "pgstrata-test", str(small)], check=True)
        try:
            layer = StorageLayer(user, "k", data=str(small), storage=str(small))
            asked = environment("ext4", size=str(128 * MB))
            error = failure_of(DiskFullError, lambda: layer.prepare(asked, Needs(), direct_ledger))
            assert "128 MB does not fit" in error.what
            Filling(direct_ledger, small / "ballast").fail_with(layer, environment("ext4", size=str(64 * MB)))
            direct_ledger.undo_to(0)
            assert [path.name for path in small.iterdir()] == ["ballast"]
        finally:
            subprocess.run(["umount", str(small)], check=True)
            small.rmdir()

    def test_a_mount_that_is_busy_is_waited_for_and_then_said(self, layer, folder, tmp_path_factory):
        host = LocalHost()
        entries = str(tmp_path_factory.mktemp("ledger"))
        ledger = HostLedger(host, (), entries, FakeClock(), "study")
        launch = layer.prepare(environment("ext4", size=str(64 * MB)), Needs(), ledger)
        busy = subprocess.Popen(["sleep", "100"], cwd=Path(launch.data).parent)
        try:
            error = failure_of(HostNotFitError, lambda: ledger.undo_to(0))
        finally:
            busy.kill()
            busy.wait()
        assert "busy" in "\n".join(error.details)
        assert "still mounted" in "\n".join(error.details)
        # all that the mount rests on is still there, and a second try ends it
        assert len(left_over(folder)) == 3
        ledger.undo_to(0)
        assert left_over(folder) == []

    def test_what_a_killed_pgstrata_left_is_restored(self, layer, folder, tmp_path_factory):
        entries = str(tmp_path_factory.mktemp("ledger"))
        script = f"""
import os
from pgstrata.app.machine import SystemClock
from pgstrata.hosts.local import LocalHost
from pgstrata.layers.storage.layer import StorageLayer
from pgstrata.ledger.ledger import HostLedger
from pgstrata.model.experiment import Environment, ServerKind, ServerSpec
from pgstrata.model.launch import Needs
asked = Environment(name="it", levels=(), server=ServerSpec(kind=ServerKind.EMBEDDED),
                    layers={{"filesystem": "ext4", "storage.size": "67108864"}})
ledger = HostLedger(LocalHost(), (), {entries!r}, SystemClock(), "study")
StorageLayer(LocalHost(user="nobody"), "k", data={folder!r}, storage={folder!r}).prepare(asked, Needs(), ledger)
os.kill(os.getpid(), 9)
"""
        assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
        assert len(left_over(folder)) == 3
        undone = restore(LocalHost(), (), entries)
        assert len(undone.closed) == 5
        assert left_over(folder) == []

    @pytest.mark.server
    def test_a_server_lies_on_xfs_and_says_so_from_inside(self, server_host, folder, cluster, direct_ledger):
        layer = StorageLayer(server_host, "k", data=folder, storage=folder)
        asked = environment("xfs", mount="noatime", read_ahead="65536")
        launch = layer.prepare(asked, Needs(data=1), direct_ledger)
        build, clone = cluster("embedded")
        server_host.run(Command(argv=("cp", "-a", clone.folder, f"{launch.data}/clone")))
        there = replace(clone, folder=f"{launch.data}/clone", location=f"{launch.data}/clone/data")
        sockets = tempfile.mkdtemp(prefix="pgs-", dir="/tmp")
        shutil.chown(sockets, server_host.user)
        control = ClusterControl(server_host, SystemClock(), sockets)
        server = control.start(asked, build, there, launch)
        try:
            facts = layer.observe(server, None)
            wrong = replace(server, environment=environment("ext4"))
            other = failure_of(LevelNotTakenError, lambda: layer.observe(wrong, None))
            moved = replace(server, clone=clone)
            elsewhere = failure_of(LevelNotTakenError, lambda: layer.observe(moved, None))
            lost = replace(server, environment=environment("xfs", read_ahead="131072"))
            changed = failure_of(LevelNotTakenError, lambda: layer.observe(lost, None))
        finally:
            control.stop(server)
            shutil.rmtree(sockets)
        assert facts["storage.filesystem"] == "xfs"
        assert "noatime" in facts["storage.mount_options"]
        assert facts["storage.read_ahead"] == "65536"
        assert facts["storage.device"].startswith("loop (direct I/O")
        assert facts["storage.stack"].startswith("xfs on loop (direct I/O")
        assert "the data lie on xfs on loop" in other.what
        assert "should lie in" in elsewhere.what
        assert "131072" in changed.what


class Filling:
    """Fills the disk after all was checked, right before the image is written."""

    def __init__(self, ledger, ballast):
        self.ledger = ledger
        self.ballast = ballast

    def change(self, change):
        if change.what.startswith("image"):
            with self.ballast.open("wb") as file:
                free = os.statvfs(self.ballast.parent)
                os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - MB)
        return self.ledger.change(change)

    def fail_with(self, layer, asked):
        error = failure_of(DiskFullError, lambda: layer.prepare(asked, Needs(), self))
        assert "No space left on device" in error.what
        assert "storage.size" in error.remedy


# ------------------------------------------------------------------------------------------- without the right


def test_it_is_concerned_by_file_systems_and_storage_only(layer):
    assert layer.concerns(environment("xfs"))
    assert layer.concerns(environment(scheduler="none"))
    assert not layer.concerns(replace(environment(), layers={"pages": "2MB", "sysctl.vm.swappiness": "1"}))


@OF_ROOT
def test_a_host_that_refuses_says_what_would_make_it_possible(layer, folder):
    if MISSING:
        pytest.skip(f"{MISSING} are missing")
    ledger = FakeLedger(refused=[f"folder {folder}/pgstrata-0a1b2c-ext4-1"])
    error = failure_of(HostNotFitError, lambda: layer.prepare(environment("ext4"), Needs(), ledger))
    assert "sudo" in error.remedy


@OF_ROOT
@pytest.mark.skipif(bool(MISSING), reason="programs are missing")
@pytest.mark.parametrize(
    ("state", "said"),
    [("/dev/loop7 dio=0", "no direct I/O"), ("", "no loop device of its own"),
     ("/dev/loop1 dio=1\n/dev/loop2 dio=1", "of its own")],
)  # fmt: skip
def test_a_loop_device_that_is_not_as_asked_did_not_take(state, said, layer):
    ledger = FakeLedger(lambda change: state if change.what.startswith("loop") else change.value)
    error = failure_of(LevelNotTakenError, lambda: layer.prepare(environment("ext4"), Needs(data=1), ledger))
    assert said in error.what


@OF_ROOT
def test_a_missing_program_is_named_with_its_package(folder):
    class Bare(LocalHost):
        """A host without xfsprogs."""

        def run(self, command, **keywords):
            done = super().run(command, **keywords)
            if b"== check" not in done.stdout:
                return done
            head, mark, rest = done.stdout.partition(b"== mount")
            return replace(done, stdout=head + b"missing=mkfs.xfs\n" + mark + rest)

    layer = StorageLayer(Bare(), "k", data=folder, storage=folder)
    error = failure_of(HostNotFitError, lambda: layer.prepare(environment("xfs"), Needs(), FakeLedger()))
    assert "mkfs.xfs" in error.what
    assert "xfsprogs" in error.remedy


@OF_ROOT
def test_too_little_room_is_seen_before_anything_is_changed(layer):
    if MISSING:
        pytest.skip(f"{MISSING} are missing")
    ledger = FakeLedger()
    error = failure_of(DiskFullError, lambda: layer.prepare(environment("ext4"), Needs(data=1 << 60), ledger))
    assert "does not fit" in error.what
    assert ledger.changes == []


def test_a_folder_that_is_none_is_refused(user):
    layer = StorageLayer(user, "k", data="/etc/passwd", storage="/etc/passwd")
    error = failure_of(HostNotFitError, lambda: layer.prepare(environment("ext4"), Needs(), FakeLedger()))
    assert error.where == "/etc/passwd"


@OF_ROOT
@pytest.mark.parametrize(
    ("mode", "said"), [(0o777, "other users may write"), (0o700, "the user that servers run as, can enter")]
)
def test_a_folder_where_others_write_or_cannot_enter_is_refused(mode, said, user, folder):
    where = Path(folder, "open")
    where.mkdir()
    where.chmod(mode)
    layer = StorageLayer(user, "k", data="/", storage=f"{where}/storage")
    error = failure_of(HostNotFitError, lambda: layer.prepare(environment("ext4"), Needs(), FakeLedger()))
    where.rmdir()
    assert said in error.what


def test_memory_has_no_scheduler(user):
    layer = StorageLayer(user, "k", data="/proc", storage="/proc")
    asked = environment(scheduler="none")
    error = failure_of(HostNotFitError, lambda: layer.prepare(asked, Needs(), FakeLedger()))
    assert "has no block device" in error.what


@pytest.mark.parametrize(
    "asked",
    [environment(mount="noatime"), environment(mkfs="-m 0"), environment(size="1"), environment(device="/dev/x")],
)
def test_options_of_a_file_system_need_one(asked, layer):
    error = failure_of(UsageError, lambda: layer.prepare(asked, Needs(), FakeLedger()))
    assert "filesystem" in error.remedy


def test_a_level_of_a_later_version_is_refused(layer):
    error = failure_of(UsageError, lambda: layer.prepare(environment("xfs", journal="x"), Needs(), FakeLedger()))
    assert "storage.journal" in error.what
