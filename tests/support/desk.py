from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from statistics import median

import pytest

import records
from pgstrata.model.answer import (
    ALL_CELLS,
    Answer,
    AxisStep,
    Comparison,
    EffectKind,
    FactorEffect,
    Interval,
    OrderedAxis,
    QuantileShift,
    Verdict,
)
from pgstrata.model.experiment import (
    Cell,
    ControlKind,
    Environment,
    Experiment,
    Interleave,
    Level,
    ServerKind,
    ServerSpec,
)
from pgstrata.model.floor import Floor
from pgstrata.model.metrics import ROUND_TPS, Measurement, Series
from pgstrata.model.plan import Block, Design, Forecast, Plan, PlannedRun, Stage, Visit
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study

TEXT = """\
question  = "Is 18 faster than 16 here?"
threshold = "3 %"
blocks    = 12

[factors]
server = ["16", "18"]
"""


def make_environment(name: str, levels: tuple[tuple[str, str], ...], control: ControlKind | None = None) -> Environment:
    settings = {factor.removeprefix("settings."): value for factor, value in levels if factor.startswith("settings.")}
    return Environment(
        name=name,
        levels=tuple(Level(factor=factor, value=value) for factor, value in levels),
        server=ServerSpec(kind=ServerKind.CATALOGUE, value=dict(levels).get("server", "16")),
        settings={"synchronous_commit": "on", **settings},
        control=control,
    )


DEMO = (
    make_environment("pg16", (("server", "16"),)),
    make_environment("pg18", (("server", "18"),)),
    make_environment("pg18-async", (("server", "18"), ("settings.commit_delay", "100"))),
    make_environment("pg16-control", (("server", "16"),), ControlKind.SAME),
)


def make_cell(clients: int = 2, workload: str = "simple-update") -> Cell:
    return Cell(workload=workload, scale=10, clients=clients, threads=clients)


CELLS = (make_cell(2), make_cell(2, "select-only"))


def make_experiment(environments: tuple[Environment, ...], cells: tuple[Cell, ...], blocks: int) -> Experiment:
    return records.make_experiment(
        environments, question="Is 18 faster than 16 here?", blocks=blocks, seed=42, cells=cells, text=TEXT
    )


def make_plan(experiment: Experiment) -> Plan:
    forecast = Forecast(seconds_per_block=1.0, seconds_building=1.0, seconds_total=4.0, disk_bytes=1, datasets=())
    blocks = []
    for number in range(1, experiment.blocks + 1):
        visits = []
        for environment in experiment.environments:
            runs = tuple(
                PlannedRun(
                    identity=f"b{number:02d}/{environment.name}/{cell.identity}",
                    block=number,
                    environment=environment.name,
                    cell=cell.identity,
                    seed=number,
                )
                for cell in experiment.cells
            )
            stages = tuple(Stage(cell=run.cell, runs=(run,)) for run in runs)
            visits.append(
                Visit(identity=f"b{number:02d}/{environment.name}", residents=(environment.name,), stages=stages)
            )
        blocks.append(Block(number=number, visits=tuple(visits)))
    return Plan(identity="3f9a0c", experiment=experiment, blocks=tuple(blocks), forecast=forecast)


