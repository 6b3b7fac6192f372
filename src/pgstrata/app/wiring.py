"""The only place where rooms are wired together: a plan and a machine become a rig."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pgstrata import __version__
from pgstrata.app.host import make_ledger
from pgstrata.app.machine import Machine, libpq_variables
from pgstrata.app.site import site_here
from pgstrata.collectors.canary.sampler import CanaryCollector
from pgstrata.collectors.hostfacts.parse import parse_host_facts
from pgstrata.collectors.hostfacts.sampler import capture_host_facts
from pgstrata.collectors.pgstat.sampler import PgstatCollector
from pgstrata.collectors.procfs.sampler import ProcfsCollector
from pgstrata.conduct.derive import derive_record
from pgstrata.conduct.rig import Rig, Supply
from pgstrata.datasets.cluster import ClusterDatasets, Recipe
from pgstrata.datasets.databases import DatabaseDatasets
from pgstrata.drivers.pgbench.driver import PgbenchDriver
from pgstrata.drivers.pgbench.parse import parse_result
from pgstrata.errors import PlanRefusedError
from pgstrata.layers.connection import ConnectionLayer
from pgstrata.layers.cpu import CpuLayer
from pgstrata.layers.limits import LimitsLayer
from pgstrata.layers.memory import MemoryLayer
from pgstrata.layers.server import ClusterControl, RunningControl, ServerLayer
from pgstrata.layers.settings import SettingsLayer
from pgstrata.layers.storage import StorageLayer
from pgstrata.layers.sysctl import SysctlLayer
from pgstrata.model.experiment import Allow, ConnectionKind, Environment, ServerKind
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.model.server import Build
from pgstrata.ports.collector import Collector
from pgstrata.ports.events import Event, EventKind, Events
from pgstrata.ports.host import Host
from pgstrata.ports.layer import HostLayer
from pgstrata.ports.server import Sql
from pgstrata.ports.store import Store
from pgstrata.servers.binary import has_tls
from pgstrata.servers.psql import PsqlSql
from pgstrata.servers.running import RunningSource, address_of
from pgstrata.store.serialise import parse_header
from pgstrata.workloads import builtin_workloads
from pgstrata.workloads.pgbench_data import marker_sql, verify_sql, warm_sql


def make_collectors() -> tuple[Collector, ...]:
    """Collectors in the order of capture before a run; afterwards the order is reversed."""
    return (CanaryCollector(), PgstatCollector(), ProcfsCollector())


def make_recipe() -> Recipe:
    """How the data of the built-in workloads are marked and verified."""
    return Recipe(verify=verify_sql, marker=marker_sql())


def make_derive(allow: Allow) -> Callable[[Mapping[str, bytes]], RunRecord]:
    """The function that makes a record of a run's evidence, for the store."""
    collectors = make_collectors()

    def derive(evidence: Mapping[str, bytes]) -> RunRecord:
        return derive_record(parse_header(evidence["run.json"]), evidence, parse_result, collectors, allow)

    return derive


def make_rig(plan: Plan, machine: Machine, store: Store, events: Events, study: str) -> Rig:
    """Everything that carries out a plan on this machine; servers are fetched where they must be."""
    host = _choose_host(plan, machine)
    tools = machine.servers.client_tools(tls=_may_encrypt(plan))
    sql = PsqlSql(host, tools)
    builds = resolve_builds(plan, machine, sql, events)
    host_layers = make_host_layers(host, study_key(study), machine.places.data, plan.experiment.environments)
    facts = capture_host_facts(machine.here)
    fingerprint = parse_host_facts(facts)
    for name in ("host", "client"):
        if store.fingerprint(name) is None:
            store.keep_fingerprint(name, fingerprint)
    return Rig(
        host=host,
        client=host,
        clock=machine.clock,
        store=store,
        driver=PgbenchDriver(host, tools),
        sql=sql,
        collectors=make_collectors(),
        layers=(ServerLayer(), SettingsLayer(), ConnectionLayer(), *host_layers),
        host_layers=host_layers,
        ledger=make_ledger(site_here(machine.here), machine.clock, study),
        workloads=builtin_workloads(),
        supplies=_Supplies(machine=machine, host=host, sql=sql, tools=tools, study=study_key(study)).make(plan, builds),
        events=events,
        scratch=f"{machine.places.memory}/{study_key(study)}",
        warm_sql=warm_sql,
        host_facts=facts,
        host_fingerprint=fingerprint,
        version=__version__,
    )


