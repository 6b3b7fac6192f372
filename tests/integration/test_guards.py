"""Lies made for real: each guard that claims to be provoked is provoked here, or beside (`test_experiment`)."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from pgstrata.app.answer import load_answer
from pgstrata.model.guards import MUCH_BACKGROUND_LOAD
from pgstrata.model.runs import RunStatus, Validity
from pgstrata.report.sentences.findings import say_doubt
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

HEAD = """
question = "?"
blocks = {blocks}
interleave = "runs"
seed = 1
"""


def watch(sandbox, name, text, at=lambda _event, _process: None):
    """Run an experiment and show each event to `at` as it comes; study, exit code, and what else was printed."""
    study = sandbox.root / f"study-{name}"
    process = sandbox.start("run", sandbox.file(text, f"{name}.toml"), "--study", study, "--events")
    said = []
    try:
        for line in process.stdout:
            if line.startswith("{"):
                at(json.loads(line), process)
            else:
                said.append(line)
        process.wait(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()
    return study, process.returncode, "".join(said)


def stop_after(runs):
    """Interrupt once so many runs are finished."""
    seen = []

    def at(event, process):
        if event["kind"] == "run_finished":
            seen.append(event)
            if len(seen) == runs:
                process.send_signal(signal.SIGINT)

    return at


def reasons_of(run):
    return {reason.code: say_reason(reason) for reason in run.reasons}


def doubts_of(study):
    """Warnings of the comparisons of the primary metric, by code."""
    return {
        warning.code: say_doubt(warning)
        for found in load_answer(StudyFolder(study)).comparisons
        if found.metric == "tps"
        for warning in found.warnings
    }


@pytest.fixture
def hogs():
    """Processes that use one CPU each, until the test ends."""
    started = []

    def start():
        started.extend(subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1))

    def end():
        for process in started:
            process.kill()
            process.wait()
        started.clear()

    yield start, end
    end()


@pytest.mark.alone
def test_a_cpu_hog_beside_a_run(sandbox, hogs, observed):
    start, end = hogs
    text = (
        HEAD.format(blocks=1)
        + """
controls = ["same"]
[common]
server = "embedded"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "3s"
warmup = "0s"
"""
    )

    measured = []

    def at(event, _process):
        if event["kind"] == "step" and event["text"] == "measure":
            measured.append(event["run"])
            if len(measured) == 1:
                start()
        elif event["kind"] == "run_finished":
            end()

    study, code, said = watch(sandbox, "hog", text, at)
    assert code == 0, said
    runs = {run.identity: run for run in load_study(study).runs}
    hogged, other = (runs[identity] for identity in measured)
    assert hogged.validity is Validity.SUSPECT
    observed("foreign_cpu", reasons_of(hogged)["foreign_cpu"])
    if hogged.value("neighbour_share") - other.value("neighbour_share") <= MUCH_BACKGROUND_LOAD:
        pytest.skip("somebody else uses this machine's CPUs: one hog more makes no difference")
    assert hogged.value("tps") < other.value("tps")
    observed("neighbours_differ", doubts_of(study)["neighbours_differ"])
    (comparison,) = [
        found for found in load_answer(StudyFolder(study)).comparisons if found.metric == "tps" and found.cell != "all"
    ]
    assert comparison.blocks == 1


def wants_cpus(run):
    """Whether others had so much of the CPUs that a client could not come to its own limit."""
    return run.value("neighbour_share") > 0.1 or "steal" in reasons_of(run)


@pytest.mark.alone
def test_a_client_at_its_limit_and_transactions_that_fail(sandbox, observed):
    sandbox.file("\\set x random(1, 1000000)\n" * 16000 + "SELECT 1;\n", "heavy.sql")
    sandbox.file(
        "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT bbalance FROM pgbench_branches WHERE bid = 1;\n"
        "UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\nEND;\n",
        "conflict.sql",
    )
    cells = """
controls = ["same"]
[common]
server = "embedded"
[[cells]]
scripts = [{ file = "heavy.sql" }]
scale = 1
clients = 4
threads = 1
run = "3s"
warmup = "0s"
[[cells]]
scripts = [{ file = "conflict.sql" }]
scale = 1
clients = 6
run = "2s"
warmup = "0s"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
rate = 1000000
run = "7s"
warmup = "0s"
"""
    study, code, said = watch(sandbox, "client", HEAD.format(blocks=1) + cells, stop_after(3))
    assert code == 130, said
    runs = load_study(study).runs
    found = {code: (run, text) for run in runs for code, text in reasons_of(run).items()}
    for code in ("failed_transactions", "rate_not_kept"):
        observed(code, found[code][1])
    assert found["failed_transactions"][0].validity is Validity.INVALID
    late = found["rate_not_kept"][0]
    assert late.status is RunStatus.COLLAPSED or late.value("neighbour_share") > MUCH_BACKGROUND_LOAD
    assert late.value("latency_mean") is None
    # `plan.experiment.cells` is in the order of the file
    heavy = load_study(study).plan.experiment.cells[0].identity
    of_script = [run for run in runs if run.cell == heavy]
    told = [run for run in of_script if "client_saturated" in reasons_of(run)]
    if of_script and not told and all(map(wants_cpus, of_script)):
        pytest.skip("somebody else used this machine's CPUs during those very runs")
    assert told, [(run.identity, reasons_of(run), run.measurements) for run in of_script]
    assert told[-1].validity is Validity.INVALID
    observed("client_saturated", reasons_of(told[-1])["client_saturated"])


def test_a_setting_that_did_not_take(sandbox, observed):
    sandbox.file("ALTER ROLE CURRENT_USER SET work_mem = '8MB';\n", "role.sql")
    text = (
        HEAD.format(blocks=1)
        + """