def make_run(planned: PlannedRun, level: float, rng: random.Random, seconds: int = 60) -> RunRecord:
    """One second after the other with a checkpoint's dip, which recovers slowly."""
    run_level = level * math.exp(rng.gauss(0, 0.008))
    start = rng.randrange(10, 40)
    dips = [0.55 + 0.045 * (t - start) if start <= t < start + 10 else 1.0 for t in range(seconds)]
    values = tuple(run_level * dip * math.exp(rng.gauss(0, 0.03)) for dip in dips)
    tps = sum(values) / len(values)
    bad = rng.random() < 0.02
    return RunRecord(
        identity=planned.identity,
        block=planned.block,
        environment=planned.environment,
        cell=planned.cell,
        status=RunStatus.COMPLETED,
        validity=Validity.INVALID if bad else Validity.VALID,
        reasons=(Reason(code="clock_jump", seconds=2.1),) if bad else (),
        started=f"2026-01-02T03:{planned.block:02d}:00+00:00",
        measured_seconds=float(seconds),
        measurements=(
            Measurement(metric="tps", value=tps),
            Measurement(metric="server_cpu_per_tx", value=1.9 / tps),
            Measurement(metric="client_cpu_per_tx", value=0.4 / tps),
            Measurement(metric="client_share", value=0.17),
            Measurement(metric="latency_p95", value=3 / tps),
            Measurement(metric="wal_per_tx", value=1190.0),
        ),
        series=(Series(metric="tps", times=tuple(float(t + 1) for t in range(seconds)), values=values),),
        dead_time={"clone": 0.8 + rng.random(), "start": 0.6, "warmup": 5.0, "checkpoint": 0.4, "stop": 0.7},
    )


def compare(runs: list[RunRecord], environment: Environment, cell: Cell, experiment: Experiment) -> Comparison:
    """A stand-in for the real rule: medians of block ratios with a rough interval."""
    values = {
        (run.environment, run.block): run.value("tps")
        for run in runs
        if run.cell == cell.identity and run.validity is not Validity.INVALID
    }
    ratios = sorted(
        values[environment.name, block] / values[experiment.baseline, block]
        for block in range(1, experiment.blocks + 1)
        if (environment.name, block) in values and (experiment.baseline, block) in values
    )
    if not ratios:
        unknown = {"verdict": Verdict.INSUFFICIENT, "effect": None, "interval": None, "blocks": 0, "decided_at": None}
        return make_comparison(environment=environment.name, cell=cell.identity, **unknown)
    effect = median(ratios)
    interval = Interval(low=effect * 0.985, high=effect * 1.016)
    verdict = Verdict.WORSE if interval.high < 1 else Verdict.BETTER if interval.low > 1 else Verdict.EQUIVALENT
    return make_comparison(
        environment=environment.name,
        cell=cell.identity,
        verdict=verdict,
        effect=effect,
        interval=interval,
        equivalence_interval=interval,
        blocks=len(ratios),
        planned_blocks=experiment.blocks,
        control=environment.control is not None,
    )


DECIDED = {Verdict.BETTER, Verdict.WORSE, Verdict.EQUIVALENT, Verdict.NEGLIGIBLE}


def make_comparison(**changes) -> Comparison:
    values = {
        "environment": "pg18",
        "cell": "simple-update-s10-c2",
        "metric": "tps",
        "verdict": Verdict.WORSE,
        "effect": 0.969,
        "interval": Interval(low=0.958, high=0.981),
        "equivalence_interval": None,
        "confidence": 0.955,
        "blocks": 9,
        "planned_blocks": 12,
        "runs": 18,
        "invalid": 1,
        "value": 969.0,
        "baseline_value": 1000.0,
        "exploratory": False,
        "control": False,
        "warnings": (),
    }
    merged = {**values, **changes}
    if merged["verdict"] in DECIDED:
        merged.setdefault("decided_at", merged["blocks"])
    return Comparison(**merged)


FACTS = {
    "host.cpu": "AMD EPYC 9R14",
    "host.cpus": "2",
    "host.memory": "16384000 kB",
    "host.kernel": "6.1.0-18-amd64",
    "host.os": "Debian GNU/Linux 12 (bookworm)",
    "host.clocksource": "tsc",
    "host.thp": "madvise",
}


def server_facts(version: str) -> Fingerprint:
    return Fingerprint(
        facts={
            "server.version": f"PostgreSQL {version} on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit",
            "server.supplier": "catalogue",
            "server.compiler": "gcc 12.2.0",
            "settings.shared_buffers": "16384",
            "settings.io_method": "worker" if version.startswith("18") else "",
        }
    )


