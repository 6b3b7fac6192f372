"""Faults of a study's folder while it is being measured, budgets that are too small, and what the user's shell holds."""

import os
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing

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


def experiment(sandbox, run="1s"):
    return sandbox.file(EXPERIMENT.replace('"1s"', f'"{run}"'), "faults.toml")


def wait_for_line(process, sign):
    for line in process.stdout:
        if sign in line:
            return
    raise AssertionError(f"{sign} was never said")


def ended(process):
    said, _ = process.communicate(timeout=120)
    assert "Traceback" not in said
    return said


def test_a_catalogue_that_another_program_locks_loses_nothing(sandbox):
    study = sandbox.root / "study-locked"
    file = experiment(sandbox)
    process = sandbox.start("run", file, "--study", study, "--events")
    wait_for_line(process, '"text": "measure"')
    with closing(sqlite3.connect(study / "catalogue.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        said = ended(process)
    assert process.returncode == 1
    assert f"{study}/catalogue.sqlite: the catalogue is locked by another program" in said
    assert "start the same command again" in said
    kept = sandbox.records(study)
    assert len(kept) == 1
    assert all(record["failure"] is None for record in kept.values())
    assert not sandbox.wait_for_silence()
    assert not sandbox.clones()
    done = sandbox.pgstrata("run", file, "--study", study)
    assert done.returncode == 0, done.stderr
    assert "done: 2 of 2 runs" in done.stdout
    assert kept.items() <= sandbox.records(study).items()
    assert "2 runs derived anew" in sandbox.pgstrata("reparse", study).stdout


@pytest.mark.parametrize("moved", [False, True])
def test_a_study_that_is_removed_or_moved_meanwhile_is_not_made_anew(sandbox, moved):
    study = sandbox.root / "study-removed"
    process = sandbox.start("run", experiment(sandbox), "--study", study, "--events")
    wait_for_line(process, '"text": "measure"')
    if moved:
        study.rename(sandbox.root / "study-elsewhere")
    else:
        shutil.rmtree(study)
    said = ended(process)
    assert process.returncode == 1
    assert f"{study}: the study's folder was removed or moved while it was being measured" in said
    assert not study.exists()
    assert not sandbox.wait_for_silence()
    assert not sandbox.clones()


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_study_that_may_not_be_written_is_refused_and_can_be_shown(sandbox):
    study = sandbox.root / "study-read-only"
    file = experiment(sandbox)
    assert sandbox.pgstrata("run", file, "--study", study, "--budget", "1s").returncode == 0
    study.chmod(0o555)
    try:
        done = sandbox.pgstrata("run", file, "--study", study)
        assert done.returncode == 1
        assert f"{study}: the study cannot be written" in done.stderr
        assert sandbox.pgstrata("show", study).returncode == 0
    finally:
        study.chmod(0o755)
    assert sandbox.pgstrata("run", file, "--study", study).returncode == 0


def test_a_budget_below_one_block_measures_nothing_and_says_what_it_takes(sandbox):
    study = sandbox.root / "study-tiny"
    file = experiment(sandbox, run="60s")
    done = sandbox.pgstrata("run", file, "--study", study, "--budget", "5s")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"nothing was measured: the budget.* is less than a block, which needs 2\W?m", done.stdout)
    assert f"pgstrata run {file} --study {study} --budget TIME" in done.stdout
    assert not sandbox.records(study)


MISLEADING = {
    "PGOPTIONS": "-c work_mem=123MB -c enable_indexscan=off",
    "PGSSLMODE": "require",
    "PGPORT": "1",
    "PGHOST": "nowhere.invalid",
    "PGDATABASE": "nothing",
    "PGUSER": "nobody-at-all",
    "PGSERVICE": "there-is-no-such-service",
    "PGDATA": "/nowhere",
    "PGTZ": "Asia/Tokyo",
}


@pytest.mark.parametrize("transport", ["local", "shell"])
def test_what_the_users_environment_says_of_postgresql_reaches_no_server_of_ours(sandbox, transport):
    study = sandbox.root / "study-environment"
    connections = '[factors]\nconnection = ["socket", "tcp"]\n[common]'
    text = EXPERIMENT.replace('controls = ["same"]\n', "").replace("[common]", connections)
    file = sandbox.file(text, "misleading.toml")
    done = sandbox.pgstrata("run", file, "--study", study, environ={**MISLEADING, "PGSTRATA_TRANSPORT": transport})
    assert done.returncode == 0, done.stdout + done.stderr
    records = sandbox.records(study)
    assert sorted(record["facts"]["connection.kind"] for record in records.values()) == ["socket", "tcp"]
    settings = list(study.glob("evidence/b01/*/*/settings.tsv"))
    assert len(settings) == len(records)
    for path in settings:
        rows = dict(line.split("\t")[:2] for line in path.read_text().splitlines())
        assert (rows["work_mem"], rows["enable_indexscan"], rows["TimeZone"]) == ("4096", "on", "GMT")


@pytest.mark.root
@pytest.mark.company
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("transport", ["local", "shell"])
def test_nor_where_servers_run_as_the_user_themself(sandbox, transport, nobody):
    study = nobody.root / "study-environment"
    file = experiment(nobody)
    done = nobody.pgstrata("run", file, "--study", study, environ={**MISLEADING, "PGSTRATA_TRANSPORT": transport})
    assert done.returncode == 0, done.stdout + done.stderr
    settings = next(study.glob("evidence/b01/*/*/settings.tsv")).read_text()
    rows = dict(line.split("\t")[:2] for line in settings.splitlines())
    assert (rows["work_mem"], rows["enable_indexscan"], rows["TimeZone"]) == ("4096", "on", "GMT")
    shutil.rmtree(study)


@pytest.fixture(scope="module")
def nobody(shared_sandbox):
    """A sandbox in which everything is done as an ordinary user."""
    import sys

    from pgstrata.app.places import find_machine_places

    switch = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
    if subprocess.run([*switch, sys.executable, "-c", "import pgstrata"], capture_output=True, cwd="/").returncode:
        pytest.skip("the user nobody cannot start this Python")
    root = shared_sandbox.root / "of-nobody"
    (root / "cache").mkdir(parents=True)
    for name in ("servers", "libraries"):
        (root / "cache" / name).symlink_to(f"{find_machine_places().cache}/{name}")
    subprocess.run(["chown", "-hR", "nobody:nogroup", root], check=True)
    names = {f"PGSTRATA_{name}": str(root / name.lower()) for name in ("CACHE", "STATE", "DATA", "RUN", "LOCK")}
    environ = {**shared_sandbox.environ, **names, "HOME": str(root)}

    class Nobody(type(shared_sandbox)):
        def pgstrata(self, *arguments, environ):
            words = [*switch, sys.executable, "-m", "pgstrata", *map(str, arguments)]
            return subprocess.run(
                words, cwd=self.root, capture_output=True, text=True, timeout=240, env={**self.environ, **environ}
            )

    return Nobody(root=root, environ=environ)


def test_environments_that_are_up_together_are_all_measured_and_nothing_stays(sandbox, monkeypatch):
    from fake_clock import RecordingEvents
    from pgstrata.app.places import capacity_here
    from pgstrata.app.question import load_plan
    from pgstrata.app.run import run_experiment
    from pgstrata.drivers.registry import driver_capabilities
    from pgstrata.layers.server import ClusterControl
    from pgstrata.model.experiment import Interleave
    from pgstrata.plan import make_plan
    from pgstrata.store.repository import StudyFolder
    from pgstrata.workloads import builtin_workloads

    monkeypatch.setenv("PGSTRATA_DATA", str(sandbox.root / "data"))
    study = sandbox.root / "study-together"
    text = EXPERIMENT.replace('controls = ["same"]', "").replace("rate = 50\n", "")
    file = sandbox.file(text + '[factors]\n"settings.shared_buffers" = ["32MB", "64MB"]\n', "together.toml")
    experiment = load_plan(file).experiment
    plan = make_plan(
        experiment, builtin_workloads(), capacity_here(), drivers=driver_capabilities(), interleave=Interleave.SLICES
    )
    seen = []
    alive = ClusterControl.alive

    def counting(self, server):
        seen.append(len([pid for pid in sandbox.processes() if b"-D" in command_line(pid)]))
        return alive(self, server)

    monkeypatch.setattr(ClusterControl, "alive", counting)
    outcome = run_experiment(plan, StudyFolder(study), RecordingEvents())
    assert (outcome.done, outcome.total) == (2, 2)
    assert {record["failure"] for record in sandbox.records(study).values()} == {None}
    assert max(seen) == 2
    assert not sandbox.wait_for_silence()
    assert not sandbox.clones()


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""
