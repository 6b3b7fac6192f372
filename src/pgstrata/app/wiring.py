"""The only place where rooms are wired together, with `targets` beside it: a plan and machines become a rig."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from pgstrata import __version__
from pgstrata.app.clients import ClientHere, ClientMachines, make_client
from pgstrata.app.machine import Machine
from pgstrata.app.places import study_key
from pgstrata.app.study_hosts import StudyHosts
from pgstrata.app.targets import MachineTarget
from pgstrata.collectors.canary import CanaryCollector
from pgstrata.collectors.hostfacts.sampler import capture_host_facts
from pgstrata.collectors.perf.sampler import PerfSampler
from pgstrata.collectors.pgstat.sampler import PgstatCollector
from pgstrata.collectors.pgstat.seconds import CountersSampler
from pgstrata.collectors.plans import PlanExplainer
from pgstrata.collectors.procfs.sampler import ClientCollector, ProcfsCollector
from pgstrata.collectors.procfs.seconds import SecondsSampler
from pgstrata.collectors.queries.sampler import QueriesCollector, use_of_extension
from pgstrata.collectors.sessions.sampler import SessionsSampler
from pgstrata.collectors.statements import Use
from pgstrata.collectors.waits.sampler import WaitsSampler, use_of_waits
from pgstrata.conduct.derive import derive_record
from pgstrata.conduct.rig import Rig
from pgstrata.drivers.registry import find_driver
from pgstrata.errors import PlanRefusedError, StudyError
from pgstrata.hosts.lanes import ThreadLanes
from pgstrata.layers.server import ServerLayer
from pgstrata.layers.settings import ConnectionLayer, SettingsLayer
from pgstrata.model.experiment import HERE, ConnectionKind, Experiment, HostSpec, ServerKind
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.model.server import Build
from pgstrata.ports.collector import Collector, Sampler
from pgstrata.ports.events import Events
from pgstrata.ports.host import Host
from pgstrata.ports.store import Store
from pgstrata.ports.studies import StoredStudy
from pgstrata.ports.target import ClientHost, ClientSide
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.servers.psql import PsqlSql
from pgstrata.servers.version import has_tls
from pgstrata.store.serialise import parse_header
from pgstrata.workloads import builtin_workloads
from pgstrata.workloads.data import warm_sql


def make_collectors(experiment: Experiment | None = None) -> tuple[Collector, ...]:
    """Collectors in the order of capture before a run; afterwards the order is reversed.

    Without an experiment their parsers only.
    """
    queries = QueriesCollector(use_of_extension(experiment))
    return (CanaryCollector(), PgstatCollector(), queries, ClientCollector(), ProcfsCollector())


def make_samplers(*, query_text: bool = True, waits: Use | None = None) -> tuple[Sampler, ...]:
    """What is at work beside every measured window."""
    sessions = SessionsSampler(query_text=query_text)
    return (sessions, SecondsSampler(), CountersSampler(), WaitsSampler(waits), PerfSampler())


def choose_samplers(experiment: Experiment) -> tuple[Sampler, ...]:
    """The samplers that an experiment wants."""
    *usual, perf = make_samplers(query_text=experiment.query_text, waits=use_of_waits(experiment))
    return (*(usual if experiment.diagnosis else ()), *((perf,) if experiment.profile_cpu else ()))


def make_derive(experiment: Experiment) -> Callable[[Mapping[str, bytes]], RunRecord]:
    """The function that makes a record of the evidence of one of an experiment's runs, for the store."""
    collectors, samplers, explainer = make_collectors(), make_samplers(), PlanExplainer()
    drivers = {cell.identity: find_driver(cell.driver).parser() for cell in experiment.cells}

    def derive(evidence: Mapping[str, bytes]) -> RunRecord:
        header = parse_header(evidence["run.json"])
        if header.cell not in drivers:
            raise StudyError(f"the run {header.identity} is of no cell of this study's plan", where=header.cell)
        return derive_record(
            header,
            evidence,
            drivers[header.cell],
            collectors,
            experiment.allow,
            samplers,
            explainer,
            experiment.synthetic,
        )

    return derive


