"""Studies on disk as the loop leaves them, from values that a test makes up."""

import json
import math
from dataclasses import replace

import records
from pgstrata.app.question import load_plan
from pgstrata.model.metrics import Measurement
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.ports.store import FinishedRun
from pgstrata.store.study import StudyStore


def ask_reads(*servers, blocks, question="?", more=""):
    """An experiment file: runs of a second that only read, on each of the servers; `more` are further keys."""
    return f"""
question = "{question}"
blocks = {blocks}
{more}
[factors]
server = {json.dumps(servers)}
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
"""


def noise_of(run):
    """A factor near one, the same each time; it differs between blocks and between environments."""
    return math.exp(0.004 * math.sin(7 * run.block + sum(map(ord, run.environment))))


def make_record(run, values):
    """A run that measured these values by metric."""
    return RunRecord(
        identity=run.identity,
        block=run.block,
        environment=run.environment,
        cell=run.cell,
        status=RunStatus.COMPLETED,
        validity=Validity.VALID,
        reasons=(),
        started="2026-01-01T00:00:00+00:00",
        measured_seconds=1.0,
        measurements=tuple(Measurement(metric=name, value=value) for name, value in values.items()),
    )


def make_header(run, plan):
    return records.make_header(run, plan=plan.identity, client_cpu=0.1, door_pids=(1, 2))


def write_study(place, question, measure, more=None):
    """Make place/study of the experiment `question`; its plan. measure(plan, run) gives values by metric, or None.

    None is a missing run. `more`, given a run, has further fields of its record.
    """
    (place / "ask.toml").write_text(question)
    plan = load_plan(place / "ask.toml")
    with StudyStore.create(place / "study", plan, "0.1.0") as store:
        for run in plan.runs:
            values = measure(plan, run)
            if values is not None:
                evidence = store.begin(run.identity)
                evidence.keep("pgbench.out", b"")
                header = make_header(run, plan)
                record = replace(make_record(run, values), **(more(run) if more else {}))
                store.commit(FinishedRun(evidence=evidence, header=header, record=record))
    return plan
