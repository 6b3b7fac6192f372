"""What a plan is carried out with: the transports and rooms that the loop talks to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pgstrata.model.experiment import Cell, Environment, HostSpec
from pgstrata.model.reasons import Notice, Reason
from pgstrata.model.workload import Workload
from pgstrata.ports.collector import CaptureSubject, Collector, Explainer, Sampler
from pgstrata.ports.driver import Driver
from pgstrata.ports.events import Event, EventKind, Events
from pgstrata.ports.host import Clock, Host
from pgstrata.ports.lanes import Lanes, in_turn
from pgstrata.ports.server import ObservedLayer, RunningServer, Sql
from pgstrata.ports.store import Store
from pgstrata.ports.target import ClientHost, ClientSide, Link, ServerHost, Supply, Target


def to_the_end(action: Callable[[], None]) -> None:
    """Clean something up, and again if the user interrupts just then; the interruption is passed on afterwards."""
    try:
        action()
    except KeyboardInterrupt:
        action()
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """Everything that carries out a plan.

    `targets` are the machines of its servers, and others than this one from which load comes; `server_hosts` are
    those that are entered, as they are; `baseline` is that of the baseline's server. `clients` are the machines from
    which servers are loaded, by `Environment.client_hosts`, and `here` is this one. `warm_sql` gives the statements
    that bring a workload's relations into memory, `say_reason` words the reason of a run, and notices;
    `layers` are observed in every environment, before those of its host.
    `lanes` do works on machines that share nothing.
    `sampling` is the rate of the transaction log for each cell, chosen in the preflight, the same for all arms, and
    `rates` are the fixed rates of cells that are to have a share of the maximum;
    `samplers` are at work beside every measured window, `explainer` asks for the plans of the statements before it.
    """

    targets: Mapping[HostSpec, Target]
    baseline: HostSpec
    here: ClientHost
    clients: Mapping[tuple[HostSpec, ...], ClientSide]
    clock: Clock
    store: Store
    collectors: tuple[Collector, ...]
    layers: tuple[ObservedLayer, ...]
    workloads: Mapping[str, Workload]
    events: Events
    warm_sql: Callable[[Workload], str]
    say_reason: Callable[[Reason], str]
    version: str
    server_hosts: dict[HostSpec, ServerHost] = field(default_factory=dict)
    sampling: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    samplers: tuple[Sampler, ...] = ()
    explainer: Explainer | None = None
    lanes: Lanes = in_turn

    def warn(self, notice: Notice) -> None:
        """Tell those who watch."""
        self.events.emit(Event(kind=EventKind.WARNING, text=self.say_reason(notice)))

    def note(self, notice: Notice) -> None:
        """Tell those who watch what is no reason to worry."""
        self.events.emit(Event(kind=EventKind.NOTE, text=self.say_reason(notice)))

    def server_host(self, environment: Environment) -> ServerHost:
        """The machine on which the server of an environment runs, which has been entered."""
        return self.server_hosts[environment.host]

    def link(self, environment: Environment) -> Link:
        """The relation between the machines of its server and of its clients."""
        return self.server_host(environment).links.get(environment.name, Link())

    def side(self, environment: Environment) -> ClientHost:
        """The machine from which the load of an environment comes, over its present connection."""
        return self.clients[environment.client_hosts].observe()

    def client(self, environment: Environment) -> Host:
        """The machine of its (first) load generator, from which statements come."""
        return self.side(environment).host

    def sql(self, environment: Environment) -> Sql:
        """Statements to its server, from its client's machine."""
        return self.side(environment).sql

    def driver(self, environment: Environment, cell: Cell) -> Driver:
        """The load generator of a cell, on the machines from which the environment's load comes."""
        return self.side(environment).drivers[cell.driver]

    def supply(self, environment: Environment) -> Supply:
        """Where its server and data come from."""
        return self.server_host(environment).supplies[environment.name]

    def subject(self, server: RunningServer) -> CaptureSubject:
        """What collectors look at while that server is measured."""
        environment = server.environment
        side = self.side(environment)
        clients = tuple(each.host for each in side.generators) if environment.apart else ()
        return CaptureSubject(host=self.server_host(environment).host, sql=side.sql, server=server, clients=clients)

    def control_alive(self, server: RunningServer) -> bool:
        """Whether that server still runs."""
        return self.supply(server.environment).control.alive(server)
