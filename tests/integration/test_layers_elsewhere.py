"""Layers of another host as factors: changed over there, seen over there, undone over there, also after kill -9.

The host is a network of its own on this machine: kernel parameters below `net` are its alone, the rest is seen here too.
"""

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import sshd
from far_place import FILE, FarPlace

pytestmark = [pytest.mark.server, pytest.mark.root, pytest.mark.skipif(bool(sshd.why_not()), reason=sshd.why_not())]

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
OF_THE_NETWORK = Path("/proc/sys/net/core/somaxconn")
TEXT = """
blocks = 1
[[environments]]
name = "plain"
[[environments]]
name = "changed"
thp = "always"
cpu.quota = "150 %"
filesystem = "ext4"
storage.size = "160MB"
[environments.sysctl]
net.core.somaxconn = 1234
[common]
host = "ssh:far1"
settings.shared_buffers = "64MB"
settings.max_wal_size = "64MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 1
rate = 50
run = "1s"
warmup = "0s"
"""


class Place(FarPlace):
    """What this machine and that one look like, too."""

    def __init__(self, folder, far):
        super().__init__(folder, far, TEXT)
        self.first = self.state()

    def _counts(self, path):
        """Whether a mount or an image is not that of a test beside this one."""
        return Path(path).is_relative_to(self.folder) or not re.search(r"/(?:pgstrata|pgs)-", path)

    def state(self):
        """THP, groups, the parameters of both networks, loop devices and mounts but for those of other tests."""
        inside = subprocess.run(self.far.inside("cat", str(OF_THE_NETWORK)), capture_output=True, check=True).stdout
        groups = {str(path) for path in Path("/sys/fs/cgroup").rglob("pgstrata*")}
        backing = [path.read_text() for path in Path("/sys/block").glob("loop*/loop/backing_file")]
        loops = set(filter(self._counts, map(str.strip, backing)))
        mounted = {line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()}
        mounts = set(filter(self._counts, mounted))
        return THP.read_text(), inside, OF_THE_NETWORK.read_bytes(), groups, loops, mounts


@pytest.fixture(scope="module")
def place():
    folder = Path(tempfile.mkdtemp(prefix="pgstrata-far-", dir="/tmp"))
    folder.chmod(0o755)
    there = folder / "there"
    there.mkdir()
    with sshd.far_hosts(folder / "net", 1, [sshd.own_folders(there)]) as (far,):
        yield Place(folder, far)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def made(place):
    """What each command said: status and run after kill -9, restore, then the study to its end."""
    measured = ("b01/changed/select-only-s1-c1-r50", "measure")
    place.kill_at("study", lambda event: (event.get("run"), event.get("text")) == measured)
    steps = {
        "left": place.state(),
        "status": place.pgstrata("host", "status", "--host", "far1"),
        "here": place.pgstrata("host", "status"),
        "refused": place.pgstrata("run", FILE, "--study", "study"),
        "restore": place.pgstrata("host", "restore", "--host", "far1"),
        "restored": place.state(),
    }
    yield {**steps, "run": place.pgstrata("run", FILE, "--study", "study"), "end": place.state()}
    place.pgstrata("host", "restore", "--host", "far1", "--force")


def test_what_a_killed_experiment_changed_over_there_is_shown_over_there(place, made):
    assert made["left"] != place.first
    assert "[always]" in made["left"][0]
    assert (made["left"][1], made["left"][2]) == (b"1234\n", place.first[2]), "only over there"
    status = made["status"]
    assert status.returncode == 4, status.stdout + status.stderr
    for word in ("somaxconn", "transparent_hugepage", "ext4"):
        assert word in status.stdout
    assert made["here"].returncode == 0, "this host is another one"


def test_a_host_that_was_left_changed_is_not_measured(made):
    assert made["refused"].returncode == 4
    assert "host restore --host far1" in made["refused"].stderr


def test_restore_puts_everything_back_over_there(place, made):
    assert made["restore"].returncode == 0, made["restore"].stdout + made["restore"].stderr
    assert made["restored"] == place.first


def test_the_experiment_then_comes_to_its_end_with_every_level_seen_over_there(place, made):
    assert made["run"].returncode == 0, made["run"].stdout + made["run"].stderr
    assert made["end"] == place.first
    runs = [json.loads(path.read_text()) for path in (place.folder / "study").glob("evidence/*/*/*/run.json")]
    assert len(runs) == 2
    assert not [run["failure"] for run in runs if run["failure"]]
    for run in runs:
        facts = run["facts"]
        if run["environment"] == "plain":
            assert "sysctl.net.core.somaxconn" not in facts
            continue
        assert (facts["sysctl.net.core.somaxconn"], facts["cpu.quota"], facts["memory.thp"]) == (
            "1234",
            "1.5",
            "always",
        )
        assert facts["storage.stack"].startswith("ext4 on loop (direct I/O")
