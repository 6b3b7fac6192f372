"""Carry out an experiment: make or resume its study, until done, out of budget or interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from pgstrata import __version__
from pgstrata.app.boots import begin_reboot, own_boot
from pgstrata.app.host_floors import CONDITIONS, harvest_floors, has_control, has_one_rig, keep_floors, observe_rig
from pgstrata.app.machine import Machine, open_machine
from pgstrata.app.own_boots import refuse_volatile
from pgstrata.app.places import study_key
from pgstrata.app.resuming import own_unit, resuming
from pgstrata.app.site import OpenedHost, open_site
from pgstrata.app.study_hosts import StudyHosts, observe_room, scratch
from pgstrata.app.vms import opened_vm
from pgstrata.app.wiring import make_derive, make_rig
from pgstrata.conduct.cost import SPENT, UnmeasuredTime, own_seconds
from pgstrata.conduct.loop import Conduct, Ending
from pgstrata.conduct.rig import to_the_end
from pgstrata.errors import InterruptedByUserError, PgstrataError, RebootError, UsageError
from pgstrata.ledger.undo import read_state
from pgstrata.model.boot import boot_of, booted_hosts
from pgstrata.model.changes import Entry
from pgstrata.model.experiment import HostKind, HostSpec
from pgstrata.model.plan import Plan
from pgstrata.plan.forecast import forecast
from pgstrata.plan.refusals import refuse_room
from pgstrata.ports.events import Event, EventKind, Events
from pgstrata.ports.host import Command
from pgstrata.ports.store import Store
from pgstrata.ports.studies import StoredStudy, StudyRepository
from pgstrata.ports.target import Target
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.sources.ladders import LADDERS, cut_ladders
from pgstrata.system.boots import plain_reboot
from pgstrata.system.units import Repeated
from pgstrata.vms.machine import VirtualMachine
from pgstrata.workloads import builtin_workloads


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """Where the study is and why the run ended.

    `done` of `total` runs are in the study, `measured` of them are new. `block_seconds` is what is expected of the next
    block, or was of the last one; `preparing` are the seconds before the first block of this call. `reboots_into` is
    the kernel that this machine boots now, because the study needs it; `goes_home`: the study is over, and this machine
    has to boot its own kernel (`go_home`).
    """

    study: StoredStudy
    ending: Ending
    done: int
    total: int
    measured: int
    block_seconds: float
    preparing: float
    reboots_into: str = ""
    goes_home: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reboots:
    """Whether this machine may be rebooted, and the command that is then given again by itself after each boot."""

    allowed: bool = False
    repeated: Repeated | None = None


NO_REBOOTS: Final = Reboots()


def default_study(studies: StudyRepository, file: Path, plan: Plan) -> StoredStudy:
    """NAME-IDENTITY: the same command finds the same study."""
    return studies.named(f"{file.stem}-{plan.identity[:8]}")


def run_experiment(
    plan: Plan,
    study: StoredStudy,
    events: Events,
    *,
    budget: float | None = None,
    stop_early: bool = True,
    reboots: Reboots = NO_REBOOTS,
) -> RunOutcome:
    """Measure what is missing.

    Args:
        plan: what is to be done.
        study: folder of the study, made or resumed.
        events: where progress goes.
        budget: seconds for this call, building and trying included; None means what is left of the experiment's own.
        stop_early: leave out what is decided; a noise floor and a calibration need all their blocks.
        reboots: of this machine. If the study needs one, it has begun when this returns.

    Raises:
        UsageError: this machine would have to be rebooted, and may not be.
        InterruptedByUserError: Ctrl-C or SIGTERM; everything that was finished is kept.
        HostNotFitError: another pgstrata is at work on this host, or one has left it changed.
    """
    tell = _teller(events)
    _refuse_reboots(plan, reboots)
    with (
        open_machine(tell) as machine,
        _having(plan, machine, study.identity, tell, reboots.repeated) as hosts,
        _staying(hosts, events),
    ):
        outcome = _measure(plan, hosts, study, events, _Limits(budget=budget, spent=0.0, stop_early=stop_early))
        wanted = hosts.next_boot
        if wanted is None:
            return replace(outcome, goes_home=hosts.goes_home)
        begin_reboot(hosts[HostSpec()], hosts, wanted)
        return replace(outcome, reboots_into=wanted.text)


def _measure(plan: Plan, hosts: StudyHosts, study: StoredStudy, events: Events, limits: _Limits) -> RunOutcome:
    with study.write(plan, __version__, make_derive(plan.experiment)) as store:
        # with the secrets of the plan given, and the floors that were frozen when the study was made
        plan = store.plan
        if HostSpec() in booted_hosts(plan.experiment.environments):
            places = hosts[HostSpec()].places
            refuse_volatile(
                hosts.machine.here, (str(Path(str(study)).absolute()), places.state, places.cache, places.data)
            )
        if has_one_rig(plan.experiment) and not store.committed() and store.fingerprint(CONDITIONS) is None:
            store.keep_fingerprint(CONDITIONS, observe_rig(plan.experiment))
        if limits.budget is None:
            limits = replace(limits, budget=plan.experiment.budget, spent=seconds_spent(study))
        before = len(store.committed())
        try:
            conduct, ending = _carry_out(plan, hosts, store, events, limits)
        except KeyboardInterrupt:
            raise InterruptedByUserError(
                f"stopped: {len(store.committed())} of {len(_remaining(plan, store).runs)} runs are kept",
                where=str(study),
                remedy="give the same command again to go on",
            ) from None
        done = len(store.committed())
        plan = _remaining(plan, store)
    if done > before and has_control(plan):
        _keep_noise(plan, study, events)
    events.emit(Event(kind=EventKind.STUDY_FINISHED, text=str(ending), done=done, total=len(plan.runs)))
    return RunOutcome(study=study, ending=ending, done=done, total=len(plan.runs), measured=done - before,
                      block_seconds=conduct.block_seconds, preparing=conduct.preparing)  # fmt: skip


def _refuse_reboots(plan: Plan, reboots: Reboots) -> None:
    """UsageError if the plan needs reboots of this machine, which nobody has allowed."""
    if HostSpec() in booted_hosts(plan.experiment.environments) and not reboots.allowed:
        raise UsageError(
            "this experiment reboots this machine into other kernels, which ends everything that runs on it",
            remedy="save your work, then use `pgstrata run --reboot` and give the same command again after each boot, "
            "or use `--resume-after-boot`, and systemd gives it",
        )


@contextmanager
def _staying(hosts: StudyHosts, events: Events) -> Iterator[None]:
    """Drop a pending reboot after an error or an interruption: the user may want to look first."""
    try:
        yield
    except BaseException:
        if hosts.next_boot is not None or hosts.goes_home:
            hosts.next_boot = None
            text = (
                "this machine was not rebooted, and may not run its default kernel: give the same command again to go "
                "on, or `pgstrata host restore` to boot the default kernel"
            )
            with suppress(PgstrataError):
                events.emit(Event(kind=EventKind.WARNING, text=text))
        raise


def go_home() -> None:
    """Boot this machine's default kernel, after a study that has booted another one; begun when this returns."""
    with open_site(None) as here:
        here.transport.run(Command(argv=(*here.privilege, *plain_reboot().argv)))


