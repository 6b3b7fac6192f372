"""An experiment file whose floor is measured, and runs of it as if they had been."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import records
from pgstrata.model.metrics import Measurement
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.ports.store import FinishedRun
from pgstrata.workloads import builtin_workloads

WORKLOADS = builtin_workloads()
FILE = """
question = "?"
baseline = { server = "18" }
blocks = 4
budget = "30s"
controls = ["same"]
seed = 7
[factors]
server = ["16", "18"]
[common.settings]
work_mem = "8MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
[[cells]]
workload = "simple-update"
scale = 1
clients = 2
run = "1s"
"""


def finish(store, run, tps, **more):
    header = records.make_header(
        run, plan=store.plan.identity, started=f"2026-01-01T00:{run.block:02d}:00+00:00", door_pids=(1,), version="0"
    )
    fields = {
        "identity": run.identity,
        "block": run.block,
        "environment": run.environment,
        "cell": run.cell,
        "status": RunStatus.COMPLETED,
        "validity": Validity.VALID,
        "reasons": (),
        "started": header.started,
        "measured_seconds": 1.0,
        "measurements": (Measurement(metric="tps", value=tps),),
    }
    return FinishedRun(evidence=store.begin(run.identity), header=header, record=RunRecord(**{**fields, **more}))


def fresh(records):
    """As if it had been measured a moment ago."""
    now = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    return tuple(replace(record, measured=now) for record in records)
