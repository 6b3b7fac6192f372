"""Servers that take turns: persistent clients paused and resumed, counted by slice, all on real PostgreSQL."""

import json
import math
import os
import signal
import statistics
import time

import pytest

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

EXPERIMENT = """
question = "What does more work cost?"
blocks = 3
[[environments]]
name = "plain"
server = "embedded"
[[environments]]
name = "slow"
server = "embedded"
options.extra_work = 20000
[common.settings]
shared_buffers = "32MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
"""


@pytest.fixture(scope="module")
def measured(shared_sandbox):
    """A study that was killed in its first turns and then ended; whether the kill left something running."""
    study = shared_sandbox.root / "study-slices"
    file = shared_sandbox.file(EXPERIMENT, "slices.toml")
    process = shared_sandbox.start("run", file, "--study", study, "--events")
    try:
        for line in process.stdout:
            if "round " in line:
                break
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    deadline = time.monotonic() + 20
    while (left := shared_sandbox.wait_for_silence()) and time.monotonic() < deadline:
        time.sleep(0.2)
    done = shared_sandbox.pgstrata("run", file, "--study", study)
    assert done.returncode == 0, done.stdout + done.stderr
    return shared_sandbox, study, left


def test_all_environments_of_a_block_share_its_rounds(measured):
    from pgstrata.store.load import load_study

    _, study, _ = measured
    runs = load_study(study, series=True).runs
    assert len(runs) == 6
    for block in (1, 2, 3):
        together = [run for run in runs if run.block == block]
        assert len({run.together for run in together}) == 1
        lengths = {len(run.rounds()) for run in together}
        assert len(lengths) == 1
        assert lengths.pop() >= 4
    assert len({run.together for run in runs}) == 3


def test_a_load_with_more_work_is_slower_in_its_rounds_and_by_cpu(measured):
    from pgstrata.store.load import load_study

    _, study, _ = measured
    runs = {(run.block, run.environment): run for run in load_study(study, series=True).runs}
    pairs = [(runs[block, "plain"], runs[block, "slow"]) for block in (1, 2, 3)]
    ratios = [math.log(b / a) for plain, slow in pairs for a, b in zip(plain.rounds(), slow.rounds(), strict=True)]
    assert statistics.median(ratios) < math.log(0.95)

    # one block of three may meet a busy machine
    def middle(of):
        return statistics.median(of(plain, slow) for plain, slow in pairs)

    assert middle(lambda plain, slow: slow.value("server_cpu_per_tx") / plain.value("server_cpu_per_tx")) > 1.1
    assert middle(lambda plain, slow: slow.value("latency_p50") / plain.value("latency_p50")) > 1
    assert all(slow.value("client_cpu_per_tx") > 0 for _, slow in pairs)
    # the absolute figure comes from a stretch without any log, the slices from the full one
    assert 0.3 < middle(lambda plain, _: statistics.median(plain.rounds()) / plain.value("tps")) < 2


def test_the_evidence_holds_counts_instead_of_the_whole_log(measured):
    _, study, _ = measured
    folder = study / "evidence/b01/plain/select-only-s1-c2"
    names = {path.name for path in folder.iterdir()}
    assert {"slices.txt", "slices.marks", "pgbench.out", "stretch.pgbench.out", "run.json"} <= names
    assert "transactions.log.gz" not in names
    assert sum(path.stat().st_size for path in folder.iterdir() if path.name.startswith("slices")) < 100_000
    header = json.loads((folder / "run.json").read_text())
    assert header["client_pid"]
    # the other server, and its clients: one process for each CPU that has sessions
    assert len(header["resident_pids"]) == 1 + len(header["other_client_pids"]) + 1


def test_reparse_gives_the_same_rounds(measured):
    from pgstrata.store.load import load_study

    sandbox, study, _ = measured
    before = load_study(study, series=True).runs
    assert sandbox.pgstrata("reparse", study).returncode == 0
    after = load_study(study, series=True).runs
    assert {run.identity: run.rounds() for run in before} == {run.identity: run.rounds() for run in after}
    assert {run.identity: run.together for run in before} == {run.identity: run.together for run in after}


def test_a_kill_in_the_middle_of_the_turns_leaves_no_paused_client_and_costs_no_run(measured):
    sandbox, study, left = measured
    assert not left
    assert len(sandbox.records(study)) == 6
    assert {record["failure"] for record in sandbox.records(study).values()} == {None}


def test_nothing_stays_paused_or_running(measured):
    sandbox, _, _ = measured
    assert not sandbox.wait_for_silence()
    assert not sandbox.clones()


def test_environments_take_turns_through_one_shell(sandbox):
    from pgstrata.store.load import load_study

    study = sandbox.root / "study-turns-shell"
    text = EXPERIMENT.replace("blocks = 3", "blocks = 1")
    file = sandbox.file(text, "shell.toml")
    done = sandbox.pgstrata("run", file, "--study", study, environ={"PGSTRATA_TRANSPORT": "shell"})
    assert done.returncode == 0, done.stdout + done.stderr
    plain, slow = sorted(load_study(study, series=True).runs, key=lambda run: run.environment)
    assert (plain.environment, slow.environment) == ("plain", "slow")
    assert plain.together == slow.together != ""
    assert len(plain.rounds()) == len(slow.rounds()) >= 4
    assert statistics.median(slow.rounds()) < statistics.median(plain.rounds())
    assert slow.value("server_cpu_per_tx") > 1.1 * plain.value("server_cpu_per_tx")
    assert not sandbox.wait_for_silence()
    assert not sandbox.clones()
