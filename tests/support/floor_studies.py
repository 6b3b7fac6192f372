"""An experiment file whose floor is measured, and runs of it as if they had been."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pgstrata.model.metrics import Measurement
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.ports.store import FinishedRun, RunHeader
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
    header = RunHeader(
        identity=run.identity,
        plan=store.plan.identity,
        block=run.block,
        environment=run.environment,
        cell=run.cell,
        started=f"2026-01-01T00:{run.block:02d}:00+00:00",
        seconds=1.0,
        wall_drift=0.0,
        client_cpu=1.0,
        postmaster_pid=4,
        door_pids=(1,),
        server_version=180000,
        sampling_rate=None,
        warmup_seconds=0.0,
        failure="",
        failure_kind="",
        remarks=(),
        dead_time={},
        facts={},
        version="0",
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
