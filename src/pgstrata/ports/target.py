"""A machine on which servers run: provisioned once in a study, and entered by each visit, below the layers.

Entering boots it as the environments of the visit ask, waits until it can be used, and observes it; so its facts are
those of its boot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pgstrata.model.clocks import ClockOffset
from pgstrata.model.experiment import Environment
from pgstrata.model.server import Build, Fingerprint
from pgstrata.model.shared import SharedResources
from pgstrata.ports.driver import Driver
from pgstrata.ports.host import Host
from pgstrata.ports.layer import HostLayer, Ledger
from pgstrata.ports.server import Datasets, ServerControl, Sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """Where one environment's server and data come from."""

    build: Build
    datasets: Datasets
    control: ServerControl


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The relation between the machine of a server and that of its clients.

    `clocks` is the offset of the server's clock from the clients', None if it is the same clock. `shared` are resources
    that the two hosts have in common.
    """

    clocks: ClockOffset | None = None
    shared: SharedResources = SharedResources.NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """The place of a load generator.

    `host` acts as the user that clients run as. Files are below `scratch`, in memory if possible. `clocks` is the
    offset of the clock there from the coordinator's, None on the coordinator's own machine. `facts` were captured of
    the machine.
    """

    host: Host
    scratch: str
    facts: Mapping[str, bytes]
    clocks: ClockOffset | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHost:
    """The machines of clients over their present connections, one or several, each with its load generator.

    Statements (`sql`) come from the first. `drivers` are those of the study's cells, by key; of several machines they
    divide the load. `fingerprint` is parsed from the facts of all.
    """

    generators: tuple[Generator, ...]
    sql: Sql
    drivers: Mapping[str, Driver]
    fingerprint: Fingerprint

    @property
    def facts(self) -> Mapping[str, bytes]:
        """What is kept with runs whose server is elsewhere; names of further machines begin with their number."""
        return {
            name if number == 1 else f"{number}.{name}": content
            for number, generator in enumerate(self.generators, start=1)
            for name, content in generator.facts.items()
        }

    @property
    def host(self) -> Host:
        """The machine of the first load generator."""
        return self.generators[0].host

    @property
    def scratch(self) -> str:
        """The folder of its executions."""
        return self.generators[0].scratch

    @property
    def clocks(self) -> ClockOffset | None:
        """The offset of its clock from the coordinator's; None on the coordinator's own machine."""
        return self.generators[0].clocks


class ClientSide(Protocol):
    """The machine of clients, whose connection may be replaced during a study."""

    def observe(self) -> ClientHost:
        """The machine over its present connection, observed once for each connection; HostLostError if it is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHost:
    """A target since its boot, and what belongs to it.

    `host` acts as the user that servers run as. `layers` are those that change it, the lowest first, through its
    `ledger`. `supplies` are those of its environments by name. `facts` are kept with every run there, by evidence name,
    and `fingerprint` is what they say. `links` are those of its environments by name, where clients are elsewhere.
    """

    host: Host
    layers: tuple[HostLayer, ...]
    ledger: Ledger
    supplies: Mapping[str, Supply]
    facts: Mapping[str, bytes]
    fingerprint: Fingerprint
    links: Mapping[str, Link] = field(default_factory=dict)


class Target(Protocol):
    """One machine of a plan. Each of its parts raises HostLostError where the connection to it broke."""

    def provision(self) -> Mapping[str, Build]:
        """Have everything there that the servers of its environments need; the build of each by its name.

        Once in a pass over a plan, before the first visit. Every error names a remedy.
        """

    def at_hand(self, environment: Environment) -> bool:
        """Whether an environment can be had without a reboot that would end this process."""

    def boot(self, environments: Sequence[Environment], *, fresh: bool) -> None:
        """Have it up as these environments ask, which all ask for the same; nothing where it is up so already.

        Args:
            environments: the environments of a visit.
            fresh: if they ask for a boot, it must be one that no visit has used: the boot is the unit of replication.

        Raises:
            HostNotFitError: it cannot be booted that way, or did not come up as asked.
            RebootError: it is this machine, whose reboot ends this process.
        """

    def ready(self) -> None:
        """Wait until it can be used. HostNotFitError where it does not become so."""

    def observe(self) -> ServerHost:
        """What it is since its boot; looked at once in each boot."""

    def release(self) -> None:
        """Leave it at the end of a visit, also of one that did not come as far as `ready`."""

    def give_back(self) -> None:
        """At the end of a pass over a plan: boot its own kernel again, if it runs another one."""

    def kernel(self) -> str:
        """What tells its kernel from those of other machines, empty for that of the coordinator's machine.

        Containers and virtual machines of one computer share it, or its CPUs: they share a name, too. HostLostError if
        the connection to it is lost.
        """

    def silent(self) -> bool:
        """Whether it should answer, and the connection to it is broken."""

    def reopen(self) -> None:
        """Connect to it again after the connection broke; what was changed there is undone first.

        HostLostError or HostNotFitError as long as that cannot be.
        """
