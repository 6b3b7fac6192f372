"""Before the first block: datasets built, levels asserted, scripts tried, what the client can drive measured.

The rate of the transaction log is chosen here too. The first clone and the first start of a series are slower than the
rest; they are spent here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from pgstrata.conduct.arm import ActiveArm, clear_scratch, fresh_folder, make_arm, make_load, scratch_folder
from pgstrata.conduct.ceiling import ensure_ceiling
from pgstrata.conduct.disk_full import naming_the_disk
from pgstrata.conduct.drive import drive
from pgstrata.conduct.judge import EMULATION
from pgstrata.conduct.ladders import Ends, choose_ends, climb_ladders
from pgstrata.conduct.lanes import follow_lanes, machines_of_environment
from pgstrata.conduct.losses import Losses
from pgstrata.conduct.observe import assert_levels
from pgstrata.conduct.prepare import layers_undone, prepare_layers
from pgstrata.conduct.rates import Maxima, choose_rates, load_rates, measure_maximum
from pgstrata.conduct.rig import Rig, to_the_end
from pgstrata.conduct.targets import targets_entered
from pgstrata.errors import HostNotFitError, ServerFailedError
from pgstrata.model.boot import boot_of
from pgstrata.model.experiment import Environment, HostSpec
from pgstrata.model.plan import Plan, PlannedRun
from pgstrata.model.reasons import Notice
from pgstrata.model.server import Fingerprint
from pgstrata.ports.events import Event, EventKind
from pgstrata.ports.host import StopSignal
from pgstrata.ports.server import Dataset, RunningServer

SAMPLING: Final = "sampling"
# Lines per second of the sampled transaction log in the fastest arm: 60 000 latencies in a minute. Four times as many
# showed in the throughput (-3.3 % against -1.4 % here). A slower arm at the same rate has fewer, enough in a minute.
LOG_LINES_PER_SECOND: Final = 1000.0
# A step of a search lasts seconds, and one in a hundred of its transactions decides: their number counts for more than
# what the log costs, which is the same in all environments.
_MORE_LINES_IN_STEPS: Final = 4
_PROBE_SECONDS: Final = 1.0
_TRIAL_TIMEOUT: Final = 600.0


def preflight(rig: Rig, plan: Plan, missing: Sequence[PlannedRun], losses: Losses) -> None:
    """Everything that can be found wrong before hours are spent.

    An environment whose machine was lost is tried again when it is there again, by `losses`.

    Raises:
        ServerFailedError, LevelNotTakenError: an environment does not start, is not what was asked for, or a script
            fails.
        HostNotFitError: an environment is not what it was when the study began.
        HostLostError: a machine did not come back.
    """
    known = rig.store.fingerprint(SAMPLING)
    if known is not None:
        rig.sampling.update({cell: float(rate) for cell, rate in known.facts.items()})
    wanted: dict[str, dict[str, PlannedRun]] = {}
    for run in missing:
        wanted.setdefault(run.environment, {}).setdefault(run.cell, run)
    load_rates(rig)
    tried = _Tried()
    entered: set[HostSpec] = set()

    def attempt(item: tuple[Environment, Sequence[PlannedRun]], within: Collection[HostSpec]) -> None:
        environment, runs = item
        if not rig.targets[environment.host].at_hand(environment):
            # it is tried after the reboot that its first visit asks for
            return
        again = partial(_try_environment, rig, plan, runs, tried, entered)
        what = rig.say_reason(Notice(code="preflight", names=(environment.name,)))
        losses.repeat(what, machines_of_environment(environment), again, within)

    items = [(plan.experiment.environment(name), tuple(runs.values())) for name, runs in _by_boot(plan, wanted)]
    follow_lanes(rig, plan, items, lambda item: machines_of_environment(item[0]), attempt)
    choose_rates(rig, plan, tried.maxima)
    choose_ends(rig, plan, tried.ends)
    _choose_sampling(rig, plan, tried.fastest)


def _by_boot(plan: Plan, wanted: Mapping[str, dict[str, PlannedRun]]) -> Sequence[tuple[str, dict[str, PlannedRun]]]:
    """Environments grouped by their boot, so that each machine boots as rarely as possible."""
    groups: dict[object, list[tuple[str, dict[str, PlannedRun]]]] = {}
    for name, runs in wanted.items():
        environment = plan.experiment.environment(name)
        groups.setdefault((environment.host, boot_of(environment)), []).append((name, runs))
    return [each for group in groups.values() for each in group]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """What trials showed: transactions per second of the fastest environment by cell, maxima, ends of ladders."""

    fastest: dict[str, float] = field(default_factory=dict)
    maxima: Maxima = field(default_factory=dict)
    ends: Ends = field(default_factory=dict)


def _try_environment(rig: Rig, plan: Plan, runs: Sequence[PlannedRun], tried: _Tried, entered: set[HostSpec]) -> None:
    """One environment on its machine: each of its datasets is cloned and started once, with the cells that use it."""
    arms = [make_arm(plan, run) for run in runs]
    environment = arms[0].environment
    with targets_entered(rig, [environment]):
        if environment.host not in entered:
            _warn_of_emulation(rig, plan, environment)
            entered.add(environment.host)
        _try_datasets(rig, plan, arms, tried)


def _warn_of_emulation(rig: Rig, plan: Plan, environment: Environment) -> None:
    if plan.experiment.synthetic is not None:
        rig.warn(Notice(code="declared_values"))
    elif how := rig.server_host(environment).fingerprint.facts.get(EMULATION):
        if environment.host.remote:
            rig.warn(Notice(code="emulated_host", how="other", names=(environment.host.text,), said=how))
        else:
            rig.warn(Notice(code="emulated_host", said=how))


def _try_datasets(rig: Rig, plan: Plan, arms: Sequence[ActiveArm], tried: _Tried) -> None:
    supply = rig.supply(arms[0].environment)
    together: dict[str, tuple[Dataset, list[ActiveArm]]] = {}
    for arm in arms:
        text = f"{arm.environment.title}: {arm.cell.workload}, {arm.cell.size}"
        rig.events.emit(Event(kind=EventKind.BUILDING, run=arm.planned.identity, text=text))
        dataset = supply.datasets.ensure(arm.environment, supply.build, arm.cell)
        together.setdefault(dataset.identity, (dataset, []))[1].append(arm)
    for dataset, users in together.values():
        with layers_undone(rig, [arms[0].environment]):
            _try_dataset(rig, plan, users, dataset, tried)


def _try_dataset(rig: Rig, plan: Plan, arms: Sequence[ActiveArm], dataset: Dataset, tried: _Tried) -> None:
    environment = arms[0].environment
    supply = rig.supply(environment)
    launch = prepare_layers(rig, arms[0], supply, dataset)
    clone = supply.datasets.clone(dataset, f"preflight-{environment.name}", launch.data, launch.wal)
    try:
        server = supply.control.start(environment, supply.build, clone, launch)
        try:
            with naming_the_disk({environment.name: server}, "while the environment {} was tried"):
                _try_cells(rig, arms, server, tried)
                climb_ladders(rig, plan, arms, server, tried.maxima, tried.ends)
        finally:
            to_the_end(partial(supply.control.stop, server))
    finally:
        to_the_end(partial(supply.datasets.discard, clone))


def _try_cells(rig: Rig, arms: Sequence[ActiveArm], server: RunningServer, tried: _Tried) -> None:
    assert_levels(rig, arms[0], server)
    _refuse_changed(rig, arms[0])
    for arm in arms:
        for number in range(len(arm.cell.scripts)):
            _try_script(rig, arm, server, number)
        tps: float | None = None
        if arm.cell.identity not in rig.sampling:
            tps = _probe(rig, arm, server)
        if tps is not None and rig.driver(arm.environment, arm.cell).capabilities.transaction_log:
            tried.fastest[arm.cell.identity] = max(tps, tried.fastest.get(arm.cell.identity, 0.0))
        measure_maximum(rig, arm, server, tried.maxima)
        ensure_ceiling(rig, arm, server, tps)


def _refuse_changed(rig: Rig, arm: ActiveArm) -> None:
    """All runs to come would be invalid."""
    for remark in arm.remarks:
        if remark.code == "fingerprint_changed":
            raise HostNotFitError(
                rig.say_reason(remark),
                where=f"environment {arm.environment.name}",
                remedy="undo the change, or start a new study (--study DIR): this one would mix measurements of both "
                "states",
            )


def _try_script(rig: Rig, arm: ActiveArm, server: RunningServer, number: int) -> None:
    script = arm.cell.scripts[number]
    rig.events.emit(Event(kind=EventKind.STEP, run=arm.planned.identity, text=f"try {script.file}"))
    load = make_load(rig, arm, server, seconds=0, seed=0)
    alone = replace(load.cell, clients=1, threads=1, rate=None, latency_limit=None, scripts=(script,))
    folder = fresh_folder(rig, arm, f"try-{number}")
    driver = rig.driver(arm.environment, arm.cell)
    process = driver.start(replace(load, cell=alone, progress=None, transactions=1), folder)
    try:
        code = process.wait(timeout=_TRIAL_TIMEOUT).code
    except TimeoutError:
        process.signal(StopSignal.KILL, group=True)
        raise ServerFailedError(
            f"the script did not end within {_TRIAL_TIMEOUT:.0f} s when it was tried once",
            where=script.file,
            remedy="a transaction must be short",
        ) from None
    result = driver.parse(driver.collect(folder))
    clear_scratch(rig, arm)
    if code != 0 or result.errors:
        raise ServerFailedError(
            f"the script failed when it was tried once on {arm.environment.title}",
            where=script.file,
            details=result.errors[:5],
            remedy="fix the script; it was tried alone, with one client",
        )


def _probe(rig: Rig, arm: ActiveArm, server: RunningServer) -> float:
    """Transactions per second of a second of the cell; 0 where it does not run: the run itself will say why."""
    rig.events.emit(Event(kind=EventKind.STEP, run=arm.planned.identity, text="probe"))
    load = make_load(rig, arm, server, seconds=_PROBE_SECONDS, seed=arm.planned.seed + 2)
    drive(rig, arm, load, "probe")
    driver = rig.driver(arm.environment, arm.cell)
    result = driver.parse(driver.collect(scratch_folder(rig, arm, "probe")))
    clear_scratch(rig, arm)
    return result.tps or 0.0


def _choose_sampling(rig: Rig, plan: Plan, fastest: dict[str, float]) -> None:
    """A power of two that keeps the log of the fastest arm small; kept in the study, so that a resume cannot change it.

    A cell in which nothing ran gets no log at all.
    """
    for cell, tps in fastest.items():
        if tps > 0:
            rate, most = 1.0, LOG_LINES_PER_SECOND
            if plan.experiment.cell(cell).objective is not None:
                most *= _MORE_LINES_IN_STEPS
            while rate * min(tps, rig.rates.get(cell, tps)) > most:
                rate /= 2
            rig.sampling[cell] = rate
    if fastest:
        rig.store.keep_fingerprint(
            SAMPLING, Fingerprint(facts={cell: repr(rate) for cell, rate in rig.sampling.items()})
        )