def make_rig(
    plan: Plan, machine: Machine, store: Store, events: Events, study: str, hosts: StudyHosts | None = None
) -> Rig:
    """Everything that carries out a plan; servers are fetched where they must be, and sent to where they will run.

    Args:
        plan: what is to be done.
        machine: this one, on which the client is.
        store: of the study.
        events: where progress goes.
        study: its name.
        hosts: the machines of the plan, opened; None where there is but this one.
    """
    experiment, client = plan.experiment, _choose_host(plan, machine)
    keys = tuple(dict.fromkeys(cell.driver for cell in experiment.cells))
    if HostSpec() in experiment.machines:
        for key in keys:
            find_driver(key).require(client)
    tls = _may_encrypt(plan)
    tools = machine.servers.client_tools(tls=tls)
    scratch = f"{machine.places.memory}/{study_key(study)}"
    here = make_client(client, tools, keys, scratch=scratch, facts=capture_host_facts(machine.here))
    sides: dict[tuple[HostSpec, ...], ClientSide] = {HERE: ClientHere(found=here)}
    make_target = partial(
        MachineTarget, plan=plan, machine=machine, client=client, sql=PsqlSql(client, tools), tools=tools,
        events=events, store=store, study=study, facts=here.facts, hosts=hosts, sides=sides, tls=tls,
        sources=machine.servers.alike(each.server for each in experiment.environments),
    )  # fmt: skip
    targets = {spec: make_target(spec=spec) for spec in dict.fromkeys((*experiment.hosts, *experiment.elsewhere))}
    if hosts is not None:
        sides.update(_open_sides(experiment, targets, here, hosts))
    builds = {name: build for target in targets.values() for name, build in target.provision().items()}
    _refuse_unfair(plan, builds)
    _refuse_without_tls(plan, builds)
    baseline = experiment.environment(experiment.baseline)
    if store.fingerprint("client") is None:
        store.keep_fingerprint("client", sides[baseline.client_hosts].observe().fingerprint)
    return Rig(
        targets=targets,
        baseline=baseline.host,
        here=here,
        clients=sides,
        clock=machine.clock,
        store=store,
        collectors=make_collectors(experiment),
        layers=(ServerLayer(), SettingsLayer(), ConnectionLayer()),
        workloads=builtin_workloads(),
        events=events,
        warm_sql=warm_sql,
        say_reason=say_reason,
        version=__version__,
        samplers=choose_samplers(experiment),
        lanes=ThreadLanes(),
        explainer=PlanExplainer() if experiment.diagnosis and experiment.query_text else None,
    )


def _open_sides(
    experiment: Experiment, targets: Mapping[HostSpec, MachineTarget], here: ClientHost, hosts: StudyHosts
) -> Iterator[tuple[tuple[HostSpec, ...], ClientSide]]:
    """The machines of clients other than this one, provided with the programs that clients need."""
    sides = [side for side in experiment.client_sides if side != HERE]
    for spec in dict.fromkeys(each for side in sides for each in side if each.remote):
        targets[spec].provision_client()
    for side in sides:
        yield side, ClientMachines(specs=side, targets=targets, here=here, hosts=hosts, drivers=tuple(here.drivers))


def _refuse_unfair(plan: Plan, builds: Mapping[str, Build]) -> None:
    allow = plan.experiment.allow
    if not allow.assertions:
        for name, build in builds.items():
            if build.assertions:
                raise PlanRefusedError(
                    "this server is built with assertions, which cost more than most differences",
                    where=name,
                    remedy="use a build without --enable-cassert, or set [allow] assertions = true",
                )
    if _confounded(builds.values(), "system", _system) and not allow.mixed_compilers:
        raise PlanRefusedError(
            "some servers are built by meson and others by configure, whose effect could not be told from the servers'",
            details=tuple(sorted(f"{name}: {_system(build)}" for name, build in builds.items() if _system(build))),
            remedy='build all by one (build.system = "configure"), or set [allow] mixed_compilers = true',
        )
    if _confounded(builds.values(), "compiler", lambda build: build.compiler) and not allow.mixed_compilers:
        raise PlanRefusedError(
            "the servers were built by different compilers, whose effect could not be told from the servers'",
            details=tuple(sorted(f"{name}: {build.compiler}" for name, build in builds.items())),
            remedy="compare builds of one compiler, or set [allow] mixed_compilers = true",
        )


def _system(build: Build) -> str:
    """What built a server here; empty where somebody else built it."""
    return dict(build.spec.build).get("system", "")


def _confounded(builds: Iterable[Build], key: str, observed: Callable[[Build], str]) -> bool:
    """Whether builds differ in a property otherwise than by the factor `build.KEY` on the same sources.

    Such a factor tells the property's effect from that of the sources.
    """
    known = [build for build in builds if build.spec.kind is not ServerKind.DSN and observed(build)]
    groups: dict[str, list[Build]] = {}
    for build in known:
        groups.setdefault(dict(build.spec.build).get(key, ""), []).append(build)
    crossed = len({frozenset(build.spec.value for build in group) for group in groups.values()}) <= 1
    return any(len({observed(build) for build in group}) > 1 for group in (groups.values() if crossed else (known,)))


def _refuse_without_tls(plan: Plan, builds: Mapping[str, Build]) -> None:
    for environment in plan.experiment.environments:
        build = builds[environment.name]
        if environment.connection is ConnectionKind.TLS and build.configure and not has_tls(build.configure):
            raise PlanRefusedError(
                "this server is built without TLS",
                where=environment.title,
                remedy='use one of the catalogue, such as server = "18", or connection = "tcp"',
            )


def _may_encrypt(plan: Plan) -> bool:
    """The embedded client has no TLS; a running server may ask for it."""
    return any(
        environment.server.kind is ServerKind.DSN or environment.connection is ConnectionKind.TLS
        for environment in plan.experiment.environments
    )


def _choose_host(plan: Plan, machine: Machine) -> Host:
    """Where nothing is started, clients run as the user of pgstrata: service file, ~/.pgpass and PG* are that user's.

    Elsewhere the user's PG* variables must not reach servers and clients that are none of theirs.
    """
    alone = all(environment.server.kind is ServerKind.DSN for environment in plan.experiment.environments)
    return machine.here if alone else machine.host


def reparse(study: StoredStudy) -> int:
    """Derive all runs of a study anew; their number."""
    return study.reparse(make_derive(study.head().plan.experiment))
