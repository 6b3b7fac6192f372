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
    """How the machine of a server and that of its clients stand to each other.

    `clocks` is how the server's clock differs from the clients', None where it is the same; `shared` is what two hosts
    have in common.
    """

    clocks: ClockOffset | None = None
    shared: SharedResources = SharedResources.NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """Where a load generator is.

    `host` acts as the user that clients run as; files lie below `scratch`, in memory if there is such a place; `clocks`
    is how the clock there differs from the coordinator's, None where it is that.
    """

    host: Host
    scratch: str
    clocks: ClockOffset | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHost:
    """Where load comes from, since it was connected to; there is one generator.

    Statements (`sql`) come from its machine. `drivers` are those of the study's cells, by key. `facts` are kept with
    the runs whose server is elsewhere, and `fingerprint` is what they say.
    """

    generators: tuple[Generator, ...]
    sql: Sql
    drivers: Mapping[str, Driver]
    facts: Mapping[str, bytes]
    fingerprint: Fingerprint

    @property
    def host(self) -> Host:
        """The machine of the load generator."""
        return self.generators[0].host

    @property
    def scratch(self) -> str:
        """The folder of its executions."""
        return self.generators[0].scratch

    @property
    def clocks(self) -> ClockOffset | None:
        """How its clock differs from the coordinator's; None where it is the coordinator's."""
        return self.generators[0].clocks


class ClientSide(Protocol):
    """Where load comes from, by whatever connections there are just now."""

    def observe(self) -> ClientHost:
        """What it is, looked at once for each connection; HostLostError."""


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

    def boot(self, environments: Sequence[Environment], *, fresh: bool) -> None:
        """Have it up as these environments ask, which all ask for the same; nothing where it is up so already.

        Args:
            environments: those of a visit.
            fresh: where they ask for a boot, it must be one that no visit has used yet: boots are what is repeated.

        Raises:
            HostNotFitError: it cannot be, or did not come up as it was told to.
        """

    def ready(self) -> None:
        """Wait until it can be used. HostNotFitError where it does not become so."""

    def observe(self) -> ServerHost:
        """What it is since its boot; looked at once in each boot."""

    def release(self) -> None:
        """Leave it at the end of a visit, also of one that did not come as far as `ready`."""

    def give_back(self) -> None:
        """Bring it back to the boot in which it was found, if it has another one; at the end of a pass over a plan."""

    def silent(self) -> bool:
        """Whether it should answer, and the connection to it is broken."""

    def reopen(self) -> None:
        """Connect to it again after the connection broke; what was changed there is undone first.

        HostLostError or HostNotFitError as long as that cannot be.
        """
