"""Limits of memory and of traffic: groups are made, the clone leaves the page cache, the server is inside."""

import os
import re
import secrets
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from fake_ledger import FakeLedger
from pgstrata.app.machine import SystemClock
from pgstrata.errors import HostNotFitError, LevelNotTakenError, SqlError
from pgstrata.hosts.local import LocalHost
from pgstrata.layers.limits import LimitsLayer, assert_cache_counted, find_device
from pgstrata.layers.server import ClusterControl
from pgstrata.model.experiment import Environment, ServerKind, ServerSpec
from pgstrata.model.launch import Needs
from pgstrata.ports.host import Command, StopSignal
from pgstrata.servers.psql import PsqlSql
from seen_server import make_server
from timing import wait_for
from version2 import Version2

MB = 1024**2
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make cgroups")


def environment(**levels):
    layers = {f"limits.{name}": str(level) for name, level in levels.items()}
    return Environment(name="it", levels=(), server=ServerSpec(kind=ServerKind.EMBEDDED), layers=layers)


@pytest.fixture
def host():
    host = LocalHost()
    yield host
    host.close()


@pytest.fixture
def data(server_host):
    """A data directory of 24 MB, in the page cache, with a link to a table that lies elsewhere."""
    folder = Path(tempfile.mkdtemp(prefix="pgstrata-limits-", dir="/var/tmp"))
    (folder / "data" / "base").mkdir(parents=True)
    (folder / "elsewhere").mkdir()
    (folder / "data" / "PG_VERSION").write_text("18\n")
    for place in (folder / "data" / "base" / "1", folder / "elsewhere" / "2 two"):
        place.write_bytes(os.urandom(12 * MB))
    (folder / "data" / "link").symlink_to(folder / "elsewhere")
    subprocess.run(["chown", "-R", server_host.user, folder], check=True)
    yield folder / "data"
    shutil.rmtree(folder)


@pytest.fixture
def layer(server_host, data):
    return LimitsLayer(server_host, f"test{secrets.token_hex(3)}", lambda _: str(data))


def cached(path):
    """Bytes of a file that are in the page cache, by fincore(1)."""
    return int(subprocess.run(["fincore", "-nb", "-o", "RES", path], check=True, capture_output=True).stdout)


@pytest.mark.root
@needs_root
def test_what_the_server_reads_is_charged_to_it_although_a_copy_was_cached(layer, data, ledger, server_host):
    asked = environment(memory=64 * MB)
    files = [data / "base" / "1", data / "link" / "2 two"]
    assert [cached(file) for file in files] == [12 * MB] * 2
    launch = layer.prepare(asked, Needs(), ledger)
    script = f"cat base/1 >/dev/null; cat /proc/$$/cgroup; cat {group_of(launch)}/memory.usage_in_bytes"
    said = server_host.run(Command(argv=(*launch.server, "sh", "-c", script), folder=str(data))).text
    assert "/pgstrata-test" in said
    assert 12 * MB <= int(said.splitlines()[-1]) < 24 * MB
    assert cached(files[1]) == 0, "read by nobody since"


@pytest.mark.root
@needs_root
def test_facts_are_read_from_the_groups_and_the_server_must_be_inside(layer, ledger, server_host, data):
    asked = environment(memory=64 * MB + 5, read_bytes=MB, read_operations=500)
    launch = layer.prepare(asked, Needs(), ledger)
    process = server_host.spawn(
        Command(argv=(*launch.server, "sleep", "20"), folder=str(data)), stdout="/dev/null", stderr="/dev/null"
    )
    try:
        wait_for(lambda: b"sleep" in Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[0])
        facts = dict(layer.observe(make_server(asked, process.pid), None))
        assert int(facts.pop("limits.memory_used")) > 0
        assert facts == {
            "limits.memory": str(64 * MB),
            "limits.read_bytes": str(MB),
            "limits.read_operations": "500",
            "limits.memory_kills": "0",
        }
        with pytest.raises(LevelNotTakenError, match="in the cgroup"):
            layer.observe(make_server(asked, os.getpid()), None)
    finally:
        process.signal(StopSignal.TERM)
        process.wait(5)


@pytest.mark.root
@needs_root
def test_a_server_that_was_killed_for_want_of_memory_has_a_reason(layer, ledger, server_host, data):
    asked = environment(memory=32 * MB)
    launch = layer.prepare(asked, Needs(), ledger)
    assert layer.explain_death(asked) == ""
    eater = ("sh", "-c", "head -c 100000000 /dev/zero | tail >/dev/null")  # a line without end is kept whole
    server_host.run(Command(argv=(*launch.server, *eater), folder=str(data)), check=False)
    # before the memory of the first is free again, another process may be killed too
    why = layer.explain_death(asked)
    assert re.search(r"killed [1-3] of the server's processes, because limits\.memory = 32 MB", why), why


