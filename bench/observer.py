"""What watching costs: pgstrata's CPU in the measured window, throughput against plain pgbench, time between runs."""

from __future__ import annotations

import os
import random
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np
from figures import Figure

from pgstrata import __version__
from pgstrata.app.machine import Machine, open_machine
from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.app.wiring import make_rig
from pgstrata.conduct.arm import ActiveArm, make_arm
from pgstrata.conduct.losses import Losses
from pgstrata.conduct.preflight import preflight
from pgstrata.conduct.rig import Rig
from pgstrata.conduct.run import measure, quiesce, touching, warm
from pgstrata.conduct.targets import targets_entered
from pgstrata.drivers.pgbench.parse import OUTPUT, PgbenchParser
from pgstrata.libpq import compose_connection
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.model.server import Build
from pgstrata.ports.collector import Window
from pgstrata.ports.events import Event
from pgstrata.ports.host import Command
from pgstrata.ports.server import RunningServer
from pgstrata.ports.steps import finish
from pgstrata.stats.rule import estimate_many
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder
from pgstrata.store.study import StudyStore

PAIRS = int(os.environ.get("PAIRS") or 24)
SECONDS = 5
# Runs whose CPU is looked at, with samplers and without.
LOOKS = 8
EXPERIMENT = """
question = "What does watching cost?"
controls = ["same"]
interleave = "runs"
blocks = {blocks}
[common]
server = "embedded"
[[cells]]
workload = "{workload}"
scale = {scale}
clients = 2
run = "{seconds}s"
warmup = "1s"
"""


class Silence:
    """Events go nowhere."""

    def emit(self, event: Event) -> None: ...


def plan_runs(folder: Path, workload: str, blocks: int, seconds: int, scale: int = 10) -> Plan:
    """An experiment on the embedded server, run by run."""
    file = folder / "experiment.toml"
    file.write_text(EXPERIMENT.format(workload=workload, blocks=blocks, seconds=seconds, scale=scale))
    return load_plan(file)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneServer:
    """A server that is up for a benchmark, and what runs on it are made with; `dataset` is the folder of its data,
    which no server uses.
    """

    plan: Plan
    rig: Rig
    machine: Machine
    server: RunningServer
    dataset: str


@contextmanager
def one_server(scale: int = 10) -> Iterator[OneServer]:
    """The embedded server on a fresh clone, read-only and with two clients, tried once."""
    with tempfile.TemporaryDirectory() as name, open_machine(print) as machine:
        plan = plan_runs(Path(name), "select-only", 7, SECONDS, scale)
        with StudyStore.create(Path(name) / "study", plan, __version__) as store:
            rig = make_rig(plan, machine, store, Silence(), name)
            environment, cell = plan.experiment.environments[0], plan.experiment.cells[0]
            with targets_entered(rig, [environment]):
                supply = rig.supply(environment)
                preflight(rig, plan, plan.runs[:1], Losses(rig=rig, plan=plan))
                dataset = supply.datasets.ensure(environment, supply.build, cell)
                clone = supply.datasets.clone(dataset, "bench")
                server = supply.control.start(environment, supply.build, clone)
                try:
                    yield OneServer(plan=plan, rig=rig, machine=machine, server=server, dataset=dataset.location)
                finally:
                    supply.control.stop(server)
                    supply.datasets.discard(clone)


def measure_observer() -> Sequence[Figure]:
    """Randomised pairs on one server: a run as pgstrata makes it, and `pgbench -c 2 -j 2 -T` with nothing else."""
    with one_server() as up:
        return _pairs(up.plan, up.rig, up.machine, up.server)


