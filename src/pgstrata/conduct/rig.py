"""What a plan is carried out with: the doors and rooms that the loop talks to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pgstrata.model.server import Build, Fingerprint
from pgstrata.model.workload import Workload
from pgstrata.ports.collector import Collector
from pgstrata.ports.driver import Driver
from pgstrata.ports.events import Events
from pgstrata.ports.host import Clock, Host
from pgstrata.ports.layer import HostLayer
from pgstrata.ports.ledger import Ledger
from pgstrata.ports.server import Datasets, Layer, RunningServer, ServerControl, Sql
from pgstrata.ports.store import Store


def to_the_end(action: Callable[[], None]) -> None:
    """Clean something up, and again if the user interrupts just then; the interruption is passed on afterwards."""
    try:
        action()
    except KeyboardInterrupt:
        action()
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """Where one environment's server and data come from."""

    build: Build
    datasets: Datasets
    control: ServerControl


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """Everything that carries out a plan.

    `scratch` is a folder on the client's memory-backed storage; `warm_sql` gives the statements that bring a workload's
    relations into memory; `layers` are observed, and `host_layers` are those of them that change the host, the lowest
    first, through its `ledger`; `host_facts` are kept with every run, by evidence name, and `host_fingerprint` is what
    they say; `sampling` is the rate of the transaction log for each cell, chosen in the preflight, the same for all
    arms.
    """

    host: Host
    client: Host
    clock: Clock
    store: Store
    driver: Driver
    sql: Sql
    collectors: tuple[Collector, ...]
    layers: tuple[Layer, ...]
    host_layers: tuple[HostLayer, ...]
    ledger: Ledger
    workloads: Mapping[str, Workload]
    supplies: Mapping[str, Supply]
    events: Events
    scratch: str
    warm_sql: Callable[[Workload], str]
    host_facts: Mapping[str, bytes]
    host_fingerprint: Fingerprint
    version: str
    sampling: dict[str, float] = field(default_factory=dict)

    def control_alive(self, server: RunningServer) -> bool:
        """Whether that server still runs."""
        return self.supplies[server.environment.name].control.alive(server)
