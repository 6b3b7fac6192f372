"""The machines of a plan as targets: servers that are there or are sent there, layers, ledger, facts of each boot."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

from pgstrata.app.boots import HostBoots
from pgstrata.app.host import keep_nothing, make_ledger
from pgstrata.app.machine import Machine, libpq_variables
from pgstrata.app.own_boots import OwnBoots
from pgstrata.app.places import socket_root, study_key
from pgstrata.app.routes import find_way
from pgstrata.app.sent import SentServers, bring_file
from pgstrata.app.site import OpenedHost
from pgstrata.app.study_hosts import StudyHosts, local_host
from pgstrata.app.vm_boots import VmBoots
from pgstrata.boots.observe import find_unknown
from pgstrata.collectors.hostfacts.parse import find_shared, parse_host_facts
from pgstrata.collectors.hostfacts.sampler import capture_host_facts
from pgstrata.conduct.losses import reconnect, too_often
from pgstrata.datasets.cluster import ClusterDatasets
from pgstrata.datasets.databases import DatabaseDatasets, observe_coordinator
from pgstrata.datasets.recipe import DataRecipe
from pgstrata.drivers.registry import find_driver, load_data, verify_data
from pgstrata.errors import HostLostError
from pgstrata.hosts.clock import measure_clock
from pgstrata.hosts.ssh import SshHost
from pgstrata.layers.registry import make_host_layers
from pgstrata.layers.running import RunningControl
from pgstrata.layers.server import ClusterControl
from pgstrata.model.boot import boot_of, booted_hosts
from pgstrata.model.clocks import ClockOffset, offset_between
from pgstrata.model.experiment import HERE, Environment, HostKind, HostSpec, ServerKind, ServerSpec
from pgstrata.model.own_data import DataFile
from pgstrata.model.plan import Plan
from pgstrata.model.reasons import Notice
from pgstrata.model.server import Build
from pgstrata.model.shared import SharedResources
from pgstrata.ports.events import Event, EventKind, Events
from pgstrata.ports.host import BOOT_ID, Host
from pgstrata.ports.server import ServerSource
from pgstrata.ports.store import Store
from pgstrata.ports.target import ClientSide, Link, ServerHost, Supply
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.servers.psql import PsqlSql
from pgstrata.servers.supply import RunningSource, address_of
from pgstrata.workloads import builtin_workloads
from pgstrata.workloads.data import marker_sql

_SENDING: Final = "sending servers there"
_T = TypeVar("_T")


def make_recipe(bring: Callable[[DataFile, str], DataFile] | None = None) -> DataRecipe:
    """How the data of workloads are made, marked and verified; `bring` as in `DataRecipe`."""
    return DataRecipe(load=load_data, verify=verify_data, marker=marker_sql(), bring=bring)


@dataclass(slots=True, kw_only=True)
class MachineTarget:
    """An existing machine: this one, or one that ssh reaches; it is rebooted if a visit asks for it.

    `client`, `sql` and `tools` are the client's on this machine, `facts` what was read of it; `sources` are the servers
    of the whole plan as they are called here, `hosts` its machines, None where there is but this one, `store` that of
    its study. `sides` are the machines from which its servers are loaded, by `Environment.client_hosts`; `tls`: clients
    have to encrypt.
    """

    spec: HostSpec
    plan: Plan
    machine: Machine
    client: Host
    sql: PsqlSql
    tools: Build
    events: Events
    store: Store
    study: str
    facts: Mapping[str, bytes]
    sources: Mapping[str, ServerSpec]
    hosts: StudyHosts | None
    sides: Mapping[tuple[HostSpec, ...], ClientSide] = field(default_factory=dict)
    tls: bool = False
    _builds: dict[str, Build] = field(init=False, default_factory=dict)
    _tools: dict[bool, Build] = field(init=False, default_factory=dict)
    _sent: SentServers | None = field(init=False, default=None)
    _observed: ServerHost | None = field(init=False, default=None)
    _boots: HostBoots | VmBoots | OwnBoots | None = field(init=False, default=None)
    _doubted: set[str] = field(init=False, default_factory=set)
    """Words of command lines of which a warning was given."""

    def provision(self) -> Mapping[str, Build]:
        """As the port says; a machine that is lost meanwhile is waited for, as in the preflight."""
        own = self.spec.remote and any(each.server.kind is not ServerKind.DSN for each in self._environments)
        if own:
            # data are made there
            for key in {cell.driver for cell in self.plan.experiment.cells}:
                self._persist(partial(self._require_driver, key))
        if self.hosts is not None and self.spec in booted_hosts(self._environments):
            self._boots = self._make_boots(self.hosts)
            self._persist(partial(self._boots.require, [boot_of(each) for each in self._environments]))
        known: dict[str, Build] = {}
        for environment in self._environments:
            text = environment.server.text
            if text not in known:
                where = f" on {self.spec.text}" if self.spec.remote else ""
                self._step(f"server {text}{where}")
                server = self.sources.get(text, environment.server)
                known[text] = self._persist(partial(self._resolve, environment, server))
            self._builds[environment.name] = known[text]
        if own:
            self._persist(self._tools_there)
        return self._builds

    def provision_client(self) -> None:
        """Provide the programs that clients on this machine need; waits for a lost host as `provision` does."""
        for key in {cell.driver for cell in self.plan.experiment.cells}:
            self._persist(partial(self._require_driver, key))
        self._persist(self.client_tools)

    def client_tools(self) -> Build:
        """The build on that machine with psql and the programs of drivers, for its clients."""
        return self._tools_there(tls=self.tls)

    def _tools_there(self, *, tls: bool = False) -> Build:
        """They are sent and compared once, as servers are: a reboot changes no file of theirs."""
        if tls not in self._tools:
            self._tools[tls] = self._servers_there().client_tools(tls=tls)
        return self._tools[tls]

    def note_clock(self, clocks: ClockOffset) -> None:
        """Note if the clock of another machine is wrong."""
        if clocks.apart:
            offset = f"{clocks.offset_seconds:+.1f} s off this machine's"
            self._note(f"the clock of {self.spec.text} is {offset}; nothing depends on it")

    def _require_driver(self, key: str) -> None:
        find_driver(key).require(self._opened.host)

    def _make_boots(self, hosts: StudyHosts) -> HostBoots | VmBoots | OwnBoots:
        if not self.spec.remote:
            return OwnBoots(hosts=hosts, store=self.store)
        kind = VmBoots if self.spec.kind is HostKind.VM else HostBoots
        return kind(spec=self.spec, hosts=hosts, tell=self._step, gone=self._forget)

    def at_hand(self, environment: Environment) -> bool:
        """As the port says: whatever needs no reboot of this machine."""
        return self._boots is None or self._boots.at_hand(boot_of(environment))

    def boot(self, environments: Sequence[Environment], *, fresh: bool) -> None:
        """As the port says; a machine stays up if no environment asks for a boot."""
        if self._boots is not None and environments:
            wanted = boot_of(environments[0])
            self._boots.boot(wanted, fresh=fresh)
            self._doubt_words(wanted.options)

    def _doubt_words(self, words: Sequence[str]) -> None:
        """Warn once of each word that the kernel says it does not know: it may be compared without any effect."""
        opened = self._opened
        for word in find_unknown(opened.transport, opened.site.privilege, words):
            if word not in self._doubted:
                self._doubted.add(word)
                text = (
                    f"the kernel of {self.spec.named} does not know the option {word} of its command line, which may "
                    "have no effect: check its spelling, and the configuration of the kernel"
                )
                self.events.emit(Event(kind=EventKind.WARNING, text=text))

    def ready(self) -> None:
        """Nothing to do: a machine that reboots was waited for, and a connected one is ready."""

    def observe(self) -> ServerHost:
        """As the port says; observed again after a lost connection, such as by a reboot."""
        if self._observed is None:
            self._observed = self._look()
        return self._observed

    def release(self) -> None:
        """It stays as it is, for the next visit."""

    def give_back(self) -> None:
        if self._boots is not None:
            self._boots.give_back()

    def kernel(self) -> str:
        """As the port says; empty, too, where it cannot be read."""
        if self.spec.kind is not HostKind.SSH:
            return ""
        hosts = self._opened.host, self.machine.here
        found, own = (host.read_files((BOOT_ID,)).get(BOOT_ID, b"") for host in hosts)
        return "" if found == own else found.decode("ascii", "replace").strip()

    def silent(self) -> bool:
        try:
            self._opened.host.clock()
        except HostLostError:
            return True
        return False

    def reopen(self) -> None:
        assert self.hosts is not None
        self._forget()
        self.hosts.reopen(self.spec, keep=self._boots.keeps if self._boots is not None else keep_nothing)

    def _forget(self) -> None:
        """Forget facts of the machine that were read over a connection that is closed now."""
        self._sent = self._observed = None

    @property
    def _environments(self) -> tuple[Environment, ...]:
        return self.plan.experiment.on_host(self.spec).environments

    def _resolve(self, environment: Environment, server: ServerSpec) -> Build:
        return self._source(environment).resolve(server)

    def _persist(self, action: Callable[[], _T]) -> _T:
        """Do something on the machine, and again when it was lost over it and is there again.

        Raises:
            HostLostError, HostNotFitError: it does not come back, or is lost each time.
        """
        times = 0
        while True:
            try:
                return action()
            except HostLostError as error:
                times += 1
                if self.hosts is None or not self.spec.remote or too_often(error, _SENDING, times):
                    raise
                self._warn(Notice(code="connection_broke", names=(self.spec.text,), said=f"{_SENDING}: {error.what}"))
            reconnect(self.spec, self.reopen, sleep=self.machine.clock.sleep, say=self._warn)

    def _warn(self, notice: Notice) -> None:
        self.events.emit(Event(kind=EventKind.WARNING, text=say_reason(notice)))

    def _source(self, environment: Environment) -> ServerSource:
        if environment.server.kind is ServerKind.DSN:
            return RunningSource(self.sql, libpq_variables(os.environ))
        return self._servers_there() if self.spec.remote else self.machine.servers

    def _servers_there(self) -> SentServers:
        if self._sent is None:
            self._sent = SentServers.make(self.machine, self._opened, self._note)
        return self._sent

    def _step(self, text: str) -> None:
        self.events.emit(Event(kind=EventKind.STEP, text=text))

    def _note(self, text: str) -> None:
        self.events.emit(Event(kind=EventKind.NOTE, text=text))

    @property
    def _opened(self) -> OpenedHost:
        if not self.spec.remote:
            # where nothing is started here, everything is done as the client's user
            return replace(local_host(self.machine), host=self.client)
        assert self.hosts is not None
        return self.hosts[self.spec]

    def _look(self) -> ServerHost:
        spec, opened = self.spec, self._opened
        facts = capture_host_facts(opened.transport) if spec.remote else self.facts
        clocks = measure_clock(opened.transport, self.machine.clock) if spec.remote else None
        if clocks is not None:
            self.note_clock(clocks)
        return ServerHost(
            host=opened.host,
            layers=make_host_layers(
                opened.host,
                study_key(self.study),
                self._environments,
                data=opened.places.data,
                storage=opened.places.storage,
                clients=self._client_hosts,
            ),
            ledger=make_ledger(opened.site, self.machine.clock, self.study),
            supplies=self._supplies(opened),
            facts=facts,
            fingerprint=parse_host_facts(facts),
            links=self._links(facts, clocks),
        )

    def _client_hosts(self, environment: Environment) -> Sequence[Host]:
        return [generator.host for generator in self.sides[environment.client_hosts].observe().generators]

    def _links(self, facts: Mapping[str, bytes], clocks: ClockOffset | None) -> Mapping[str, Link]:
        """Links between this machine and those of its clients, by environment."""
        found: dict[str, Link] = {}
        for environment in (each for each in self._environments if each.apart):
            side = self.sides[environment.client_hosts].observe()
            known = {find_shared(generator.facts, facts) for generator in side.generators}
            shared = next(
                (each for each in (SharedResources.PROCESSES, SharedResources.KERNEL) if each in known),
                SharedResources.NOTHING,
            )
            found[environment.name] = Link(clocks=offset_between(clocks, side.clocks), shared=shared)
        for clients in dict.fromkeys(
            each.client_hosts for each in self._environments if found.get(each.name, Link()).shared
        ):
            whose = "the client's" if clients == HERE else f"that of {' and '.join(each.named for each in clients)}"
            self._note(f"{self.spec.named} is {whose} own machine (one kernel): they take CPU time from each other")
        return found

    def _supplies(self, opened: OpenedHost) -> Mapping[str, Supply]:
        """One for each environment; those of one kind share datasets and control."""
        started = [each for each in self._environments if each.server.kind is not ServerKind.DSN]
        supplies = {each.name: self._running(each) for each in self._environments if each not in started}
        if started:
            control = self._control(opened)
            datasets = self._datasets(opened, control)
            for each in started:
                supplies[each.name] = Supply(build=self._builds[each.name], datasets=datasets, control=control)
        return supplies

    def _control(self, opened: OpenedHost) -> ClusterControl:
        sides = dict.fromkeys(each.client_hosts for each in self._environments if each.apart)
        ways = {side: find_way(opened, [self._opened_client(spec) for spec in side]) for side in sides}
        return ClusterControl(opened.host, self.machine.clock, socket_root(opened.places, self.study), ways)

    def _opened_client(self, spec: HostSpec) -> OpenedHost:
        assert self.hosts is not None
        return self.hosts[spec]

    def _datasets(self, opened: OpenedHost, control: ClusterControl) -> ClusterDatasets:
        """Data are made where they will lie, by tools that are there."""
        sql, tools, recipe = self.sql, self.tools, make_recipe()
        if opened.spec.remote:
            assert isinstance(opened.host, SshHost)
            tools = self._tools_there()
            sql = PsqlSql(opened.host, tools)
            recipe = make_recipe(partial(bring_file, self.client, opened.host))
        return ClusterDatasets(
            host=opened.host, sql=sql, control=control, tools=tools, workloads=builtin_workloads(),
            recipe=recipe, clock=self.machine.clock, root=opened.places.data, study=study_key(self.study),
        )  # fmt: skip

    def _running(self, environment: Environment) -> Supply:
        machine = self.machine
        address = address_of(environment.server, libpq_variables(os.environ))
        datasets = DatabaseDatasets(
            host=self.client, sql=self.sql, address=address, tools=self.tools, workloads=builtin_workloads(),
            recipe=make_recipe(), clock=machine.clock,
            scratch=f"{machine.places.memory}/{study_key(self.study)}/{environment.name}",
            coordinator=observe_coordinator(machine.here, machine.places.state),
        )  # fmt: skip
        for said in datasets.sweep():
            self._note(said)
        control = RunningControl(address, sql=self.sql, here=machine.here, clock=machine.clock)
        return Supply(build=self._builds[environment.name], datasets=datasets, control=control)
