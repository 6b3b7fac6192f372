"""Whole experiments on real servers, as a user gives them."""

import json
import os
import signal
import subprocess
import time

import pytest

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

ONE = """
question = "?"
blocks = {blocks}
controls = ["same"]
[common]
server = "embedded"
{common}
[[cells]]
workload = "simple-update"
scale = 1
clients = 2
rate = 50
run = "{run}"
warmup = "0s"
"""


def test_a_whole_experiment_goes_through_one_shell_and_tells_every_run_in_lines_of_json(sandbox):
    study = sandbox.root / "study-shell"
    file = sandbox.file(ONE.format(blocks=1, run="1s", common=""))
    done = sandbox.pgstrata("run", file, "--study", study, "--events", environ={"PGSTRATA_TRANSPORT": "shell"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(sandbox.records(study)) == 2
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"study_started", "run_finished", "block_finished", "study_finished"} <= {event["kind"] for event in events}
    assert sum(event["kind"] == "run_finished" for event in events) == 2
    assert not sandbox.wait_for_silence()


def test_try_writes_the_file_says_where_and_runs_it(sandbox):
    done = sandbox.pgstrata("try", "work_mem=1MB,4MB", "--workload", "select-only", "--scale", 1, "--clients", 2, "--run", "1s",
                            "--blocks", 1, "-o", "tried.toml", "--study", "study-try")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "experiment file: tried.toml" in done.stdout
    assert "done: 2 of 2 runs" in done.stdout
    records = sandbox.records(sandbox.root / "study-try")
    assert sorted(record["facts"]["asked.work_mem"] for record in records.values()) == ["1024", "4096"]


def test_a_budget_that_holds_no_block_measures_none_and_a_new_one_goes_on(sandbox):
    study = sandbox.root / "study-small-budget"
    file = sandbox.file(ONE.format(blocks=1, run="1s", common=""))
    done = sandbox.pgstrata("run", file, "--study", study, "--budget", "1s")
    assert "with more than that" in " ".join(done.stdout.split())
    assert not sandbox.records(study)
    sandbox.pgstrata("run", file, "--study", study, "--budget", "10m")
    assert len(sandbox.records(study)) == 2


@pytest.mark.soak("answers")
def test_the_budget_is_kept_and_a_new_one_goes_on(sandbox):
    study = sandbox.root / "study-budget"
    file = sandbox.file(ONE.format(blocks=24, run="1s", common=""))
    begun = time.monotonic()
    done = sandbox.pgstrata("run", file, "--study", study, "--budget", "25s")
    assert time.monotonic() - begun < 60
    assert "the budget is spent" in done.stdout
    first = len(sandbox.records(study))
    assert first % 2 == 0
    sandbox.pgstrata("run", file, "--study", study, "--budget", "25s")
    assert len(sandbox.records(study)) > first


def test_a_running_server_is_used_in_marked_databases_only_and_left_running(sandbox, running_server):
    study = sandbox.root / "study-dsn"
    file = sandbox.file(
        f"""
question = "?"
blocks = 1
[factors]
server = ["dsn:{running_server["dsn"]}", "dsn:{running_server["dsn"]} sslmode=disable"]
[[cells]]
workload = "select-only"
scale = 1
clients = 2
rate = 50
run = "1s"
warmup = "0s"
"""
    )
    done = sandbox.pgstrata("run", file, "--study", study)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(sandbox.records(study)) == 2
    os.kill(running_server["pid"], 0)
    names = ask(running_server, "SELECT datname FROM pg_database WHERE NOT datistemplate AND datname <> 'postgres'")
    assert names == "pgstrata_pgbench_s1_plain"
    assert sandbox.pgstrata("report", study).returncode == 0
    assert canary_nowhere(sandbox, study, done)


def test_a_database_without_the_marker_is_never_touched(sandbox, running_server):
    ask(running_server, "CREATE DATABASE pgstrata_pgbench_s2_plain")
    file = sandbox.file(
        f"""
question = "?"
blocks = 1
controls = ["same"]
[common]
server = "dsn:{running_server["dsn"]}"
[[cells]]
workload = "select-only"
scale = 2
clients = 2
run = "1s"
"""
    )
    done = sandbox.pgstrata("run", file, "--study", sandbox.root / "study-unmarked")
    assert done.returncode == 4
    assert "pgstrata_pgbench_s2_plain" in done.stderr
    assert "not touched" in done.stderr
    assert ask(running_server, "SELECT count(*) FROM pg_database WHERE datname = 'pgstrata_pgbench_s2_plain'") == "1"
    ask(running_server, "DROP DATABASE pgstrata_pgbench_s2_plain")


def test_a_wrong_password_is_explained_without_showing_it(sandbox, running_server):
    dsn = running_server["dsn"].replace("canary-pw-7391", "wrong-canary-pw-7391")
    done = sandbox.pgstrata("try", f"server=dsn:{dsn},dsn:{dsn} sslmode=disable", "--scale", 1, "--blocks", 1, "--run", "1s",
                            "-o", "wrong.toml", "--study", sandbox.root / "study-wrong")  # fmt: skip
    assert done.returncode == 1
    assert "password" in done.stderr
    assert "pg_hba.conf" in done.stderr
    assert canary_nowhere(sandbox, sandbox.root / "study-wrong", done)
    assert "canary" not in (sandbox.root / "wrong.toml").read_text()


def ask(running_server, statement):
    """One statement to the running server."""
    done = subprocess.run(
        [running_server["psql"], "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement, running_server["dsn"]],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def canary_nowhere(sandbox, study, done):
    """Whether the password is in no file of the study and in nothing that was printed."""
    found = [path for path in study.rglob("*") if path.is_file() and b"canary-pw" in path.read_bytes()]
    return not found and "canary-pw" not in done.stdout + done.stderr


def test_custom_scripts_run_with_their_weights(sandbox):
    sandbox.file(
        "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n", "one.sql"
    )
    sandbox.file("SELECT 1;\n", "two.sql")
    study = sandbox.root / "study-custom"
    file = sandbox.file(
        ONE.format(blocks=1, run="1s", common="").replace(
            'workload = "simple-update"',
            'scripts = [{ file = "one.sql", weight = 3 }, { file = "two.sql", weight = 1 }]',
        )
    )
    done = sandbox.pgstrata("run", file, "--study", study)
    assert done.returncode == 0, done.stdout + done.stderr
    output = next(study.glob("evidence/b01/*/*/pgbench.out")).read_text()
    assert "weight: 3" in output


def test_a_script_with_an_error_is_found_before_anything_is_measured(sandbox, observed):
    sandbox.file("SELEKT 1;\n", "bad.sql")
    text = ONE.format(blocks=3, run="1s", common="").replace("rate = 50\n", "")
    file = sandbox.file(text.replace('workload = "simple-update"', 'scripts = [{ file = "bad.sql" }]'))
    study = sandbox.root / "study-bad"
    done = sandbox.pgstrata("run", file, "--study", study)
    assert done.returncode == 1
    assert "bad.sql" in done.stderr
    assert "SELEKT" in done.stderr
    assert not sandbox.records(study)
    observed("script_failed", done.stderr.splitlines()[0])


def test_an_unknown_setting_shows_the_end_of_the_servers_log(sandbox):
    file = sandbox.file(ONE.format(blocks=1, run="1s", common="[common.settings]\nshared_bufers = '1GB'"))
    done = sandbox.pgstrata("run", file, "--study", sandbox.root / "study-setting")
    assert done.returncode == 1
    assert 'unrecognized configuration parameter "shared_bufers"' in done.stderr
    assert not sandbox.clones()


def test_ctrl_c_ends_cleanly_and_the_same_command_resumes(sandbox):
    study = sandbox.root / "study-ctrlc"
    file = sandbox.file(ONE.format(blocks=2, run="1s", common=""))
    process = sandbox.start("run", file, "--study", study)
    for line in process.stdout:
        if line.startswith("[2/4]"):
            break
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130, out
    assert "of 4 runs are kept" in out
    assert "same command" in out
    assert not sandbox.processes()
    assert not sandbox.clones()
    kept = sandbox.records(study)
    assert len(kept) >= 2
    assert sandbox.pgstrata("run", file, "--study", study).returncode == 0
    assert len(sandbox.records(study)) == 4
    assert kept.items() <= sandbox.records(study).items()


def test_a_server_killed_in_the_middle_of_a_run_is_recorded_and_kept_out(sandbox, observed):
    study = sandbox.root / "study-killed"
    file = sandbox.file(ONE.format(blocks=1, run="3s", common=""))
    process = sandbox.start("run", file, "--study", study, "--events")
    for line in process.stdout:
        if '"text": "measure"' in line:
            break
    time.sleep(1)
    (postmaster,) = [pid for pid in sandbox.processes() if _is_postmaster(pid)]
    os.kill(postmaster, signal.SIGKILL)
    process.communicate(timeout=120)
    assert process.returncode == 0
    statuses = sorted((record["failure_kind"], name) for name, record in sandbox.records(study).items())
    assert [kind for kind, _ in statuses] == ["", "failed"]
    observed("failed", _reason(study, "failed"), loose=True)
    shown = sandbox.pgstrata("show", study).stdout
    assert "failed" in shown
    assert not sandbox.wait_for_silence()


def _reason(study, code):
    """What is said of a run of a study for that code."""
    from pgstrata.report.sentences.reasons import say_reason
    from pgstrata.store.load import load_study

    return next(say_reason(reason) for run in load_study(study).runs for reason in run.reasons if reason.code == code)


def _is_postmaster(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return b"-D" in file.read().split(b"\0")


def test_running_out_of_shared_memory_at_a_load_is_a_collapse_and_the_other_environment_goes_on(sandbox, observed):
    study = sandbox.root / "study-collapse"
    file = sandbox.file(
        """
question = "?"
blocks = 1
baseline = "many"
[common]
server = "embedded"
settings.max_connections = 20
[[environments]]
name = "many"
settings.max_locks_per_transaction = 2000
[[environments]]
name = "few"
settings.max_locks_per_transaction = 64
[[cells]]
scripts = [{ file = "locks.sql" }]
scale = 1
clients = 8
run = "1s"
warmup = "0s"
"""
    )
    sandbox.file(
        "BEGIN;\nSELECT count(pg_advisory_xact_lock(:client_id * 100000 + n)) FROM generate_series(1, 1500) n;\n"
        "SELECT pg_sleep(0.2);\nEND;\n",
        "locks.sql",
    )
    done = sandbox.pgstrata("run", file, "--study", study)
    assert done.returncode == 0, done.stdout + done.stderr
    kinds = {name.split("/")[1]: record["failure_kind"] for name, record in sandbox.records(study).items()}
    assert kinds == {"many": "", "few": "collapsed"}
    observed("collapsed", _reason(study, "collapsed"), loose=True)


def test_a_second_pgstrata_on_the_same_study_is_refused_with_the_first_ones_identity(sandbox):
    study = sandbox.root / "study-second"
    file = sandbox.file(ONE.format(blocks=2, run="2s", common=""))
    first = sandbox.start("run", file, "--study", study)
    for line in first.stdout:
        if "runs to make" in line:
            break
    second = sandbox.pgstrata("run", file, "--study", study)
    assert second.returncode in {1, 4}
    assert str(first.pid) in second.stderr
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)


@pytest.mark.soak("answers")
@pytest.mark.alone
def test_a_question_is_not_measured_beyond_its_answer(sandbox):
    text = """
question = "What does much more work cost?"
blocks = 20
interleave = "runs"
[factors]
"options.extra_work" = [0, 50000]
[common]
server = "embedded"
settings.shared_buffers = "32MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
warmup = "0s"
"""
    study = sandbox.root / "study-decided"
    done = sandbox.pgstrata("run", sandbox.file(text, "decided.toml"), "--study", study)
    assert done.returncode == 0, done.stdout + done.stderr
    # seven blocks at least; on a busy machine runs that stray are made again, and one that is invalid counts for none
    made = len(sandbox.records(study))
    assert 14 <= made < 40
    assert f"{made} of 40 runs" in done.stdout
    (headline,) = [
        found
        for found in json.loads(sandbox.pgstrata("show", study, "--json").stdout)["comparisons"]
        if found["metric"] == "tps"
    ]
    assert (headline["verdict"], headline["exploratory"]) == ("worse", False)
    assert 7 <= headline["decided_at"] < 20
    assert sandbox.pgstrata("gate", study).returncode == 1