@pytest.mark.root
@pytest.mark.server
@needs_root
def test_a_real_server_starts_inside_and_a_backend_that_is_killed_has_a_reason(server_host, cluster, ledger):
    build, clone = cluster("embedded")
    layer = LimitsLayer(server_host, f"test{secrets.token_hex(3)}", lambda _: clone.folder)
    asked = environment(memory=128 * MB)
    asked = replace(asked, settings={"shared_buffers": "16MB"})
    launch = layer.prepare(asked, Needs(), ledger)
    control = ClusterControl(server_host, SystemClock(), clone.folder)
    server = control.start(asked, build, clone, launch)
    try:
        sql = PsqlSql(server_host, build)
        assert layer.observe(server, sql)["limits.memory"] == str(128 * MB)
        with pytest.raises(SqlError):
            sql.query(server.address, "SELECT length(repeat('x', 400000000))")
        assert "limits.memory = 128 MB was used up" in layer.explain_death(asked)
        # PostgreSQL 18 does not end when it is told to while it recovers from a crash
        wait_for(lambda: control.log(server).count(b"ready to accept connections") > 1)
    finally:
        control.stop(server)


@pytest.mark.root
@needs_root
def test_reads_past_the_page_cache_are_as_slow_as_was_asked(layer, ledger, server_host, data):
    asked = environment(read_operations=20)
    launch = layer.prepare(asked, Needs(), ledger)
    read = "dd if=base/1 of=/dev/null iflag=direct bs=64k count=20 2>/dev/null; cat /proc/uptime"
    begun = float(Path("/proc/uptime").read_text().split()[0])
    said = server_host.run(Command(argv=(*launch.server, "sh", "-c", read), folder=str(data))).text
    assert float(said.split()[0]) - begun > 0.5, "20 reads at 20 per second, some of them at once"


@pytest.mark.root
@needs_root
def test_a_start_elsewhere_than_in_a_data_directory_is_refused(layer, ledger, server_host):
    launch = layer.prepare(environment(memory=64 * MB), Needs(), ledger)
    done = server_host.run(Command(argv=(*launch.server, "true"), folder="/"), check=False)
    assert (done.code, done.stderr) == (126, b"not in a data directory: /\n")


def test_writes_cannot_be_limited_where_delayed_writes_escape(host, data):
    layer = LimitsLayer(host, "k1", lambda _: str(data))
    if not Path("/sys/fs/cgroup/blkio").exists():
        pytest.skip("this machine has cgroup v2 for I/O")
    with pytest.raises(HostNotFitError, match=r"write_bytes and limits\.write_operations would hardly limit anything"):
        layer.prepare(environment(write_bytes=MB, write_operations=5), Needs(), FakeLedger())


def test_huge_pages_are_not_counted_and_so_refused(host, data):
    asked = environment(memory=64 * MB)
    asked = Environment(name="it", levels=(), server=asked.server, layers={**asked.layers, "pages": "2MB"})
    with pytest.raises(HostNotFitError, match="does not count huge pages"):
        LimitsLayer(host, "k1", lambda _: str(data)).prepare(asked, Needs(), FakeLedger())


# ------------------------------------------------------------------------------------ devices


def test_a_folder_that_is_not_there_yet_is_on_the_device_of_the_nearest_that_is(host, data):
    assert find_device(host, f"{data}/a b/c") == find_device(host, str(data))


def test_memory_backed_data_have_no_device(host):
    with pytest.raises(HostNotFitError, match="tmpfs"):
        find_device(host, "/dev/shm/pgstrata/none")


class Answers:
    """A host whose folder is on some device of some file system."""

    name = "remote"

    def __init__(self, number, kind, disk):
        self.answers = [f"{number}\n{kind}\n", disk]

    def run(self, command, *, check=True):
        text = self.answers.pop(0)
        return type("Done", (), {"code": 0 if text else 1, "text": text})()


@pytest.mark.parametrize(("kind", "counted"), [("zfs", False), ("tmpfs", False), ("btrfs", True), ("overlayfs", True)])
def test_data_that_are_nobodys_page_cache_cannot_be_limited(kind, counted):
    answers = Answers(os.makedev(0, 31), kind, "")
    if counted:
        assert_cache_counted(answers, "/srv")
    else:
        with pytest.raises(HostNotFitError, match=f"would not count the data: {kind}"):
            assert_cache_counted(answers, "/srv")


def test_a_partition_is_limited_as_its_whole_disk():
    assert find_device(Answers(os.makedev(259, 3), "xfs", "259:0\n"), "/srv", delayed_writes=True) == "259:0"


def test_btrfs_has_no_device_of_its_own_and_zfs_does_not_say_who_wrote():
    with pytest.raises(HostNotFitError, match="btrfs"):
        find_device(Answers(os.makedev(0, 31), "btrfs", ""), "/srv")
    with pytest.raises(HostNotFitError, match="does not say whose delayed writes"):
        find_device(Answers(os.makedev(8, 1), "reiserfs", "8:0\n"), "/srv", delayed_writes=True)


# ------------------------------------------------------------------------------------ version 2, from captures


