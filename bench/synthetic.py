"""A large study made of drawn figures, for timing only: it is written to a temporary folder and measures nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from pgstrata import __version__
from pgstrata.app.question import load_plan
from pgstrata.compare.causes.why import BESIDE_METRICS
from pgstrata.model.activity import SessionCount, SessionState
from pgstrata.model.metrics import BACKEND_CPU, RUN_QUEUE, Measurement, Series
from pgstrata.model.plan import PlannedRun
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.store import catalogue
from pgstrata.store.database import transaction
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


WHY_EXPERIMENT = """
question = "How long does it take to say why?"
blocks = 24
[factors]
"settings.work_mem" = [%s]
[[cells]]
workload = "simple-update"
scale = 10
clients = [1, 2, 3, 4]
run = "60s"
"""
SESSIONS = (
    (SessionState.CLIENT, "", "", "", 800),
    *((SessionState.RUNNING, "", "", f"UPDATE table_{n} SET a = a + ? WHERE b = ?", 40) for n in range(5)),
    *(
        (SessionState.WAITING, "LWLock", f"Lock{n}", f"UPDATE table_{n} SET a = a + ? WHERE b = ?", 20)
        for n in range(5)
    ),
    *((SessionState.WAITING, "IO", f"File{n}", "END", 30) for n in range(4)),
)


def write_large_study(folder: Path) -> int:
    """24 blocks x 14 environments x 15 cells; the number of runs."""
    clients = ", ".join(str(n) for n in range(1, 16))
    return _write(folder, EXPERIMENT % (_levels(14), clients), _draw)


def write_little_study(folder: Path) -> int:
    """12 blocks x 2 environments x 2 cells; the number of runs."""
    return _write(folder, EXPERIMENT.replace("blocks = 24", "blocks = 12") % (_levels(2), "1, 2"), _draw)


def write_why_study(folder: Path) -> int:
    """24 blocks x 11 environments x 4 cells, with sampled sessions; the number of runs."""
    return _write(folder, WHY_EXPERIMENT % _levels(11), _draw_sampled)


def _levels(number: int) -> str:
    return ", ".join(f'"{4 + n}MB"' for n in range(number))


def _write(folder: Path, question: str, draw: Callable[[PlannedRun, np.random.Generator], RunRecord]) -> int:
    file = folder.with_suffix(".toml")
    file.write_text(question)
    plan = load_plan(file)
    draws = np.random.default_rng(5000)
    with StudyStore.create(folder, plan, __version__):
        pass
    connection = catalogue.open_for_writing(folder / catalogue.CATALOGUE)
    try:
        with transaction(connection):
            for run in plan.runs:
                catalogue.save_run(connection, draw(run, draws))
    finally:
        connection.close()
    return len(plan.runs)


def _draw_sampled(run: PlannedRun, draws: np.random.Generator) -> RunRecord:
    """As `_draw`, with sessions and with all metrics that stand beside an account."""
    record = _draw(run, draws)
    beside = [Measurement(metric=name, value=float(draws.normal(100, 5))) for name in BESIDE_METRICS]
    counted = [Measurement(metric=name, value=1e-4) for name in (BACKEND_CPU.name, RUN_QUEUE.name)]
    sessions = tuple(
        SessionCount(state=state, wait_type=kind, event=event, query=query, samples=int(draws.poisson(samples)) + 1)
        for state, kind, event, query, samples in SESSIONS
    )
    known = {item.metric for item in record.measurements}
    more = [item for item in (*beside, *counted) if item.metric not in known]
    return replace(record, measurements=(*record.measurements, *more), sessions=sessions)


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
