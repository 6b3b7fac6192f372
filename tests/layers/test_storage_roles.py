"""WAL and installation on storage of their own, with real servers: used, seen from inside, gone without a trace."""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from fake_ledger import FakeLedger
from loop_devices import as_root, left_over
from pgstrata.app.machine import SystemClock
from pgstrata.datasets.cluster import ClusterDatasets
from pgstrata.errors import HostNotFitError, LevelNotTakenError
from pgstrata.hosts.local import LocalHost
from pgstrata.layers.server import ClusterControl
from pgstrata.layers.storage.layer import StorageLayer
from pgstrata.ledger.ledger import restore
from pgstrata.model.experiment import Environment, ServerKind, ServerSpec
from pgstrata.model.launch import Launch, Needs
from pgstrata.model.storage import Role
from pgstrata.ports.host import Command
from pgstrata.servers.psql import PsqlSql
from pgstrata.testing import failure_of

MB = 1024 * 1024
pytestmark = [*as_root]


def asking(**storage):
    layers = {f"storage.{name}": value for name, value in storage.items()}
    return Environment(name="it", levels=(), server=ServerSpec(kind=ServerKind.EMBEDDED), layers=layers)


@pytest.fixture
def bench(server_host, folder, cluster, direct_ledger, tmp_path_factory):
    return Bench(server_host, folder, cluster, direct_ledger)


class Bench:
    """A dataset of a real build, and what carries out one run on it."""

    def __init__(self, host, folder, cluster, ledger):
        self.host, self.ledger = host, ledger
        self.build, pristine = cluster("embedded")
        self.dataset = pristine.dataset
        self.layer = StorageLayer(host, "k", data=folder, storage=folder)
        self.sql = PsqlSql(host, self.build)
        self.root = str(Path(pristine.folder).parent / "root")
        self.datasets = ClusterDatasets(
            host=host,
            sql=None,
            control=None,
            tools=None,
            workloads={},
            recipe=None,
            clock=None,
            root=self.root,
            study="s",
        )

    def up(self, asked, look):
        """Carries out `look` on a server of an environment that was prepared; what it gives."""
        launch = self.layer.prepare(asked, Needs(wal=1, build=self.build), self.ledger)
        clone = self.datasets.clone(self.dataset, "one", launch.data, launch.wal)
        sockets = tempfile.mkdtemp(prefix="pgs-", dir="/tmp")
        shutil.chown(sockets, self.host.user)
        control = ClusterControl(self.host, SystemClock(), sockets)
        try:
            server = control.start(asked, self.build, replace(clone, database="postgres"), launch)
            try:
                return look(server)
            finally:
                control.stop(server)
        finally:
            shutil.rmtree(sockets)
            self.datasets.discard(clone)
            left = [path for path in (clone.folder, clone.wal) if path and Path(path).exists()]
            assert left == []


@pytest.mark.server
def test_the_wal_goes_to_its_own_file_system_and_the_server_starts_from_memory(bench):
    asked = asking(wal="loop", installation="memory", mount="noatime")

    def look(server):
        self_made = "CREATE TABLE t AS SELECT 1 AS a; CHECKPOINT; SELECT pg_switch_wal();"
        bench.sql.execute(server.address, self_made)
        wal = Path(server.clone.location, "pg_wal")
        assert wal.is_symlink()
        assert len(list(Path(server.clone.wal, "pg_wal").glob("0*"))) >= 1
        program = Path(f"/proc/{server.postmaster_pid}/exe").readlink()
        assert program == Path(server.launch.prefix, "bin", "postgres")
        facts = bench.layer.observe(server, bench.sql)
        wrong = {
            "elsewhere": replace(server, environment=asking(wal="same")),
            "moved": replace(server, environment=asking(wal="loop", installation="loop")),
            "not moved": replace(server, environment=asking(installation="same"), build=bench.build),
        }
        # the clone's own folder is not where the WAL of `same` would be
        wrong["elsewhere"] = replace(wrong["elsewhere"], clone=replace(server.clone, wal=""))
        said = {
            name: failure_of(LevelNotTakenError, lambda server=server: bench.layer.observe(server, bench.sql)).what
            for name, server in wrong.items()
        }
        return facts, said

    facts, said = bench.up(asked, look)
    assert facts["storage.wal"] == "apart"
    assert facts["storage.wal.filesystem"] == "ext4"
    assert "noatime" in facts["storage.wal.mount_options"]
    assert facts["storage.wal.stack"].startswith("ext4 on loop (direct I/O")
    assert facts["storage.installation.stack"] == "tmpfs"
    assert "writes its WAL in" in said["elsewhere"]
    assert "the installation lies on tmpfs" in said["moved"]
    assert "should run" in said["not moved"]


