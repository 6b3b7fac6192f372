"""A visit: its residents' servers up, one stage after the other, everything taken down again.

With one resident a stage is a single run. With several residents all their servers are up before the first of them is
measured, and they take turns in slices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

from pgstrata.conduct.arm import ActiveArm, guarded, make_arm, shared_step, step, together
from pgstrata.conduct.ceiling import note_exceeded, renew_ceiling
from pgstrata.conduct.disk_full import naming_the_disk
from pgstrata.conduct.finish import finish
from pgstrata.conduct.observe import assert_levels
from pgstrata.conduct.prepare import layers_undone, prepare_layers
from pgstrata.conduct.rig import Rig, to_the_end
from pgstrata.conduct.run import measure, quiesce, touching, warm
from pgstrata.conduct.statements import look_at_statements
from pgstrata.conduct.targets import targets_entered
from pgstrata.conduct.turns import take_turns
from pgstrata.errors import ServerFailedError
from pgstrata.model.experiment import Environment, Reset
from pgstrata.model.launch import Launch
from pgstrata.model.plan import Plan, PlannedRun, Visit
from pgstrata.model.reasons import Notice
from pgstrata.model.runs import RunRecord
from pgstrata.plan.load import data_key
from pgstrata.ports.server import Clone, Dataset, RunningServer
from pgstrata.ports.steps import Steps, finish_all
from pgstrata.ports.target import Supply


@dataclass(slots=True, kw_only=True)
class Residents:
    """What is up and may be used again by later runs of the visit (reset = restart or none)."""

    supplies: dict[str, Supply] = field(default_factory=dict)
    launches: dict[tuple[str, str], Launch] = field(default_factory=dict)
    clones: dict[tuple[str, str], Clone] = field(default_factory=dict)
    servers: dict[tuple[str, str], RunningServer] = field(default_factory=dict)


def conduct_visit(
    rig: Rig, plan: Plan, visit: Visit, *, todo: Collection[str], tell: Callable[[RunRecord], None]
) -> None:
    """Carry out the runs of a visit that are to be done, by identity.

    Every finished run is committed and told before the next begins; those that take turns in slices together.
    """
    experiment = plan.experiment
    stages = [runs for stage in visit.stages if (runs := [run for run in stage.runs if run.identity in todo])]
    names = dict.fromkeys(run.environment for runs in stages for run in runs)
    residents = [experiment.environment(name) for name in names]
    with targets_entered(rig, residents, fresh=True):
        for stretch in _keeping(rig, plan, stages, residents):
            _conduct_stages(rig, plan, stretch, tell)


def _keeping(
    rig: Rig, plan: Plan, stages: Sequence[Sequence[PlannedRun]], residents: Sequence[Environment]
) -> Iterable[Sequence[Sequence[PlannedRun]]]:
    """Stages in their order, in stretches that may use again what is up.

    The layers of a host are made for one dataset: with another one the former server would still be in the group, and
    an image would be mounted twice. So there a stretch ends where the data change.
    """
    if plan.experiment.reset is Reset.CLONE:
        # what is fresh for each run begins with the layers below it
        return [[runs] for runs in stages]
    if not any(layer.concerns(resident) for resident in residents for layer in rig.server_host(resident).layers):
        return [stages] if stages else []
    cells = {cell.identity: cell for cell in plan.experiment.cells}

    def data(runs: Sequence[PlannedRun]) -> tuple[object, ...]:
        return data_key(cells[runs[0].cell], rig.workloads)

    return [list(stretch) for _, stretch in groupby(stages, key=data)]


def _conduct_stages(
    rig: Rig, plan: Plan, stages: Sequence[Sequence[PlannedRun]], tell: Callable[[RunRecord], None]
) -> None:
    """One after the other; what is up, and what was changed on the host for it, goes at the end."""
    kept = Residents()
    environments = [plan.experiment.environment(run.environment) for runs in stages for run in runs]
    with layers_undone(rig, environments):
        try:
            for runs in stages:
                _conduct_stage(rig, plan, runs, kept, tell)
        finally:
            to_the_end(partial(_clear, rig, kept))


def _conduct_stage(
    rig: Rig, plan: Plan, runs: Sequence[PlannedRun], kept: Residents, tell: Callable[[RunRecord], None]
) -> None:
    arms = [make_arm(plan, run) for run in runs]
    up: dict[str, RunningServer] = {}
    try:
        with naming_the_disk(up):
            _bring_up(rig, plan, arms, kept, up)
            sound = [arm for arm in arms if not arm.failure]
            if sound and plan.design(sound[0].cell.identity).sliced:
                take_turns(rig, plan, sound, up)
            else:
                for arm in sound:
                    guarded(arm, partial(_measure_quietly, rig, arm, up))
            _take_down(rig, plan, arms, kept, up, tell)
    finally:
        to_the_end(partial(_stop_all, rig, up))


def _measure_quietly(rig: Rig, arm: ActiveArm, up: dict[str, RunningServer]) -> None:
    quiesce(rig, [arm], lambda _: tuple(up.values()))
    if not arm.failure:
        measure(rig, arm, up[arm.planned.identity])


def _stop_all(rig: Rig, up: dict[str, RunningServer]) -> None:
    for server in up.values():
        rig.supply(server.environment).control.stop(server)


def _bring_up(rig: Rig, plan: Plan, arms: Sequence[ActiveArm], kept: Residents, up: dict[str, RunningServer]) -> None:
    """Servers of all arms up, seen from inside and warm; what waits for child processes is done side by side."""
    bringing = _Bringing(rig=rig, plan=plan, kept=kept, up=up)
    for group in _at_once(rig, arms):
        for arm in group:
            guarded(arm, partial(bringing.prepare, arm))
        together(rig, group, "clone", bringing.cloning)
        together(rig, group, "start", bringing.starting)
    for arm in arms:
        if not arm.failure:
            guarded(arm, partial(_look_inside, rig, arm, up[arm.planned.identity]))
    together(rig, arms, "touch", lambda arm: touching(rig, arm, up[arm.planned.identity]))
    for arm in arms:
        if not arm.failure:
            guarded(arm, partial(warm, rig, arm, up[arm.planned.identity], plan.design(arm.cell.identity)))


def _at_once(rig: Rig, arms: Sequence[ActiveArm]) -> Sequence[Sequence[ActiveArm]]:
    """All arms, or one after the other where layers count on what is up already."""
    layered = any(layer.concerns(arm.environment) for arm in arms for layer in rig.server_host(arm.environment).layers)
    return [[arm] for arm in arms] if layered else [arms]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bringing:
    """The steps that bring the server of an arm up; `datasets` are found in the first of them, by run."""

    rig: Rig
    plan: Plan
    kept: Residents
    up: dict[str, RunningServer]
    datasets: dict[str, Dataset] = field(default_factory=dict)

    def prepare(self, arm: ActiveArm) -> None:
        rig, kept, supply = self.rig, self.kept, self.rig.supply(arm.environment)
        with step(rig, arm, "prepare"):
            dataset = supply.datasets.ensure(arm.environment, supply.build, arm.cell)
            self.datasets[arm.planned.identity] = dataset
            kept.supplies[arm.environment.name] = supply
            if (key := self._key(arm)) not in kept.launches:
                kept.launches[key] = prepare_layers(rig, arm, supply, dataset)

    def cloning(self, arm: ActiveArm) -> Steps[None]:
        key, dataset = self._key(arm), self.datasets[arm.planned.identity]
        if key not in self.kept.clones:
            launch, datasets = self.kept.launches[key], self.rig.supply(arm.environment).datasets
            name = _clone_name(arm.planned)
            self.kept.clones[key] = yield from datasets.cloning(dataset, name, launch.data, launch.wal)

    def starting(self, arm: ActiveArm) -> Steps[None]:
        key, servers, supply = self._key(arm), self.kept.servers, self.rig.supply(arm.environment)
        if key not in servers:
            clone, launch = self.kept.clones[key], self.kept.launches[key]
            servers[key] = yield from supply.control.starting(arm.environment, supply.build, clone, launch)
        self.up[arm.planned.identity] = servers[key]
        if self.plan.experiment.reset is not Reset.NONE:
            del servers[key]

    def _key(self, arm: ActiveArm) -> tuple[str, str]:
        return arm.environment.name, self.datasets[arm.planned.identity].identity


def _look_inside(rig: Rig, arm: ActiveArm, server: RunningServer) -> None:
    with step(rig, arm, "assert"):
        renew_ceiling(rig, arm, server)
        assert_levels(rig, arm, server)
    look_at_statements(rig, arm, server)


def _clone_name(planned: PlannedRun) -> str:
    return planned.identity.replace("/", "-")


def _take_down(
    rig: Rig,
    plan: Plan,
    arms: Sequence[ActiveArm],
    kept: Residents,
    up: dict[str, RunningServer],
    tell: Callable[[RunRecord], None],
) -> None:
    stopped = _stop(rig, plan, arms, up)
    finished = [finish(rig, plan, arm, *stopped.get(arm.planned.identity, (None, b""))) for arm in arms]
    # what was measured is safe before anything else can fail; half of a stage in slices would be worth nothing
    rig.store.commit(*finished)
    for arm, run in zip(arms, finished, strict=True):
        note_exceeded(rig, arm, run.record)
        tell(run.record)
    if plan.experiment.reset is Reset.CLONE:
        _discard(rig, kept, [key for arm in arms for key in _of_environment(kept, arm.environment.name)])


def _stop(
    rig: Rig, plan: Plan, arms: Sequence[ActiveArm], up: dict[str, RunningServer]
) -> Mapping[str, tuple[RunningServer, bytes]]:
    """Stop the servers that are up; each with its log, by run."""
    servers = {arm.planned.identity: up[arm.planned.identity] for arm in arms if arm.planned.identity in up}
    controls = {name: rig.supply(server.environment).control for name, server in servers.items()}
    with shared_step(rig, [arm for arm in arms if arm.planned.identity in servers], "stop"):
        if plan.experiment.reset is not Reset.NONE:
            finish_all([controls[name].stopping(server) for name, server in servers.items()])
        logs = {name: controls[name].log(server) for name, server in servers.items()}
    for name in servers:
        del up[name]
    return {name: (server, logs[name]) for name, server in servers.items()}


def _of_environment(kept: Residents, environment: str) -> Iterable[tuple[str, str]]:
    return [key for key in kept.clones if key[0] == environment]


def _discard(rig: Rig, kept: Residents, keys: Iterable[tuple[str, str]]) -> None:
    finish_all([_discarding(rig, kept, key) for key in keys])


def _discarding(rig: Rig, kept: Residents, key: tuple[str, str]) -> Steps[None]:
    try:
        yield from kept.supplies[key[0]].datasets.discarding(kept.clones[key])
    except ServerFailedError as error:
        # such as a session of somebody's in a running server: the next clone of that name tries again
        rig.warn(Notice(code="clone_left", said=error.what))
    # forgotten when it has gone, not before: whoever is interrupted in between tries again
    del kept.clones[key]


def _clear(rig: Rig, kept: Residents) -> None:
    for key in list(kept.servers):
        kept.supplies[key[0]].control.stop(kept.servers[key])
        del kept.servers[key]
    _discard(rig, kept, list(kept.clones))
