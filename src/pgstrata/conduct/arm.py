"""One run in the making, and the load that its environment and cell make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from pgstrata.conduct.judge import exhausted
from pgstrata.conduct.rig import Rig
from pgstrata.errors import (
    DiskFullError,
    HostLostError,
    HostNotFitError,
    InterruptedByUserError,
    PgstrataError,
    StudyError,
)
from pgstrata.model.experiment import Cell, Environment
from pgstrata.model.objective import Search
from pgstrata.model.plan import Plan, PlannedRun
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import RunStatus
from pgstrata.plan import workload_of
from pgstrata.plan.order import derive_seed
from pgstrata.ports.driver import Load
from pgstrata.ports.events import Event, EventKind
from pgstrata.ports.server import RunningServer
from pgstrata.ports.steps import Steps, finish_all

WARMUP: Final = "warmup"
"""Folder of the warm-up's execution; before its evidence names where it failed."""
# These end the experiment: not the environment is at fault, and the next run would fare no better.
FATAL: Final = (DiskFullError, HostLostError, HostNotFitError, StudyError, InterruptedByUserError)


@dataclass(slots=True, kw_only=True)
class ActiveArm:
    """One run in the making: what was planned, what is up, what was seen so far; `environments` are all of the plan.

    `resident_pids` are processes of the environments that it takes turns with, on its server's host, and
    `client_resident_pids` those on the client's where that is another one. `client_cpu_of_each` are seconds of CPU time
    of each process of the client, in order of the load's machines where it has several. `watchers` are samplers'
    processes, `watching_sessions` the servers' processes that answer them: host's name, pid. `placement_seed` is what
    the CPUs of its sessions are drawn from, the same for all arms of a block; None where the kernel places them.
    `stretched` is False where the visit leaves the unlogged stretch out. `search` are the steps of a search so far.
    """

    planned: PlannedRun
    environment: Environment
    cell: Cell
    environments: tuple[Environment, ...] = ()
    files: dict[str, bytes] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    remarks: list[Reason] = field(default_factory=list)
    dead_time: dict[str, float] = field(default_factory=dict)
    started: str = ""
    seconds: float = 0.0
    wall_drift: float = 0.0
    client_cpu: float = 0.0
    client_cpu_of_each: tuple[float, ...] = ()
    warmup_seconds: float = 0.0
    stretched: bool = True
    sampling_rate: float | None = None
    failure: Reason | None = None
    failure_kind: str = ""
    together: str = ""
    client_pids: tuple[int, ...] = ()
    placement_seed: int | None = None
    sliced: bool = False
    resident_pids: tuple[int, ...] = ()
    client_resident_pids: tuple[int, ...] = ()
    watchers: frozenset[tuple[str, int]] = frozenset()
    watching_sessions: frozenset[tuple[str, int]] = frozenset()
    search: Search | None = None

    def keep(self, name: str, content: bytes) -> None:
        """Keep a piece of evidence, unless there is nothing in it."""
        if content:
            self.files[name] = content

    def fail(self, said: str, *signs: str, how: str = "", seconds: float = 0.0) -> None:
        """Record a failure; it is a collapse where what was said or a sign says that connections or memory ran out."""
        line = exhausted((said, *signs))
        kind = RunStatus.COLLAPSED if line else RunStatus.FAILED
        case = how if line is None or said.strip().startswith(line) else ""
        self.failure = Reason(code=kind.value, how=case, said=line or said, seconds=seconds)
        self.failure_kind = kind


def guarded(arm: ActiveArm, action: Callable[[], None]) -> None:
    """Failures of one environment become the record of its run; failures of the host end the experiment."""
    with _recording(arm):
        action()


@contextmanager
def _recording(arm: ActiveArm) -> Iterator[None]:
    try:
        yield
    except FATAL:
        raise
    except PgstrataError as error:
        arm.fail(str(error), *error.details)


def make_arm(plan: Plan, planned: PlannedRun) -> ActiveArm:
    """An arm before anything has happened."""
    experiment = plan.experiment
    environment = experiment.environment(planned.environment)
    design = plan.design(planned.cell)
    return ActiveArm(
        planned=planned,
        environment=environment,
        cell=experiment.cell(planned.cell),
        environments=experiment.environments,
        placement_seed=derive_seed(experiment.seed, planned.block, planned.cell, "placement")
        if design.pairs(environment)
        else None,
        sliced=design.sliced,
    )


def step(rig: Rig, arm: ActiveArm, name: str) -> AbstractContextManager[None]:
    """Time one step around the measured window."""
    return shared_step(rig, (arm,), name)


@contextmanager
def shared_step(rig: Rig, arms: Sequence[ActiveArm], name: str) -> Iterator[None]:
    """Time one step that several arms take at once; each gets an equal share of its seconds."""
    for arm in arms:
        rig.events.emit(Event(kind=EventKind.STEP, run=arm.planned.identity, text=name))
    begun = rig.clock.monotonic()
    try:
        yield
    finally:
        share = (rig.clock.monotonic() - begun) / max(1, len(arms))
        for arm in arms:
            arm.dead_time[name] = arm.dead_time.get(name, 0.0) + share


def together(rig: Rig, arms: Sequence[ActiveArm], name: str, begin: Callable[[ActiveArm], Steps[None]]) -> None:
    """One step of all arms in which nothing has failed, side by side; `guarded` each."""
    taking = [arm for arm in arms if not arm.failure]
    with shared_step(rig, taking, name):
        finish_all([_guarding(arm, begin(arm)) for arm in taking])


def _guarding(arm: ActiveArm, steps: Steps[None]) -> Steps[None]:
    with _recording(arm):
        yield from steps


def make_load(rig: Rig, arm: ActiveArm, server: RunningServer, *, seconds: float, seed: int) -> Load:
    """What the driver is asked for; options of the workload may be factors of the environment."""
    return Load(
        cell=replace(
            arm.cell,
            options={**arm.cell.options, **arm.environment.options},
            rate=rig.rates.get(arm.cell.identity, arm.cell.rate),
        ),
        workload=workload_of(arm.cell, rig.workloads),
        address=server.address,
        seconds=seconds,
        seed=seed,
        launch=server.launch.client,
    )


def scratch_folder(rig: Rig, arm: ActiveArm, part: str = "") -> str:
    """The folder of one execution of the driver, or of all of a run, on the machine of the (first) generator."""
    return f"{rig.side(arm.environment).scratch}/{_execution(arm, part)}"


def _execution(arm: ActiveArm, part: str = "") -> str:
    name = arm.planned.identity.replace("/", "--")
    return f"{name}/{part}" if part else name


def fresh_folder(rig: Rig, arm: ActiveArm, part: str) -> str:
    """Make an empty folder for an execution at each generator; return that of the first."""
    for generator in rig.side(arm.environment).generators:
        folder = f"{generator.scratch}/{_execution(arm, part)}"
        generator.host.remove_tree(folder)
        generator.host.make_folder(folder)
    return scratch_folder(rig, arm, part)


def clear_scratch(rig: Rig, arm: ActiveArm) -> None:
    """Remove the files of a run's executions at all generators; evidence has been collected before."""
    for generator in rig.side(arm.environment).generators:
        generator.host.remove_tree(f"{generator.scratch}/{_execution(arm)}")
