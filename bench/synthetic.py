"""A large study made of drawn figures, for timing only: it is written to a temporary folder and measures nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pgstrata import __version__
from pgstrata.app.question import load_plan
from pgstrata.model.metrics import Measurement, Series
from pgstrata.model.plan import PlannedRun
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.store import catalogue
from pgstrata.store.study import StudyStore

EXPERIMENT = """
question = "How long does a large study take to show?"
blocks = 24
[factors]
"settings.work_mem" = [%s]
[[cells]]
workload = "select-only"
scale = 10
clients = [%s]
run = "60s"
"""
SECONDS = 60


def write_large_study(folder: Path) -> int:
    """24 blocks x 14 environments x 15 cells; the number of runs."""
    file = folder.with_suffix(".toml")
    levels = ", ".join(f'"{4 + n}MB"' for n in range(14))
    clients = ", ".join(str(n) for n in range(1, 16))
    file.write_text(EXPERIMENT % (levels, clients))
    plan = load_plan(file)
    draws = np.random.default_rng(5000)
    with StudyStore.create(folder, plan, __version__):
        pass
    connection = catalogue.open_for_writing(folder / catalogue.CATALOGUE)
    try:
        with catalogue.transaction(connection):
            for run in plan.runs:
                catalogue.save_run(connection, _draw(run, draws))
    finally:
        connection.close()
    return len(plan.runs)


def _draw(run: PlannedRun, draws: np.random.Generator) -> RunRecord:
    tps = 1000 * float(np.exp(draws.normal(0, 0.03)))
    seconds = tuple(float(second) for second in range(1, SECONDS + 1))
    values = {"tps": tps, "latency_p50": 1 / tps, "latency_p95": 2 / tps, "latency_p99": 3 / tps,
              "server_cpu_per_tx": 0.8 / tps, "client_cpu_per_tx": 0.4 / tps, "client_share": 0.33,
              "foreign_cpu": 0.02, "server_cpu": 0.8, "client_cpu": 0.4}  # fmt: skip
    return RunRecord(
        identity=run.identity, block=run.block, environment=run.environment, cell=run.cell, status=RunStatus.COMPLETED,
        validity=Validity.VALID, reasons=(), started=f"2026-01-01T00:00:{run.block:02}+00:00", measured_seconds=SECONDS,
        measurements=tuple(Measurement(metric=name, value=value) for name, value in values.items()),
        series=(Series(metric="tps", times=seconds, values=tuple(draws.normal(tps, tps / 20, SECONDS).tolist())),),
        dead_time={"clone": 0.1, "start": 0.1},
    )  # fmt: skip
