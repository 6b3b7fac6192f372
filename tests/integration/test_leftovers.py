"""What a killed pgstrata left is swept by the next run; what is not certainly its own is left alone."""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

EXPERIMENT = """
question = "?"
blocks = 1
controls = ["same"]
interleave = "runs"
[common]
server = "embedded"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
rate = 50
run = "1s"
warmup = "0s"
"""
DEAD = {"pid": 1, "started": 1, "boot": "an earlier boot"}


@pytest.fixture(scope="module")
def own_sandbox(shared_sandbox):
    """A sandbox with a single dataset."""
    root = shared_sandbox.root / "leftovers"
    root.mkdir()
    return replace(shared_sandbox, root=root, environ={**shared_sandbox.environ, "PGSTRATA_DATA": str(root / "data")})


@pytest.fixture
def sandbox(own_sandbox):
    yield own_sandbox
    for leftover in own_sandbox.root.glob("study*"):
        shutil.rmtree(leftover)


@pytest.fixture(scope="module")
def file(own_sandbox):
    """An experiment whose dataset is there already."""
    file = own_sandbox.file(EXPERIMENT, "leftovers.toml")
    done = own_sandbox.pgstrata("run", file, "--study", own_sandbox.root / "study-first")
    assert done.returncode == 0, done.stderr
    return file


@pytest.fixture
def clones(sandbox):
    """Makes folders as a pgstrata would, beside those of living ones; removes what is left of them."""
    root = sandbox.root / "data" / "clones" / "handmade"

    def make(name, owner=None, pid_file=None):
        folder = root / name
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "precious").touch()
        if owner is not None:
            fields = {
                "program": "pgstrata",
                "purpose": "clone",
                "subject": name,
                "study": "handmade",
                "owner": owner,
                "bytes": 0,
                "seconds": 0,
            }
            (folder / "pgstrata.marker").write_text(json.dumps(fields))
        if pid_file is not None:
            (folder / "data" / "postmaster.pid").write_text(f"{pid_file}\n{folder}/data\n")
        give_to_server_user(sandbox.root / "data" / "clones")
        return folder

    yield make
    shutil.rmtree(root, ignore_errors=True)


def server_user():
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def give_to_server_user(folder):
    if server_user():
        subprocess.run(["chown", "-R", server_user(), folder], check=True)


@pytest.fixture
def started():
    """Starts programs, and ends by their ids what still runs."""
    processes = []

    def start(*argv, **more):
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()


def run_again(sandbox, file):
    """What a run says that sweeps before it sees that its budget holds no block."""
    done = sandbox.pgstrata("run", file, "--study", sandbox.root / "study-again", "--budget", "1s")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_server_that_still_runs_is_stopped_by_its_id_and_its_folder_removed(sandbox, file, clones, started):
    folder = clones("b01-x", DEAD)
    shutil.rmtree(folder / "data")
    dataset = next((sandbox.root / "data" / "datasets").glob("*/data"))
    shutil.copytree(dataset, folder / "data")
    give_to_server_user(folder)
    server = started(
        embedded("postgres"),
        "-D",
        str(folder / "data"),
        "-c",
        "listen_addresses=",
        "-c",
        f"unix_socket_directories={folder}",
        user=server_user(),
        cwd="/",
    )
    wait_for(lambda: b"ready" in (folder / "data" / "postmaster.pid").read_bytes())
    said = run_again(sandbox, file)
    assert f"stopped the server and removed what a killed pgstrata left: {folder}" in said
    assert server.wait(timeout=10) == 0
    assert not folder.exists()


def embedded(program):
    from pgstrata.app.machine import open_machine
    from pgstrata.model.experiment import ServerKind, ServerSpec

    with open_machine(print) as machine:
        return machine.servers.resolve(ServerSpec(kind=ServerKind.EMBEDDED)).program(program)


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def test_the_clone_of_a_living_pgstrata_is_left_alone(sandbox, file, clones, started):
    other = started(sys.executable, "-c", "import time; time.sleep(120)")
    folder = clones("b01-living", this_owner(other.pid))
    said = run_again(sandbox, file)
    assert str(folder) not in said
    assert (folder / "data" / "precious").exists()