def make_study(experiment: Experiment, runs: tuple[RunRecord, ...] = ()) -> Study:
    return Study(
        name="demo",
        plan=make_plan(experiment),
        runs=runs,
        host=Fingerprint(facts=FACTS),
        client=Fingerprint(facts={"client.driver": "pgbench 18.0"}),
        version="0.1.0",
        environments={item.name: server_facts(f"{item.server.value}.1") for item in experiment.environments},
        created="2026-01-02T03:04:05+00:00",
    )


def make_answer(
    environments: tuple[Environment, ...] = DEMO,
    cells: tuple[Cell, ...] = CELLS,
    blocks: int = 9,
    seconds: int = 60,
    effects: tuple[float, ...] = (1.0, 0.95, 1.08, 1.0),
) -> Answer:
    """A measured study with its comparisons."""
    rng = random.Random(7)
    experiment = make_experiment(environments, cells, blocks)
    plan = make_plan(experiment)
    levels = {item.name: effects[place % len(effects)] for place, item in enumerate(environments)}
    base = {cell.identity: 1000 * cell.clients**0.7 * (1 + place) for place, cell in enumerate(cells)}
    runs = [
        make_run(run, base[run.cell] * levels[run.environment] * (1 - 0.002 * run.block), rng, seconds)
        for run in plan.runs
    ]
    comparisons = tuple(
        compare(runs, environment, cell, experiment) for environment in environments[1:] for cell in cells
    )
    return Answer(study=make_study(experiment, tuple(runs)), comparisons=comparisons, warnings=())


def make_verdict_answer(*comparisons: Comparison, environments=DEMO, cells=CELLS[:1], warnings=()) -> Answer:
    """Comparisons without runs."""
    study = make_study(make_experiment(environments, cells, 12))
    return Answer(study=study, comparisons=comparisons, warnings=warnings)


def cut_into_slices(answer: Answer, rounds: int = 16, seconds: float = 0.25) -> Answer:
    """The same study in slices: every run in turns with those of its block, all of them wandering alike."""
    experiment = answer.study.plan.experiment
    designs = tuple(
        Design(
            cell=cell.identity,
            interleave=Interleave.SLICES,
            reason=Reason(code="together"),
            slice_seconds=seconds,
            rounds=rounds,
            discarded=1,
        )
        for cell in experiment.cells
    )
    runs = tuple(_take_turns(run, rounds, seconds) for run in answer.study.runs)
    plan = dataclasses.replace(answer.study.plan, designs=designs)
    return dataclasses.replace(answer, study=dataclasses.replace(answer.study, plan=plan, runs=runs))


def _take_turns(run: RunRecord, rounds: int, seconds: float) -> RunRecord:
    wander = random.Random(f"{run.block} {run.cell}")
    own = random.Random(run.identity)
    tps = run.value("tps") or 1.0
    values = tuple(tps * math.exp(wander.gauss(0, 0.1) + own.gauss(0, 0.016)) for _ in range(rounds))
    times = tuple(2 * seconds * place for place in range(rounds))
    return dataclasses.replace(
        run,
        together=f"{run.block}-{run.cell}",
        measured_seconds=rounds * seconds,
        series=(Series(metric=ROUND_TPS, times=times, values=values),),
    )


def make_headlines(answer: Answer, **changes) -> Answer:
    """The answer with a headline for each environment: the geometric mean of what its cells show."""
    experiment = answer.study.plan.experiment
    found = []
    for environment in experiment.environments[1:]:
        own = [item for item in answer.comparisons if item.environment == environment.name]
        cells = [item for item in own if item.effect is not None]
        effect = math.exp(sum(math.log(item.effect) for item in cells) / len(cells))
        interval = Interval(low=effect * 0.99, high=effect * 1.01)
        verdict = Verdict.WORSE if interval.high < 1 else Verdict.BETTER if interval.low > 1 else Verdict.EQUIVALENT
        values = {
            "environment": environment.name,
            "cell": ALL_CELLS,
            "verdict": verdict,
            "effect": effect,
            "interval": interval,
            "equivalence_interval": interval,
            "blocks": cells[0].blocks,
            "planned_blocks": experiment.blocks,
            "control": environment.control is not None,
            "repeated_p": 0.01,
        }
        found.append(make_comparison(**{**values, **changes}))
    return dataclasses.replace(answer, comparisons=(*found, *answer.comparisons))


