"""WAL and installation on other storage as factors of a whole experiment: measured, seen from inside, nothing left."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.server,
    pytest.mark.root,
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        os.getuid() != 0 or not Path("/dev/loop-control").exists() or not shutil.which("mkfs.ext4"),
        reason="needs root, loop devices and e2fsprogs",
    ),
]

EXPERIMENT = """
question = "?"
blocks = 1
[common]
server = "embedded"
settings.max_wal_size = "64MB"
settings.shared_buffers = "32MB"
[[environments]]
name = "usual"
storage.wal = "same"
storage.installation = "same"
[[environments]]
name = "apart"
storage.wal = "loop"
storage.installation = "memory"
[[cells]]
workload = "simple-update"
scale = 1
clients = 2
rate = 50
run = "1s"
warmup = "0s"
"""


@pytest.fixture
def place(sandbox):
    """A sandbox with a lock and a ledger of its own, so that a kill leaves nothing for others to trip over."""
    lock = {"PGSTRATA_LOCK": str(sandbox.root / "roles.lock"), "PGSTRATA_STATE": str(sandbox.root / "roles")}
    return replace(sandbox, environ={**sandbox.environ, **lock})


def left(place):
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(place.root) in line]
    return [*mounts, *(place.root / "data-storage").glob("pgstrata-*")]


def kill_in_its_midst(place, file, study):
    """Killed while a server with its WAL and its program elsewhere is at work."""
    process = place.start("run", file, "--study", study, "--events")
    try:
        for line in process.stdout:
            if "/apart/" in line and '"probe"' in line:
                break
    finally:
        process.kill()
        process.communicate()
    assert len(left(place)) == 4
    refused = place.pgstrata("run", file, "--study", study)
    assert refused.returncode == 4
    assert "host restore" in refused.stderr
    restored = place.pgstrata("host", "restore")
    assert restored.returncode == 0, restored.stderr
    assert left(place) == []


def test_wal_and_installation_lie_elsewhere_in_one_of_two_environments(place):
    sandbox, study = place, place.root / "study-roles"
    file = sandbox.file(EXPERIMENT, "roles.toml")
    planned = sandbox.pgstrata("plan", file)
    assert "storage.wal" in planned.stdout
    kill_in_its_midst(place, file, study)
    done = sandbox.pgstrata("run", file, "--study", study)
    assert done.returncode in {0, 3}, done.stderr
    records = sandbox.records(study)
    facts = {identity.split("/")[1]: record["facts"] for identity, record in records.items()}
    assert set(facts) == {"usual", "apart"}
    assert not [record["failure"] for record in records.values() if record["failure"]]
    assert facts["usual"]["storage.wal"] == "with the data"
    assert facts["apart"]["storage.wal"] == "apart"
    assert facts["apart"]["storage.wal.stack"].startswith("ext4 on loop (direct I/O")
    assert [facts[name]["storage.installation.filesystem"] == "tmpfs" for name in ("usual", "apart")] == [False, True]
    assert not sandbox.clones()
    assert not sandbox.processes()
    assert left(place) == []
    assert "undeclared" not in sandbox.pgstrata("show", study).stdout
