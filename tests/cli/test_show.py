"""`pgstrata show` on a study of three servers: pairs on request, and what only the JSON form has."""

import json
import math
import os
import subprocess
import sys

import pytest

from pgstrata.app.answer import load_answer
from pgstrata.app.question import load_plan
from pgstrata.model.metrics import LATENCY_QUANTILES, Measurement
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.ports.store import FinishedRun, RunHeader
from pgstrata.store.study import StudyStore

QUESTION = """
question = "?"
blocks = 9
controls = ["same"]
[factors]
server = ["16", "17", "18"]
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
"""
LEVELS = {"pg16": 1000.0, "pg17": 1100.0, "pg18": 1000.0}


def make_run(run):
    noise = math.exp(0.004 * math.sin(7 * run.block + sum(map(ord, run.environment))))
    tps = LEVELS.get(run.environment, 1000.0) * noise
    latencies = {name: quantile / tps for name, quantile in LATENCY_QUANTILES.items()}
    if run.environment == "pg17":
        # faster everywhere but in the tail
        latencies["latency_p99"] *= 1.5
    return RunRecord(
        identity=run.identity, block=run.block, environment=run.environment, cell=run.cell,
        status=RunStatus.COMPLETED, validity=Validity.VALID, reasons=(), started="2026-01-01T00:00:00+00:00",
        measured_seconds=1.0,
        measurements=tuple(Measurement(metric=name, value=value) for name, value in {"tps": tps, **latencies}.items()),
    )  # fmt: skip


def make_header(run, plan):
    return RunHeader(
        identity=run.identity, plan=plan.identity, block=run.block, environment=run.environment, cell=run.cell,
        started="2026-01-01T00:00:00+00:00", seconds=1.0, wall_drift=0.0, client_cpu=0.1, postmaster_pid=4,
        door_pids=(1, 2), server_version=180000, sampling_rate=None, warmup_seconds=0.0, failure="", failure_kind="",
        remarks=(), dead_time={}, facts={}, version="0.1.0",
    )  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("show")
    (place / "ask.toml").write_text(QUESTION)
    plan = load_plan(place / "ask.toml")
    with StudyStore.create(place / "study", plan, "0.1.0") as store:
        for run in plan.runs:
            evidence = store.begin(run.identity)
            evidence.keep("pgbench.out", b"")
            store.commit(FinishedRun(evidence=evidence, header=make_header(run, plan), record=make_run(run)))
    return place


def show(place, *arguments, command="show"):
    names = {f"PGSTRATA_{name}": str(place / name.lower()) for name in ("CACHE", "STATE", "DATA")}
    words = [sys.executable, "-m", "pgstrata", command, "study", *arguments]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=60, env=os.environ | names)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_pairs_are_shown_where_they_are_asked_for(place):
    text = show(place, "--pairs")
    part = text[text.index("Environments against each other: select-only") :].split("\n\n")
    rows = {line[:13]: line for line in part[1].splitlines()[2:5]}
    assert list(rows) == ["17 against 16", "18 against 16", "18 against 17"]
    assert "faster" in rows["17 against 16"]
    assert "no difference" in rows["18 against 16"]
    assert "slower" in rows["18 against 17"]
    assert "Environments against each other" not in show(place)


def test_pairs_and_the_shift_of_latency_stand_in_the_json_form(place):
    document = json.loads(show(place, "--pairs", "--json"))
    assert [(item["environment"]["name"], item["reference"]) for item in document["pairs"]] == [
        ("pg17", "pg16"),
        ("pg18", "pg16"),
        ("pg18", "pg17"),
    ]
    assert {item["exploratory"] for item in document["pairs"]} == {True}
    shift = {item["environment"]: item["quantiles"] for item in document["shift"]}
    assert [point["metric"] for point in shift["pg17"]] == list(LATENCY_QUANTILES)
    assert {point["verdict"] for point in shift["pg17"][:-1]} == {"better"}
    assert shift["pg17"][-1]["verdict"] == "worse"
    assert json.loads(show(place, "--json"))["pairs"] == []


def test_other_forms_read_no_percentile_that_they_do_not_show(place):
    answer = load_answer(place / "study")
    read = {item.metric for run in answer.study.runs for item in run.measurements}
    assert read & LATENCY_QUANTILES.keys() == {"latency_p50", "latency_p95", "latency_p99"}
    assert (answer.shifts, answer.pairs) == ((), ())


def test_the_report_has_pairs_on_request(place):
    show(place, "--pairs", command="report")
    assert "18 against 17" in (place / "study" / "report.html").read_text()