def make_floor(cell: str, **changes) -> Floor:
    values = {
        "s0": 0.008,
        "differences": 14,
        "cell": cell,
        "metric": "tps",
        "design": "runs of 60 s",
        "host": "h",
        "measured": "2026-01-01T00:00:00+00:00",
    }
    return Floor(**{**values, **changes})


def with_floors(answer: Answer, *floors: Floor) -> Answer:
    plan = dataclasses.replace(answer.study.plan, floors={floor.cell: floor for floor in floors})
    return dataclasses.replace(answer, study=dataclasses.replace(answer.study, plan=plan))


def make_effect(**changes) -> FactorEffect:
    values = {
        "kind": EffectKind.MAIN,
        "factor": "settings.huge_pages",
        "level": "on",
        "reference": "off",
        "given": None,
        "cell": "simple-update-s10-c2",
        "metric": "tps",
        "verdict": Verdict.BETTER,
        "effect": 1.031,
        "interval": Interval(low=1.02, high=1.042),
        "blocks": 9,
        "repeated_p": 0.01,
        "decided_at": 9,
    }
    return FactorEffect(**{**values, **changes})


def make_interaction(**changes) -> FactorEffect:
    values = {
        "kind": EffectKind.INTERACTION,
        "given": ("server", "18", "16"),
        "effect": 1.015,
        "interval": Interval(low=1.004, high=1.026),
    }
    return make_effect(**{**values, **changes})


def make_axis(**changes) -> OrderedAxis:
    step = AxisStep(
        before="16", after="18", effect=1.042, interval=Interval(low=1.031, high=1.053), p=0.002, verdict=Verdict.BETTER
    )
    values = {
        "factor": "server",
        "levels": ("16", "18"),
        "cell": "simple-update-s10-c2",
        "metric": "tps",
        "steps": (step,),
        "p": 0.002,
        "trend_p": None,
        "blocks": 9,
    }
    return OrderedAxis(**{**values, **changes})


def make_shift(percent: int = 50, **changes) -> QuantileShift:
    values = {
        "environment": "pg18",
        "cell": "simple-update-s10-c2",
        "metric": f"latency_p{percent}",
        "quantile": percent / 100,
        "threshold": 0.03,
        "verdict": Verdict.WORSE,
        "effect": 1 + percent / 1000,
        "interval": Interval(low=1.001, high=1.2),
        "level": 0.045,
        "blocks": 9,
        "value": 0.002,
        "baseline_value": 0.0018,
    }
    return QuantileShift(**{**values, **changes})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What the tests of reports build things with."""

    environment: Callable[..., Environment] = make_environment
    cell: Callable[..., Cell] = make_cell
    comparison: Callable[..., Comparison] = make_comparison
    answer: Callable[..., Answer] = make_answer
    verdict_answer: Callable[..., Answer] = make_verdict_answer
    slices: Callable[..., Answer] = cut_into_slices
    headlines: Callable[..., Answer] = make_headlines
    floor: Callable[..., Floor] = make_floor
    floors: Callable[..., Answer] = with_floors
    effect: Callable[..., FactorEffect] = make_effect
    interaction: Callable[..., FactorEffect] = make_interaction
    axis: Callable[..., OrderedAxis] = make_axis
    shift: Callable[..., QuantileShift] = make_shift


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture(scope="module")
def module_desk() -> Desk:
    return Desk()
