"""A visit: its residents' servers up, one stage after the other, everything taken down again.

With one resident a stage is a single run. With several residents all their servers are up before the first of them is
measured, and they take turns in slices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

from pgstrata.conduct.arm import ActiveArm, guarded, make_arm, step
from pgstrata.conduct.ceiling import note_exceeded, renew_ceiling
from pgstrata.conduct.disk_full import naming_the_disk
from pgstrata.conduct.finish import finish
from pgstrata.conduct.observe import assert_levels
from pgstrata.conduct.prepare import layers_undone, prepare_layers
from pgstrata.conduct.rig import Rig, to_the_end
from pgstrata.conduct.run import measure, quiesce, warm
from pgstrata.conduct.statements import look_at_statements
from pgstrata.conduct.targets import targets_entered
from pgstrata.conduct.turns import take_turns
from pgstrata.errors import ServerFailedError
from pgstrata.model.experiment import Environment, Reset
from pgstrata.model.launch import Launch
from pgstrata.model.plan import Plan, PlannedRun, Visit
from pgstrata.model.reasons import Notice
from pgstrata.model.runs import RunRecord
from pgstrata.plan.load import workload_of
from pgstrata.ports.server import Clone, RunningServer
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
    with targets_entered(rig, residents):
        for together in _keeping(rig, plan, stages, residents):
            _conduct_stages(rig, plan, together, tell)


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

    def data(runs: Sequence[PlannedRun]) -> tuple[str, int, str]:
        cell = cells[runs[0].cell]
        return workload_of(cell, rig.workloads).data, cell.scale, cell.options.get("setup_sql", "")

    return [list(together) for _, together in groupby(stages, key=data)]


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
            for arm in arms:
                _bring_up(rig, plan, arm, kept, up)
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
    quiesce(rig, arm, tuple(up.values()))
    measure(rig, arm, up[arm.planned.identity])


def _stop_all(rig: Rig, up: dict[str, RunningServer]) -> None:
    for server in up.values():
        rig.supply(server.environment).control.stop(server)


def _bring_up(rig: Rig, plan: Plan, arm: ActiveArm, kept: Residents, up: dict[str, RunningServer]) -> None:
    supply = rig.supply(arm.environment)
    reset = plan.experiment.reset

    def action() -> None:
        with step(rig, arm, "prepare"):
            dataset = supply.datasets.ensure(arm.environment, supply.build, arm.cell)
            key = (arm.environment.name, dataset.identity)
            kept.supplies[arm.environment.name] = supply
            if key not in kept.launches:
                kept.launches[key] = prepare_layers(rig, arm, supply, dataset)
        launch = kept.launches[key]
        with step(rig, arm, "clone"):
            if key not in kept.clones:
                kept.clones[key] = supply.datasets.clone(dataset, _clone_name(arm.planned), launch.data, launch.wal)
        with step(rig, arm, "start"):
            if key not in kept.servers:
                kept.servers[key] = supply.control.start(arm.environment, supply.build, kept.clones[key], launch)
            up[arm.planned.identity] = kept.servers[key]
            if reset is not Reset.NONE:
                del kept.servers[key]
        with step(rig, arm, "assert"):
            renew_ceiling(rig, arm, up[arm.planned.identity])
            assert_levels(rig, arm, up[arm.planned.identity])
        look_at_statements(rig, arm, up[arm.planned.identity])
        warm(rig, arm, up[arm.planned.identity], plan.design(arm.cell.identity))

    guarded(arm, action)


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
    finished = [finish(rig, plan, arm, *_stop(rig, plan, arm, up)) for arm in arms]
    # what was measured is safe before anything else can fail; half of a stage in slices would be worth nothing
    rig.store.commit(*finished)
    for arm, run in zip(arms, finished, strict=True):
        note_exceeded(rig, arm, run.record)
        tell(run.record)
        if plan.experiment.reset is Reset.CLONE:
            _discard(rig, kept, _of_environment(kept, arm.environment.name))


def _stop(rig: Rig, plan: Plan, arm: ActiveArm, up: dict[str, RunningServer]) -> tuple[RunningServer | None, bytes]:
    """Stop an arm's server, as far as it is up; the server and its log."""
    control = rig.supply(arm.environment).control
    server = up.get(arm.planned.identity)
    if server is None:
        return None, b""
    with step(rig, arm, "stop"):
        if plan.experiment.reset is not Reset.NONE:
            control.stop(server)
        log = control.log(server)
    del up[arm.planned.identity]
    return server, log


def _of_environment(kept: Residents, environment: str) -> Iterable[tuple[str, str]]:
    return [key for key in kept.clones if key[0] == environment]


def _discard(rig: Rig, kept: Residents, keys: Iterable[tuple[str, str]]) -> None:
    for key in keys:
        try:
            kept.supplies[key[0]].datasets.discard(kept.clones[key])
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