class Files(Version2):
    """Its data lie on 259:0."""

    own = MappingProxyType(
        {
            "/proc/self/cgroup": "0::/pgstrata-k1/coordinator\n",
            "/proc/swaps": "Filename Type Size Used Priority\n/dev/zram0 partition 8388604 0 100\n",
            "/proc/meminfo": "MemTotal:        8136636 kB\nMemFree:          313332 kB\n",
            "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "0\n",
            "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages": "0\n",
        }
    )

    def answer(self, argv):
        return "259:0\n" if "/sys/dev/block" in argv[2] else f"{os.makedev(259, 2)}\next2/ext3\n"


SWAP = {"/sys/fs/cgroup/user.slice/memory.swap.max": "max\n"}
LEVELS = {"memory": 64 * MB, "write_bytes": 10 * MB, "read_operations": 300}


def test_on_version_2_one_group_has_all_limits():
    host, ledger, asked = Files(**SWAP), FakeLedger(), environment(**LEVELS)
    layer = LimitsLayer(host, "k1", lambda _: "/srv/data")
    launch = layer.prepare(asked, Needs(), ledger)
    (change,) = ledger.changes
    traffic = f"259:0 rbps=max wbps={10 * MB} riops=300 wiops=max"
    assert change.value == f"memory.max = {64 * MB}; memory.swap.max = 0; io.max = {traffic}"
    folder = "/sys/fs/cgroup/pgstrata-k1/pgstrata-k1-it"
    assert [word for word in launch.server if word.endswith("cgroup.procs")] == [f"{folder}/cgroup.procs"]
    host.files |= {
        "/proc/9/cgroup": "0::/pgstrata-k1/pgstrata-k1-it\n",
        f"{folder}/memory.max": f"{64 * MB}\n",
        f"{folder}/memory.current": "4096\n",
        f"{folder}/io.max": f"{traffic}\n",
        f"{folder}/memory.events": "low 0\nhigh 0\nmax 21\noom 2\noom_kill 2\noom_group_kill 0\n",
    }
    assert layer.observe(make_server(asked, 9), None) == {
        "limits.memory": str(64 * MB),
        "limits.write_bytes": str(10 * MB),
        "limits.read_operations": "300",
        "limits.memory_used": "4096",
        "limits.memory_kills": "2",
    }
    assert layer.explain_death(asked) == "", "an earlier server of the visit"
    host.files[f"{folder}/memory.events"] = "max 30\noom 5\noom_kill 5\noom_group_kill 0\n"
    assert "killed 3 of the server's processes" in layer.explain_death(asked)
    host.files[f"{folder}/io.max"] = traffic.replace("riops=300", "riops=max")
    with pytest.raises(LevelNotTakenError, match="read_operations = 300 was asked for, and the kernel says max"):
        layer.observe(make_server(asked, 9), None)


def memory_changes(host, asked):
    ledger = FakeLedger()
    LimitsLayer(host, "k1", lambda _: "/srv/data").prepare(asked, Needs(), ledger)
    return ledger.changes


def test_more_memory_than_the_host_has_would_limit_nothing():
    with pytest.raises(HostNotFitError, match=r"limits\.memory = 8 GB would limit nothing: this host has 7\.76 GB"):
        memory_changes(Files(**SWAP), environment(memory=8 * 1024 * MB))


@pytest.mark.parametrize("asked", ["on", "true"])
def test_huge_pages_by_a_setting_are_refused_too(asked):
    with pytest.raises(HostNotFitError, match=f"with huge_pages = {asked}"):
        memory_changes(Files(**SWAP), replace(environment(memory=64 * MB), settings={"huge_pages": asked}))


@pytest.mark.parametrize("file", ["nr_hugepages", "nr_overcommit_hugepages"])
def test_a_server_that_tries_to_have_huge_pages_is_refused_where_there_are_some(file):
    host = Files(**SWAP, **{f"/sys/kernel/mm/hugepages/hugepages-2048kB/{file}": "20\n"})
    asked = environment(memory=64 * MB)
    for settings in ({}, {"huge_pages": "try"}):
        with pytest.raises(HostNotFitError, match="with huge_pages = try the server takes them"):
            memory_changes(host, replace(asked, settings=settings))
    assert memory_changes(host, replace(asked, settings={"huge_pages": "off"}))
    assert memory_changes(host, replace(asked, layers={**asked.layers, "pages": "4kB"}))


def test_swap_that_nobody_counts_would_hide_the_limit():
    layer = LimitsLayer(Files(), "k1", lambda _: "/srv/data")
    with pytest.raises(HostNotFitError, match="only move the server's memory to swap"):
        layer.prepare(environment(memory=64 * MB), Needs(), FakeLedger())


def test_without_swap_there_is_nothing_to_count():
    ledger = FakeLedger()
    host = Files(**{"/proc/swaps": "Filename Type Size Used Priority\n"})
    LimitsLayer(host, "k1", lambda _: "/srv/data").prepare(environment(memory=64 * MB), Needs(), ledger)
    assert ledger.changes[0].value == f"memory.max = {64 * MB}"


def group_of(launch):
    return next(word for word in launch.server if word.endswith("/cgroup.procs")).rpartition("/")[0]