@pytest.mark.server
def test_where_nothing_is_moved_that_is_said_too(bench):
    facts = bench.up(asking(wal="same", installation="same"), lambda server: bench.layer.observe(server, bench.sql))
    assert facts["storage.wal"] == "with the data"
    assert "storage.wal.stack" not in facts
    assert facts["storage.installation.stack"]
    assert bench.ledger.open == []


@pytest.mark.server
def test_an_installation_that_cannot_be_moved_is_refused(bench, folder):
    stuck = Path(folder, "stuck")
    (stuck / "bin").mkdir(parents=True)
    program = stuck / "bin" / "postgres"
    program.write_text(f'#!/bin/sh\n[ "$0" = "{program}" ] || {{ echo "I live in {stuck}" >&2; exit 3; }}\n')
    program.chmod(0o755)
    try:
        needs = Needs(build=replace(bench.build, prefix=str(stuck)))
        error = failure_of(
            HostNotFitError, lambda: bench.layer.prepare(asking(installation="memory"), needs, bench.ledger)
        )
        assert "does not start (status 3)" in error.what
        assert "I live in" in "\n".join(error.details)
        closed = replace(needs, build=replace(bench.build, prefix=f"{folder}/closed"))
        shutil.copytree(stuck, f"{folder}/closed")
        Path(folder, "closed", "bin", "postgres").chmod(0o700)
        error = failure_of(
            HostNotFitError, lambda: bench.layer.prepare(asking(installation="memory"), closed, bench.ledger)
        )
        assert "cannot be copied" in error.what
        with Path(folder, "closed", "everything").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 1100 * MB)
        error = failure_of(
            HostNotFitError, lambda: bench.layer.prepare(asking(installation="memory"), closed, bench.ledger)
        )
        assert "would be copied" in error.what
    finally:
        bench.ledger.undo_to(0)
        shutil.rmtree(stuck)
        shutil.rmtree(f"{folder}/closed", ignore_errors=True)


@pytest.mark.server
def test_a_copy_that_still_takes_files_of_its_former_place_did_not_take(bench):
    class Sticky:
        def query(self, address, statement):
            table = bench.sql.query(address, statement)
            return replace(table, rows=tuple((name, f"{bench.build.prefix}/lib") for name, _ in table.rows))

    def look(server):
        return failure_of(LevelNotTakenError, lambda: bench.layer.observe(server, Sticky())).what

    assert "still takes" in bench.up(asking(installation="memory"), look)


def test_a_foreign_folder_in_the_place_of_the_wal_is_not_touched(bench):
    launch = bench.layer.prepare(asking(wal="memory"), Needs(wal=1), bench.ledger)
    mine = Path(launch.wal, "one")
    mine.mkdir()
    (mine / "precious").touch()
    shutil.chown(mine, bench.host.user)
    error = failure_of(HostNotFitError, lambda: bench.datasets.clone(bench.dataset, "one", "", launch.wal))
    assert error.where == str(mine)
    assert (mine / "precious").exists()