baseline = "asked"
[common]
server = "embedded"
settings.work_mem = "4MB"
[[environments]]
name = "asked"
[[environments]]
name = "overruled"
options.setup_sql = "role.sql"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
"""
    )
    study = sandbox.root / "study-setting"
    done = sandbox.pgstrata("run", sandbox.file(text, "setting.toml"), "--study", study)
    assert done.returncode == 1, done.stdout
    (line,) = [line for line in done.stderr.splitlines() if "was asked for" in line]
    assert "environment overruled" in line
    assert not sandbox.records(study)
    observed("level_not_taken", line)


def test_autovacuum_in_one_arm(sandbox, observed):
    text = (
        HEAD.format(blocks=1)
        + """
baseline = "without"
[common]
server = "embedded"
[[environments]]
name = "without"
settings.autovacuum = "off"
[[environments]]
name = "with"
settings.autovacuum = "on"
settings.autovacuum_naptime = "1s"
settings.autovacuum_vacuum_threshold = 50
settings.autovacuum_vacuum_scale_factor = 0
settings.autovacuum_vacuum_cost_delay = 0
[[cells]]
workload = "simple-update"
scale = 1
clients = 2
rate = 200
run = "4s"
warmup = "0s"
"""
    )
    study, code, said = watch(sandbox, "vacuum", text)
    assert code == 0, said
    runs = {run.environment: run for run in load_study(study).runs}
    assert runs["with"].value("autovacuums") >= 1
    assert runs["without"].value("autovacuums") == 0
    observed("autovacuums_differ", doubts_of(study)["autovacuums_differ"])


def ask(running_server, statement):
    subprocess.run(
        [running_server["psql"], "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement, running_server["dsn"]],
        check=True,
        capture_output=True,
    )


def test_a_checkpoint_in_one_arm_and_a_server_that_was_changed_under_way(sandbox, running_server, observed):
    text = (
        HEAD.format(blocks=3)
        + f"""
baseline = "left"
[[environments]]
name = "left"
server = "dsn:{running_server["dsn"]}"
[[environments]]
name = "right"
server = "dsn:{running_server["dsn"]} sslmode=disable"
[[cells]]
workload = "simple-update"
scale = 1
clients = 2
rate = 100
run = "3s"
warmup = "0s"
"""
    )

    def at(event, process):
        match event["kind"], event.get("text", ""):
            case "step", "measure" if event["run"].startswith("b01/left/"):
                time.sleep(0.5)
                ask(running_server, "CHECKPOINT")
            case "block_finished", "1":
                ask(running_server, "ALTER SYSTEM SET work_mem = '8MB'")
                ask(running_server, "SELECT pg_reload_conf()")
            # the next run may have looked at the settings before they were changed
            case "run_finished", _ if event["validity"] == Validity.INVALID:
                process.send_signal(signal.SIGINT)

    try:
        study, code, said = watch(sandbox, "changed", text, at)
        assert code == 130, said
        runs = {run.identity: run for run in load_study(study).runs}
        counts = {name: runs[f"b01/{name}/simple-update-s1-c2-r100"].value("checkpoints") for name in ("left", "right")}
        assert counts == {"left": 1, "right": 0}
        observed("checkpoints_differ", doubts_of(study)["checkpoints_differ"])
        changed = [run for run in runs.values() if "fingerprint_changed" in reasons_of(run)]
        assert changed
        assert all(run.validity is Validity.INVALID and run.block > 1 for run in changed)
        observed("fingerprint_changed", reasons_of(changed[0])["fingerprint_changed"])
        # whose runs were under way when the server was changed is drawn
        observed("imbalance", doubts_of(study)["imbalance"].replace("runs of left", "runs of right"))
        again = sandbox.pgstrata("run", sandbox.root / "changed.toml", "--study", study)
        assert again.returncode == 4, again.stdout
        (line,) = [line for line in again.stderr.splitlines() if "has changed since its first run" in line]
        observed("environment_changed", line.replace("environment right", "environment left"))
    finally:
        ask(running_server, "ALTER SYSTEM RESET work_mem")
        ask(running_server, "SELECT pg_reload_conf()")
