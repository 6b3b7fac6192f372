"""A disk that fills up at any step: the experiment ends with path and remedy, and goes on after space was made."""

import json
import os
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.server,
    pytest.mark.root,
    pytest.mark.company,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.getuid() != 0, reason="needs root"),
]

EXPERIMENT = """
question = "?"
blocks = 1
controls = ["same"]
[common]
server = "embedded"
settings.max_wal_size = "64MB"
settings.shared_buffers = "32MB"
[[cells]]
workload = "simple-update"
scale = 1
clients = 2
rate = 50
run = "1s"
warmup = "0s"
"""
MB = 1024 * 1024


class SmallDisk:
    """A file system of its own that can be filled up, all but some bytes, and emptied again."""

    def __init__(self, root):
        self.root = root
        self.ballast = root / "ballast"

    def fill(self, left=0):
        with self.ballast.open("ab") as file:
            for _ in range(100):
                figures = os.statvfs(self.root)
                size = figures.f_bavail * figures.f_frsize - left
                if size <= 0:
                    return
                with suppress(OSError):  # somebody else was faster: once more
                    os.posix_fallocate(file.fileno(), file.tell(), size)
                    return

    def make_space(self):
        self.ballast.unlink()


@pytest.fixture
def disk():
    folder = Path(tempfile.mkdtemp(prefix="pgstrata-disk-", dir="/tmp"))
    folder.chmod(0o755)
    mount = ["mount", "-t", "tmpfs", "-o", "size=640m,mode=755", "pgstrata-test", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("needs the right to mount a file system")
    try:
        subprocess.run(["mount", "--make-private", str(folder)], check=True)
        yield SmallDisk(folder)
    finally:
        if subprocess.run(["umount", str(folder)]).returncode:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        with suppress(OSError):
            folder.rmdir()


@pytest.fixture
def place(disk, sandbox):
    """A sandbox whose datasets and clones lie on the small disk."""
    return replace(sandbox, environ={**sandbox.environ, "PGSTRATA_DATA": str(disk.root / "data")})


def run_until(place, file, study, disk, sign, left):
    """Run, and fill the disk as soon as an event holds `sign`, and again at each one after it; the program, ended."""
    process = place.start("run", file, "--study", study, "--events")
    said, full = [], False
    try:
        for line in process.stdout:
            said.append(line)
            full = full or sign in line
            if full:
                disk.fill(left)
        process.wait(timeout=120)
    finally:
        process.kill()
        process.stdout.close()
    return process.returncode, "".join(said)


def servers_below(folder):
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{folder}/".encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
    return found


@pytest.mark.parametrize(
    "left", [30 * MB, *(pytest.param(some * MB, marks=pytest.mark.soak("disk-full")) for some in (8, 45, 62))]
)
def test_while_a_dataset_is_built(place, disk, left):
    study = place.root / "study-full-build"
    file = place.file(EXPERIMENT, "full.toml")
    code, said = run_until(place, file, study, disk, '"kind": "building"', left)
    assert (code, "Traceback" in said) == (4, False), said
    assert str(disk.root) in said
    assert "free space" in said
    assert "PGSTRATA_DATA" in said
    # a fast machine may have built it before the disk was filled: then it is whole
    there = list((disk.root / "data").glob("datasets/*"))
    assert all(json.loads((each / "pgstrata.marker").read_text())["bytes"] > 0 for each in there), there
    assert not servers_below(disk.root)
    disk.make_space()
    done = place.pgstrata("run", file, "--study", study)
    assert done.returncode == 0, done.stderr


def test_while_a_dataset_is_cloned(place, disk):
    study = place.root / "study-full-clone"
    file = place.file(EXPERIMENT, "full.toml")
    assert place.pgstrata("run", file, "--study", place.root / "study-before").returncode == 0
    assert list((disk.root / "data").glob("datasets/*"))
    code, said = run_until(place, file, study, disk, '"kind": "study_started"', 20 * MB)
    assert (code, "Traceback" in said) == (4, False), said
    # where the clone was quicker than the filling, the server finds no room for its log, or the run for its WAL
    full = (
        "the disk is full while a dataset is cloned",
        "the disk is full: the server cannot start",
        "the disk was full while the environment",
        "the disk was full during the run",
    )
    assert any(text in said for text in full), said
    assert str(disk.root) in said
    assert not list((disk.root / "data").glob("clones/*"))
    disk.make_space()
    done = place.pgstrata("run", file, "--study", study)
    assert done.returncode == 0, done.stderr


def test_while_a_server_writes_wal_in_a_measured_run(place, disk):
    # as much WAL on a busy machine as on an idle one, and not more than the whole disk holds
    place.file("SELECT pg_logical_emit_message(false, 'wal', repeat('x', 300000));\n", "wal.sql")
    writing = 'scripts = [{ file = "wal.sql" }]'
    text = (
        EXPERIMENT.replace('workload = "simple-update"', writing)
        .replace('"1s"', '"3s"')
        .replace("rate = 50", "rate = 100")
    )
    file = place.file(text, "full.toml")
    for attempt in range(3):  # a busy machine may hear of the run when that has ended
        study = place.root / f"study-full-wal-{attempt}"
        code, said = run_until(place, file, study, disk, '"text": "measure"', 4 * MB)
        assert (code, "Traceback" in said) == (4, False), said
        if "the disk was full during the run" in said:
            break
        disk.make_space()
    assert "the disk was full during the run" in said
    assert "No space left on device" in said
    assert str(disk.root) in said
    assert not place.records(study)
    assert not list((disk.root / "data").glob("clones/*"))
    assert not servers_below(disk.root)
    disk.make_space()
    done = place.pgstrata("run", file, "--study", study)
    assert done.returncode == 0, done.stderr
    assert all(record["failure"] is None for record in place.records(study).values())


def test_while_evidence_is_written_into_the_study(sandbox, disk):
    study = disk.root / "study"
    file = sandbox.file(EXPERIMENT.replace("blocks = 1", "blocks = 2"), "full.toml")
    code, said = run_until(sandbox, file, study, disk, '"kind": "run_finished"', 16 * 1024)
    assert (code, "Traceback" in said) == (4, False), said
    assert f"{study}: the file system of the study is full" in said
    assert "start the same command again" in said
    kept = sandbox.records(study)
    assert 1 <= len(kept) < 4
    assert not sandbox.wait_for_silence()
    assert not sandbox.clones()
    assert json.loads(sandbox.pgstrata("show", study, "--json").stdout)["schema"] == 1
    disk.make_space()
    done = sandbox.pgstrata("run", file, "--study", study)
    assert done.returncode == 0, done.stderr
    assert len(sandbox.records(study)) == 4
    assert kept.items() <= sandbox.records(study).items()


def test_too_little_space_is_seen_before_anything_is_built(place, disk):
    disk.fill(left=10 * MB)
    file = place.file(EXPERIMENT, "full.toml")
    done = place.pgstrata("run", file, "--study", place.root / "study-full-before")
    assert done.returncode == 2
    assert "of disk are needed and 10 MB are free" in done.stderr
    assert not (disk.root / "data").exists() or not list((disk.root / "data").iterdir())