def test_a_mounted_device_is_refused_for_the_wal_and_stays_as_it_is(user, folder, direct_ledger):
    Path(folder, "disk").touch()
    os.truncate(f"{folder}/disk", 64 * MB)
    run = lambda *argv: subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()  # noqa: E731
    device = run("losetup", "--find", "--show", f"{folder}/disk")
    mount = Path(folder, "mine")
    try:
        mount.mkdir()
        run("mkfs.ext4", "-q", "-L", "mine", device)
        layer = StorageLayer(user, "k", data=folder, storage=folder, devices=f"{folder}/devices")
        ask = lambda: layer.prepare(asking(wal=device), Needs(wal=1), direct_ledger)  # noqa: E731
        assert "not on the list" in failure_of(HostNotFitError, ask).what
        Path(folder, "devices").write_text(f"{device}\n")
        assert "not pgstrata's" in "\n".join(failure_of(HostNotFitError, ask).details)
        direct_ledger.undo_to(0)
        run("mount", device, str(mount))
        (mount / "file").write_text("precious")
        assert "mounted on" in "\n".join(failure_of(HostNotFitError, ask).details)
        direct_ledger.undo_to(0)
        assert (mount / "file").read_text() == "precious"
    finally:
        subprocess.run(["umount", str(mount)], check=False, capture_output=True)
        run("losetup", "--detach", device)
        for name in ("disk", "devices"):
            Path(folder, name).unlink(missing_ok=True)
        mount.rmdir()


def test_too_little_memory_is_seen_before_anything_is_changed(user, folder):
    ledger = FakeLedger()
    layer = StorageLayer(user, "k", data=folder, storage=folder)
    error = failure_of(HostNotFitError, lambda: layer.prepare(asking(wal="memory"), Needs(wal=1 << 60), ledger))
    assert "max_wal_size" in error.remedy
    assert ledger.changes == []


def test_all_images_together_must_fit(user, folder):
    free = shutil.disk_usage(folder).free
    ledger = FakeLedger()
    asked = replace(
        asking(wal="loop", size=str(free * 2 // 3)),
        layers={"filesystem": "ext4", "storage.size": str(free * 2 // 3), "storage.wal": "loop"},
    )
    layer = StorageLayer(user, "k", data=folder, storage=folder)
    error = failure_of(Exception, lambda: layer.prepare(asked, Needs(wal=free // 2), ledger))
    assert "does not fit" in error.what
    assert ledger.changes == []


def test_what_a_killed_pgstrata_left_of_all_parts_is_restored(folder, tmp_path_factory):
    entries = str(tmp_path_factory.mktemp("ledger"))
    script = f"""
import os
from pgstrata.app.machine import SystemClock
from pgstrata.hosts.local import LocalHost
from pgstrata.layers.storage.layer import StorageLayer
from pgstrata.ledger.ledger import HostLedger
from pgstrata.model.experiment import Environment, ServerKind, ServerSpec
from pgstrata.model.launch import Needs
asked = Environment(name="it", levels=(), server=ServerSpec(kind=ServerKind.EMBEDDED), layers={{
    "filesystem": "ext4", "storage.size": "67108864", "storage.wal": "memory", "storage.installation": "memory"}})
ledger = HostLedger(LocalHost(), (), {entries!r}, SystemClock(), "study")
launch = StorageLayer(LocalHost(user="nobody"), "k", data={folder!r}, storage={folder!r}).prepare(asked, Needs(wal=1), ledger)
open(launch.wal + "/left", "w").close()
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    assert len([line for line in left_over(folder) if isinstance(line, str)]) == 3
    undone = restore(LocalHost(), (), entries)
    assert len(undone.closed) == 5 + 2 + 2
    assert left_over(folder) == []


def test_parts_are_made_for_a_launch_each_in_its_place(user, folder, direct_ledger):
    layer = StorageLayer(user, "k", data=folder, storage=folder)
    launch = layer.prepare(asking(wal="memory"), Needs(wal=1), direct_ledger)
    assert launch == Launch(wal=f"{folder}/pgstrata-k-it-1-{Role.WAL}/mount/data")
    kind = user.run(Command(argv=("findmnt", "-no", "FSTYPE", "--target", launch.wal))).text
    assert kind.strip() == "tmpfs"