def make_host_layers(host: Host, key: str, folder: str, environments: Sequence[Environment]) -> tuple[HostLayer, ...]:
    """The layers of a host that can be changed, the lowest first.

    Args:
        host: acts as the user that servers run as.
        key: names what belongs to the study on the host; safe in paths.
        folder: where data lie unless a layer wants them elsewhere.
        environments: all of the experiment, because a group of one of them concerns the others.
    """
    storage = StorageLayer(host, key, folder)
    return (
        SysctlLayer(host), storage, MemoryLayer(host),
        LimitsLayer(host, key, storage.folder_of, environments), CpuLayer(host, key, environments=environments),
    )  # fmt: skip


def socket_root(machine: Machine, study: str) -> str:
    """The folder below which the servers of a study have their sockets."""
    return f"{machine.places.run}/{study_key(study)}"


def study_key(study: str) -> str:
    """A short name for a study's folders and markers on the host."""
    return hashlib.sha256(study.encode()).hexdigest()[:12]


def resolve_builds(plan: Plan, machine: Machine, sql: Sql, events: Events) -> Mapping[str, Build]:
    """The build of each environment by name; PlanRefusedError where compilers are mixed or assertions are on."""
    sources = machine.servers.alike(environment.server for environment in plan.experiment.environments)
    known: dict[str, Build] = {}
    builds: dict[str, Build] = {}
    for environment in plan.experiment.environments:
        text = environment.server.text
        if text not in known:
            events.emit(Event(kind=EventKind.STEP, text=f"server {text}"))
            running = environment.server.kind is ServerKind.DSN
            source = RunningSource(sql, libpq_variables(os.environ)) if running else machine.servers
            known[text] = source.resolve(sources.get(text, environment.server))
        builds[environment.name] = known[text]
    _refuse_unfair(plan, builds)
    _refuse_without_tls(plan, builds)
    return builds


def _refuse_unfair(plan: Plan, builds: Mapping[str, Build]) -> None:
    allow = plan.experiment.allow
    if not allow.assertions:
        for name, build in builds.items():
            if build.assertions:
                raise PlanRefusedError(
                    "this server is built with assertions, which cost more than most differences", where=name,
                    remedy="use a build without --enable-cassert, or set [allow] assertions = true",
                )  # fmt: skip
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
                "this server is built without TLS", where=environment.title,
                remedy='use one of the catalogue, such as server = "18", or connection = "tcp"',
            )  # fmt: skip


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Supplies:
    """Makes one supply for each environment; environments of one kind share datasets and control."""

    machine: Machine
    host: Host
    sql: PsqlSql
    tools: Build
    study: str

    def make(self, plan: Plan, builds: Mapping[str, Build]) -> Mapping[str, Supply]:
        clusters = self._clusters()
        return {
            environment.name: self._supply(environment, builds[environment.name], clusters)
            for environment in plan.experiment.environments
        }

    def _clusters(self) -> tuple[ClusterDatasets, ClusterControl]:
        machine = self.machine
        control = ClusterControl(machine.host, machine.clock, f"{machine.places.run}/{self.study}")
        datasets = ClusterDatasets(
            host=machine.host, sql=self.sql, control=control, tools=self.tools, workloads=builtin_workloads(),
            recipe=make_recipe(), clock=machine.clock, root=machine.places.data, study=self.study,
        )  # fmt: skip
        return datasets, control

    def _supply(
        self, environment: Environment, build: Build, clusters: tuple[ClusterDatasets, ClusterControl]
    ) -> Supply:
        if environment.server.kind is not ServerKind.DSN:
            return Supply(build=build, datasets=clusters[0], control=clusters[1])
        machine = self.machine
        address = address_of(environment.server, libpq_variables(os.environ))
        datasets = DatabaseDatasets(
            host=self.host, sql=self.sql, address=address, tools=self.tools, workloads=builtin_workloads(),
            recipe=make_recipe(), clock=machine.clock,
            scratch=f"{machine.places.memory}/{self.study}/{environment.name}", study=self.study,
        )  # fmt: skip
        return Supply(build=build, datasets=datasets, control=RunningControl(address))