def _remaining(plan: Plan, store: Store) -> Plan:
    """The plan as far as its ladders go."""
    return cut_ladders(plan, store.fingerprint(LADDERS))[0]


def _teller(events: Events) -> Callable[[str], None]:
    return lambda text: events.emit(Event(kind=EventKind.NOTE, text=text))


def _keep_noise(plan: Plan, study: StoredStudy, events: Events) -> None:
    """What a control has shown is kept as the noise floor of its host, for later studies; never a reason to fail."""
    try:
        harvest = harvest_floors(study, builtin_workloads())
        if harvest.records:
            keep_floors(harvest.records)
            text = f"the differences of the control are kept as a noise floor of {plan.experiment.hosts[0].named}"
            events.emit(Event(kind=EventKind.NOTE, text=text))
    except PgstrataError as error:
        events.emit(Event(kind=EventKind.WARNING, text=f"{error.where}: {error.what}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    budget: float | None
    spent: float
    stop_early: bool


@contextmanager
def _having(
    plan: Plan, machine: Machine, study: str, tell: Callable[[str], None], repeated: Repeated | None
) -> Iterator[StudyHosts]:
    """Open and lock all machines of a plan, this one always and first, because it coordinates everything."""
    experiment = plan.experiment
    from_here = {each.host for each in experiment.environments if HostSpec() in each.client_hosts}
    with ExitStack() as off:
        vms = {spec: _first_boot(plan, spec, machine, study, tell, off) for spec in _vms_of(plan)}
        hosts = StudyHosts(machine, study, tell, from_here, vms)
        off.callback(hosts.close)
        for spec in dict.fromkeys((HostSpec(), *experiment.machines)):
            opened = hosts.open(spec, keep=partial(_is_kept, machine, study, spec))
            if not spec.remote:
                off.enter_context(resuming(hosts, repeated))
            elif spec in experiment.hosts:
                refuse_small(plan, opened)
        yield hosts


def _is_kept(machine: Machine, study: str, spec: HostSpec, entry: Entry) -> bool:
    """Whether a change that an earlier command of this study has left on a machine is still wanted.

    Another machine that was booted is brought home by `HostBoots`; this one goes on as it is.
    """
    if spec.remote:
        return own_boot(entry, study)
    if own_boot(entry, study):
        return read_state(machine.here, entry.what, entry.read) == entry.value
    return own_unit(entry, study)


def _vms_of(plan: Plan) -> tuple[HostSpec, ...]:
    return tuple(spec for spec in plan.experiment.hosts if spec.kind is HostKind.VM)


def _first_boot(
    plan: Plan, spec: HostSpec, machine: Machine, study: str, tell: Callable[[str], None], off: ExitStack
) -> VirtualMachine:
    """A virtual machine that is off, with the boot of its first environment; closing `off` switches it off."""
    vm = off.enter_context(opened_vm(machine, spec.destination, study_key(study), tell))
    vm.boot = boot_of(plan.experiment.on_host(spec).environments[0])
    vm.check(vm.boot)
    return vm


def refuse_small(plan: Plan, opened: OpenedHost) -> None:
    """PlanRefusedError where another machine has too little room for its part of the plan."""
    part = plan.experiment.on_host(opened.spec)
    workloads = builtin_workloads()
    cost = forecast(part, workloads, plan.designs)
    room, where = observe_room(opened), opened.spec.text
    refuse_room(part, workloads, room, cost, plan.designs, where=where, say=say_reason)


def _carry_out(plan: Plan, hosts: StudyHosts, store: Store, events: Events, limits: _Limits) -> tuple[Conduct, Ending]:
    machine = hosts.machine
    # servers that are fetched or built first are a part of what the user waits for
    begun = machine.clock.monotonic()
    for spec in dict.fromkeys((HostSpec(), *plan.experiment.machines)):
        hosts.tidy(spec)
    rig = make_rig(plan, machine, store, events, hosts.study, hosts)
    with scratch(rig.here.host, rig.here.scratch, hosts.study):
        conduct = Conduct(
            rig=rig, plan=plan, budget=limits.budget, spent=limits.spent, stop_early=limits.stop_early, begun=begun
        )
        try:
            return conduct, conduct.carry_out()
        except RebootError:
            return conduct, Ending.REBOOT
        finally:
            for spec, target in rig.targets.items():
                _give_back(spec, target, events)


def _give_back(spec: HostSpec, target: Target, events: Events) -> None:
    """Boot a machine's own kernel again; if that fails there is a warning, and its ledger keeps the entry."""
    try:
        to_the_end(target.give_back)
    except PgstrataError as error:
        text = (
            f"{spec.text} could not be booted back into its own kernel: {error.what}; `pgstrata host restore` does that"
        )
        events.emit(Event(kind=EventKind.WARNING, text=text))


def seconds_spent(study: StoredStudy) -> float:
    """Seconds that a study took: its finished runs, and what was kept of the time before and around them."""
    beside = UnmeasuredTime.of(study.fingerprints().get(SPENT))
    return sum(map(own_seconds, study.load(metrics=()).runs)) + beside.seconds