def this_owner(pid):
    started = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return {"pid": pid, "started": started, "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip()}


def test_a_process_id_that_was_given_to_another_program_since_is_not_touched(sandbox, file, clones, started):
    foreign = started("sleep", "120")
    folder = clones("b01-reused", DEAD, pid_file=foreign.pid)
    said = run_again(sandbox, file)
    assert f"removed what a killed pgstrata left: {folder}" in said
    assert "stopped the server" not in said
    assert foreign.poll() is None
    assert not folder.exists()


def test_the_marker_of_an_earlier_process_of_the_same_id_counts_as_dead(sandbox, file, clones, started):
    other = started("sleep", "120")
    folder = clones("b01-older", {**this_owner(other.pid), "started": 1})
    run_again(sandbox, file)
    assert not folder.exists()
    assert other.poll() is None


@pytest.mark.parametrize("marker", [None, "{", '{"program": "another"}'])
def test_a_folder_without_a_readable_marker_is_named_and_left_alone(sandbox, file, clones, marker):
    folder = clones("somebody's")
    if marker is not None:
        (folder / "pgstrata.marker").write_text(marker)
    stray = folder.parent.parent / "notes.txt"
    stray.write_text("mine")
    foreign = sandbox.root / "data" / "datasets" / "mine.partial"
    (foreign / "data").mkdir(parents=True)
    give_to_server_user(sandbox.root / "data")
    try:
        said = run_again(sandbox, file)
        assert f"left alone, because it has no pgstrata.marker: {folder}" in said
        assert f"left alone, because it has no pgstrata.marker: {foreign}" in said
        assert (folder / "data" / "precious").exists()
        assert stray.exists()
    finally:
        shutil.rmtree(foreign)
        stray.unlink()


def test_a_dataset_without_a_marker_is_neither_used_nor_removed(sandbox, file):
    (dataset,) = (sandbox.root / "data" / "datasets").glob("pgbench-s1-*")
    marker = dataset / "pgstrata.marker"
    marker.rename(sandbox.root / "aside")
    try:
        done = sandbox.pgstrata("run", file, "--study", sandbox.root / "study-again")
        assert done.returncode == 4
        assert f"{dataset}: this folder has no readable pgstrata.marker" in done.stderr
        assert (dataset / "data").is_dir()
    finally:
        (sandbox.root / "aside").rename(marker)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whichever_signal_ends_it_and_however_often_everything_is_taken_down(sandbox, file, number):
    study = sandbox.root / "study-signalled"
    process = sandbox.start(
        "run", sandbox.file(EXPERIMENT.replace('"1s"', '"5s"'), "signalled.toml"), "--study", study, "--events"
    )
    for line in process.stdout:
        if '"text": "measure"' in line:
            break
    process.send_signal(number)
    for _ in range(40):
        time.sleep(0.01)
        process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "0 of 2 runs are kept" in said
    assert "still cleaning up" in said
    assert "Traceback" not in said
    assert not sandbox.processes()
    assert not sandbox.clones()


def test_a_reader_that_goes_away_ends_it_cleanly_and_finished_runs_are_kept(sandbox, file):
    study = sandbox.root / "study-unread"
    words = sandbox.command("run", file, "--study", study, "--events")
    process = subprocess.Popen(
        words, cwd=sandbox.root, env=sandbox.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for line in process.stdout:
        if '"run_finished"' in line:
            break
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 130
    assert "the reader of the progress has gone" in said
    assert "same command" in said
    assert len(sandbox.records(study)) == 1
    assert all(record["failure"] is None for record in sandbox.records(study).values())
    assert not sandbox.processes()
    assert not sandbox.clones()
    assert sandbox.pgstrata("run", file, "--study", study).returncode == 0
    assert len(sandbox.records(study)) == 2
