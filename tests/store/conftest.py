from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import pytest

import records
from pgstrata.model.experiment import (
    Cell,
    Environment,
    Experiment,
    Level,
    ServerKind,
    ServerSpec,
)
from pgstrata.model.metrics import Measurement, Series
from pgstrata.model.plan import HORIZON, Block, Forecast, Plan, PlannedRun, Stage, Visit
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import RunRecord, RunStatus, StatementLatency, Validity
from pgstrata.model.secret import Secret
from pgstrata.model.server import Fingerprint
from pgstrata.plan.identity import identify
from pgstrata.ports.store import FinishedRun, RunHeader
from pgstrata.store.serialise import parse_header
from pgstrata.store.study import StudyStore

CANARY = "canary-7f3a"
CELL = Cell(workload="simple-update", scale=10, clients=2, threads=2)


def make_environment(name: str, server: str) -> Environment:
    spec = ServerSpec(kind=ServerKind.DSN, value=server, conninfo=Secret(f"host=h password={CANARY}"))
    return Environment(name=name, levels=(Level(factor="server", value=server),), server=spec)


def make_experiment(blocks: int = 3) -> Experiment:
    return records.make_experiment(
        (make_environment("pg16", "16"), make_environment("pg18", "18")),
        question="Is it faster?",
        blocks=blocks,
        seed=42,
        cells=(CELL,),
        text='question = "Is it faster?"\nseed = 42\n',
    )


def make_visit(block: int, environment: str) -> Visit:
    identity = f"b{block:02d}/{environment}/{CELL.identity}"
    run = PlannedRun(identity=identity, block=block, environment=environment, cell=CELL.identity, seed=block)
    stage = Stage(cell=CELL.identity, runs=(run,))
    return Visit(identity=f"b{block:02d}/{environment}", residents=(environment,), stages=(stage,))


def make_plan(blocks: int = 3) -> Plan:
    forecast = Forecast(seconds_per_block=1.0, seconds_building=1.0, seconds_total=4.0, disk_bytes=1, datasets=())
    experiment = make_experiment(blocks)
    return Plan(
        identity=identify(experiment, ()),
        experiment=experiment,
        blocks=tuple(
            Block(number=n, visits=(make_visit(n, "pg16"), make_visit(n, "pg18"))) for n in range(1, blocks + 1)
        ),
        forecast=forecast,
        horizon=HORIZON,
    )


def make_header(run: PlannedRun, plan: Plan) -> RunHeader:
    return records.make_header(
        run,
        plan=plan.identity,
        seconds=60.0,
        door_pids=(1, 2),
        warmup_seconds=5.0,
        remarks=(Reason(code="c", text="a remark"),),
        dead_time={"clone": 1.5},
        facts={"a": "b"},
    )


def make_record(header: RunHeader, tps: float) -> RunRecord:
    return RunRecord(
        identity=header.identity,
        block=header.block,
        environment=header.environment,
        cell=header.cell,
        status=RunStatus.COMPLETED,
        validity=Validity.SUSPECT,
        reasons=header.remarks,
        started=header.started,
        measured_seconds=header.seconds,
        measurements=(Measurement(metric="tps", value=tps), Measurement(metric="server_cpu_per_tx", value=0.001)),
        series=(Series(metric="tps", times=(1.0, 2.0), values=(tps, tps)),),
        dead_time=header.dead_time,
        statements=(StatementLatency(text="UPDATE 'x';", seconds=0.0012), StatementLatency(text="END;", seconds=0.5)),
    )


def derive(files: Mapping[str, bytes]) -> RunRecord:
    """Stands for the parsers: the evidence of these tests is the tps as text."""
    return make_record(parse_header(files["run.json"]), float(files["pgbench.out"]))


def measure(store: StudyStore, run: PlannedRun, tps: float = 1000.0) -> RunRecord:
    evidence = store.begin(run.identity)
    evidence.keep("pgbench.out", str(tps).encode())
    evidence.keep_shared("postgresql.conf", b"fsync = on\n" * 100)
    header = make_header(run, store.plan)
    record = make_record(header, tps)
    store.commit(FinishedRun(evidence=evidence, header=header, record=record))
    return record


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What the tests of the store build things with."""

    plan: Callable[..., Plan] = make_plan
    header: Callable[[PlannedRun, Plan], RunHeader] = make_header
    record: Callable[[RunHeader, float], RunRecord] = make_record
    derive: Callable[[Mapping[str, bytes]], RunRecord] = derive
    measure: Callable[..., RunRecord] = measure
    canary: str = CANARY
    host: Fingerprint = dataclasses.field(default_factory=lambda: Fingerprint(facts={"kernel": "6.1", "cpu": "x"}))


@pytest.fixture
def bench() -> Bench:
    return Bench()
