"""The machines of clients, with their psql and load generators, over the present connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pgstrata.app.site import OpenedHost
from pgstrata.app.study_hosts import StudyHosts, client_folder
from pgstrata.app.targets import MachineTarget
from pgstrata.collectors.hostfacts.parse import parse_host_facts
from pgstrata.collectors.hostfacts.sampler import capture_host_facts
from pgstrata.drivers.registry import find_driver
from pgstrata.hosts.clock import measure_clock
from pgstrata.model.clocks import ClockOffset
from pgstrata.model.experiment import HostSpec
from pgstrata.model.server import Build
from pgstrata.ports.host import Host
from pgstrata.ports.target import ClientHost, Generator
from pgstrata.servers.psql import PsqlSql


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHere:
    """Clients on this machine (`ports.target.ClientSide`), which does not change during a study."""

    found: ClientHost

    def observe(self) -> ClientHost:
        """The same each time."""
        return self.found


def make_client(
    host: Host, tools: Build, drivers: Sequence[str], *, scratch: str, facts: Mapping[str, bytes],
    clocks: ClockOffset | None = None,
) -> ClientHost:  # fmt: skip
    """Make the clients of one machine.

    Args:
        host: acts as the user that clients run as.
        tools: an installation there, with the programs of drivers.
        drivers: keys of the drivers that are needed.
        scratch: a folder there for files of the drivers.
        facts: captured facts of the machine.
        clocks: the offset of its clock from this machine's; None on this machine.
    """
    return ClientHost(
        generators=(Generator(host=host, scratch=scratch, clocks=clocks),),
        sql=PsqlSql(host, tools),
        drivers={key: find_driver(key).make(host, tools) for key in drivers},
        facts=facts,
        fingerprint=parse_host_facts(facts),
    )


@dataclass(slots=True, kw_only=True)
class ClientMachines:
    """Clients on another machine (`ports.target.ClientSide`).

    `targets` are the machines that ssh reaches, `here` is this machine; `drivers` are keys of the load generators.
    """

    specs: tuple[HostSpec, ...]
    targets: Mapping[HostSpec, MachineTarget]
    here: ClientHost
    hosts: StudyHosts
    drivers: tuple[str, ...]
    _connected: tuple[OpenedHost, ...] = field(init=False, default=())
    _found: ClientHost | None = field(init=False, default=None)

    def observe(self) -> ClientHost:
        """As the contract says; a machine that has been opened again is observed again."""
        now = tuple(self.hosts[spec] for spec in self.specs)
        if self._found is None or any(one is not other for one, other in zip(now, self._connected, strict=True)):
            (self._found,) = [self._look(opened) for opened in now]
            self._connected = now
        return self._found

    def _look(self, opened: OpenedHost) -> ClientHost:
        if not opened.spec.remote:
            return self.here
        target = self.targets[opened.spec]
        clocks = measure_clock(opened.transport, self.hosts.machine.clock)
        target.note_clock(clocks)
        return make_client(
            opened.host,
            target.client_tools(),
            self.drivers,
            scratch=client_folder(opened, self.hosts.study),
            facts=capture_host_facts(opened.transport),
            clocks=clocks,
        )
