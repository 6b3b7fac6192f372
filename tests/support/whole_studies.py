"""Whole studies of many designs: everything is known of every run."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import records
from desk import FACTS, server_facts
from pgstrata.model.activity import ProcessCount, SessionCount, SessionState, WaitProfile
from pgstrata.model.experiment import (
    Cell,
    ControlKind,
    Environment,
    Experiment,
    HostKind,
    HostSpec,
    Interleave,
    Level,
    ServerKind,
    ServerSpec,
)
from pgstrata.model.metrics import METRICS, ROUND_TPS, SCHEDULE_LAG, TPS, Measurement, Series
from pgstrata.model.objective import Objective
from pgstrata.model.plan import Block, Design, Forecast, Plan
from pgstrata.model.queries import QueryCount, QueryCounts
from pgstrata.model.query_plans import PlannedWith, PlanUse, QueryPlan
from pgstrata.model.runs import RunRecord, RunStatus, StatementLatency, Validity
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study
from pgstrata.sources.rates import maximum_key
from pgstrata.units import Unit

SECONDS, ROUNDS = 12, 8
_ANNEX = HostSpec(kind=HostKind.SSH, destination="annex")


# ------------------------------------------------------------------------------------------------ designs


def _environment(name: str, control: ControlKind | None = None, host: HostSpec | None = None, **levels: str):
    factors = {"server": "server", "mem": "settings.work_mem", "jit": "settings.jit"}
    found = {factors[key]: value for key, value in levels.items()}
    return Environment(
        name=name,
        levels=tuple(Level(factor=factor, value=value) for factor, value in found.items()),
        server=ServerSpec(kind=ServerKind.CATALOGUE, value=levels.get("server", "16")),
        settings={factor.removeprefix("settings."): value for factor, value in found.items() if "." in factor},
        control=control,
        host=host or HostSpec(),
    )


ENVIRONMENTS = {
    "two": (_environment("pg16", server="16"), _environment("pg18", server="18")),
    "with a control": (
        _environment("pg16", server="16"),
        _environment("pg18", server="18"),
        _environment("pg16-control", ControlKind.SAME, server="16"),
    ),
    "crossed": tuple(_environment(f"{v}-{jit}", server=v, jit=jit) for v in ("16", "18") for jit in ("off", "on")),
    "along an axis": tuple(_environment(f"m{size}", mem=f"{size}MB") for size in (1, 4, 16, 64)),
    "on two machines": (_environment("here", server="16"), _environment("there", server="18", host=_ANNEX)),
}


def make_cell(clients: int = 4, **more) -> Cell:
    fields = {"workload": "simple-update", "scale": 10, "threads": 1, "run": 60.0, **more}
    return Cell(clients=clients, **fields)


CELLS = {
    "one": (make_cell(),),
    "one client": (make_cell(1),),
    "two loads": (make_cell(), make_cell(workload="select-only")),
    "more clients": tuple(make_cell(clients) for clients in (1, 2, 4, 8, 16)),
    "more threads": tuple(make_cell(4, threads=number, label=f"-j{number}") for number in (1, 2, 4)),
    "more clients and threads": tuple(
        make_cell(clients, threads=number, label=f"-j{number}") for number in (1, 2) for clients in (2, 4, 8, 16, 32)
    ),
    "more data": tuple(make_cell(scale=scale) for scale in (10, 100, 1000)),
    "a fixed rate": (make_cell(rate=10.0), make_cell(1, rate=0.5)),
    "a share of the rate": (make_cell(rate_share=0.5), make_cell()),
    "an objective": (make_cell(objective=Objective(of="p99", limit=0.02)),),
    "a profile": (make_cell(profile=True),),
    "a ladder": tuple(make_cell(clients, until_falls=True) for clients in (1, 2, 4)),
}


def _experiment(environments: Sequence[Environment], cells: Sequence[Cell], metric: str, blocks: int) -> Experiment:
    factors = tuple(dict.fromkeys(level.factor for each in environments for level in each.levels))
    return records.make_experiment(
        tuple(environments), question="Is it faster?", metric=metric, blocks=blocks, cells=tuple(cells), factors=factors
    )


def _plan(experiment: Experiment, *, sliced: bool) -> Plan:
    way = {"interleave": Interleave.SLICES, "slice_seconds": 0.25, "rounds": ROUNDS} if sliced else {}
    return Plan(
        identity="p",
        experiment=experiment,
        blocks=tuple(Block(number=number, visits=()) for number in range(1, experiment.blocks + 1)),
        forecast=Forecast(seconds_per_block=0, seconds_building=0, seconds_total=0, disk_bytes=0, datasets=()),
        designs=tuple(
            Design(cell=cell.identity, **{"interleave": Interleave.RUNS, **way}) for cell in experiment.cells
        ),
    )


# ------------------------------------------------------------------------------------------------ whole runs


def _whole_run(plan: Plan, name: str, cell: Cell, block: int) -> RunRecord:
    """A run of which everything is known."""
    draws = random.Random(f"{name} {cell.identity} {block}")
    sliced = plan.design(cell.identity).sliced
    tps = cell.rate or 1000 * cell.clients**0.7 * (1 + 0.03 * len(name)) * math.exp(draws.gauss(0, 0.02))
    return RunRecord(
        identity=f"b{block:02}/{name}/{cell.identity}",
        block=block,
        environment=name,
        cell=cell.identity,
        status=RunStatus.COMPLETED,
        validity=Validity.VALID,
        reasons=(),
        started=f"2026-01-02T03:{block:02}:{len(name):02}+00:00",
        measured_seconds=float(SECONDS),
        measurements=tuple(_measure(cell, tps, draws)),
        series=tuple(_series(tps, draws, sliced=sliced)),
        dead_time={"start": 0.6, "warmup": 5.0},
        statements=(
            StatementLatency(text="/* new order */ SELECT 1", seconds=0.4 / tps),
            StatementLatency(text="END", seconds=0.2 / tps),
        )
        * cell.profile,
        together=f"t{block}-{cell.identity}" * sliced,
        sessions=_sessions(draws),
        processes=(_process("checkpointer", 7), _process("parallel worker", 3)),
        waits=WaitProfile(hertz=100.0, counts=tuple(replace(each, query="", blocker="") for each in _sessions(draws))),
        queries=QueryCounts(queries=(query("UPDATE t", 0.5 / tps), query("SELECT 1", 0.1 / tps))),
    )


def _measure(cell: Cell, tps: float, draws: random.Random):
    latency = 0.4 * cell.clients / tps if cell.paced else cell.clients / tps
    special = {"latency_mean": latency, SCHEDULE_LAG: 0.1 * latency, "client_share": 0.2, "transactions": 60 * tps}
    for metric in METRICS.values():
        rates = metric.unit in {Unit.PER_SECOND, Unit.PER_MINUTE, Unit.PER_HOUR}
        times = metric.unit in {Unit.SECONDS, Unit.SECONDS_PER_TRANSACTION}
        usual = tps if rates else 0.5 * latency if times else 1.0
        if metric.name != ROUND_TPS:
            value = special.get(metric.name, usual) * math.exp(draws.gauss(0, 0.01))
            yield Measurement(metric=metric.name, value=value)


def _series(tps: float, draws: random.Random, *, sliced: bool):
    times = tuple(float(time) for time in range(1, SECONDS + 1))
    for name, level in ((TPS.name, tps), ("latency_p95", 2 / tps), ("host_user_cpu", 1.5), ("commits", tps)):
        yield Series(metric=name, times=times, values=tuple(level * math.exp(draws.gauss(0, 0.1)) for _ in times))
    yield Series(metric="disk_throughput", times=times, values=times, subject="data")
    yield Series(metric="checkpoint_starts", times=(3.0,), values=(1.0,))
    if sliced:
        values = tuple(tps * math.exp(draws.gauss(0, 0.05)) for _ in range(ROUNDS))
        yield Series(metric=ROUND_TPS, times=times[:ROUNDS], values=values)


def session(state: SessionState, samples: int, event: str = "", query: str = "", blocker: str = "") -> SessionCount:
    kind, _, name = event.partition("/")
    return SessionCount(state=state, wait_type=kind, event=name, query=query, samples=samples, blocker=blocker)


def _sessions(draws: random.Random) -> tuple[SessionCount, ...]:
    return (
        session(SessionState.AWAKE, draws.randint(40, 60), query="UPDATE t"),
        session(SessionState.RUNNING, draws.randint(5, 9), query="SELECT 1"),
        session(SessionState.WAITING, draws.randint(20, 30), "IO/WalSync", "END"),
        session(SessionState.WAITING, draws.randint(5, 9), "Lock/transactionid", "UPDATE t", "UPDATE t"),
        session(SessionState.CLIENT, draws.randint(20, 30)),
    )


def _process(kind: str, samples: int) -> ProcessCount:
    return ProcessCount(
        kind=kind, state=SessionState.WAITING, wait_type="IO", event="DataFileWrite", query="", samples=samples
    )


def query(text: str, seconds: float) -> QueryCount:
    return QueryCount(query=text, calls=1.0, seconds=seconds, rows=1.0, blocks_hit=9.0, blocks_read=0.0)


# ------------------------------------------------------------------------------------------------ whole studies


def make_study(
    environments: str, cells: str, *, metric: str = TPS.name, blocks: int = 3, sliced: bool = False
) -> Study:
    """A study of which everything is known."""
    experiment = _experiment(ENVIRONMENTS[environments], CELLS[cells], metric, blocks)
    plan = _plan(experiment, sliced=sliced)
    runs = [
        _whole_run(plan, each.name, cell, block)
        for block in range(1, blocks + 1)
        for cell in experiment.cells
        for each in experiment.environments
    ]
    names = [each.name for each in experiment.environments]
    shares = [cell for cell in experiment.cells if cell.rate_share is not None]
    return Study(
        name="holed",
        plan=plan,
        runs=tuple(runs),
        host=Fingerprint(facts=FACTS),
        client=Fingerprint(facts=FACTS),
        environments={name: server_facts("18.1") for name in names},
        created="2026-01-02T03:04:05+00:00",
        version="0.1.0",
        networks={names[-1]: Fingerprint(facts={"network.clock_offset": "0.001"})},
        rates={cell.identity: 500.0 for cell in shares},
        maxima={maximum_key(name, cell): 1000.0 for name in names for cell in (*shares, *experiment.cells)},
        query_plans=tuple(_plan_use(name, cell.identity) for name in names for cell in experiment.cells),
    )


def _plan_use(name: str, cell: str) -> PlanUse:
    shape = ("Seq Scan on t",) if len(name) % 2 else ("Index Scan using a on t", "JIT")
    plan = QueryPlan(statement="UPDATE t", planned_with=PlannedWith.PARAMETERS, shape=shape, text="\n".join(shape))
    return PlanUse(environment=name, cell=cell, plan=plan, runs=2)