def _pairs(plan: Plan, rig: Rig, machine: Machine, server: RunningServer) -> Sequence[Figure]:
    order = random.Random(1)
    unwatched = replace(rig, samplers=())
    first = make_arm(plan, plan.runs[0])
    finish(touching(rig, first, server))
    warm(rig, first, server, plan.design(first.cell.identity))
    quiesce(rig, [first], lambda _: (server,))
    watched: list[float] = []
    plain: list[float] = []
    cpus: list[float] = []
    bare: list[float] = []
    for _ in range(PAIRS):
        for ours in order.sample((True, False), 2):
            if ours:
                arm = make_arm(plan, plan.runs[0])
                measure(rig, arm, server)
                watched.append(rig.driver(arm.environment, arm.cell).parse(arm.files).tps or 0.0)
                cpus.append(_observer_cpu(rig, arm, server))
            else:
                plain.append(_plain_tps(machine, server, rig.supply(server.environment).build))
    for _ in range(LOOKS):
        arm = make_arm(plan, plan.runs[0])
        measure(unwatched, arm, server)
        bare.append(_observer_cpu(unwatched, arm, server))
    differences = np.log(np.array(watched) / np.array(plain))
    (estimate,) = estimate_many([differences])
    low, high = -np.inf, np.inf  # of too few pairs
    if estimate.interval is not None:
        low, high = (100 * (np.exp(bound) - 1) for bound in (estimate.interval.low, estimate.interval.high))
    note = f"{PAIRS} pairs of {SECONDS} s: {100 * (np.exp(estimate.centre) - 1):+.2f} % [{low:+.2f}, {high:+.2f}]"
    return [
        Figure(name="observer: CPU of all collectors", value=statistics.median(cpus), goal=0.03, unit="CPU",
               notes=(f"largest of {PAIRS}: {max(cpus):.4f}; samplers, the sessions that answer them and pgstrata",)),
        Figure(name="observer: CPU with diagnosis = false", value=statistics.median(bare), goal=0.01, unit="CPU",
               notes=(f"largest of {LOOKS}: {max(bare):.4f}",)),
        Figure(name="observer: tps against plain pgbench", value=low, goal=-5.0, unit="%", low_is_good=False,
               notes=(note,)),
    ]  # fmt: skip


def _observer_cpu(rig: Rig, arm: ActiveArm, server: RunningServer) -> float:
    window = Window(
        seconds=arm.seconds,
        transactions=1,
        client_cpu=arm.client_cpu,
        postmaster_pid=server.postmaster_pid,
        transport_pids=rig.server_host(server.environment).host.transport_pids,
        sampler_pids=tuple(pid for _, pid in arm.watchers),
        sampler_backends=tuple(pid for _, pid in arm.watching_sessions),
        server_version=server.build.version.number,
    )
    (collector,) = (collector for collector in rig.collectors if collector.name == "procfs")
    found = collector.parse(arm.files["procfs.before"], arm.files["procfs.after"], window)
    return next(measurement.value for measurement in found if measurement.metric == "observer_cpu")


def _plain_tps(machine: Machine, server: RunningServer, build: Build) -> float:
    connection = compose_connection(server.address)
    argv = (build.program("pgbench"), "-n", "-S", "-M", "prepared", "-c", "2", "-j", "2", "-T", str(SECONDS))
    done = machine.host.run(
        Command(
            argv=(*argv, *connection.arguments), environment={**build.process_environment, **connection.environment}
        )
    )
    return PgbenchParser().parse({OUTPUT: done.stdout}).tps or 0.0


def measure_overhead() -> Sequence[Figure]:
    """Median time between two measured windows at scale 10, without the declared warm-up; where it goes."""
    with tempfile.TemporaryDirectory() as name:
        plan = plan_runs(Path(name), "simple-update", 7, 3)
        study = Path(name) / "study"
        run_experiment(plan, StudyFolder(study), Silence())
        runs = load_study(study).runs
    steps = sorted({step for run in runs for step in run.dead_time} - {"warmup"})
    table = {step: statistics.median(run.dead_time.get(step, 0.0) for run in runs) for step in steps}
    between = _gaps(runs)
    notes = [f"{step:<12} {seconds:.3f} s" for step, seconds in sorted(table.items(), key=lambda item: -item[1])]
    return [Figure(name="set-up overhead between runs, scale 10", value=between, goal=3.0, unit="s", notes=notes)]


def _gaps(runs: Sequence[RunRecord]) -> float:
    ordered = sorted(runs, key=lambda run: run.started)
    starts = [datetime.fromisoformat(run.started).timestamp() for run in ordered]
    gaps = [
        after - before - run.measured_seconds - following.dead_time.get("warmup", 0.0)
        for before, after, run, following in zip(starts, starts[1:], ordered, ordered[1:], strict=False)
    ]
    return statistics.median(gaps)
