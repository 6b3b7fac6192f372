"""The machines of clients, with their psql and load generators, over the present connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pgstrata.app.site import OpenedHost
from pgstrata.app.study_hosts import StudyHosts, client_folder
from pgstrata.app.targets import MachineTarget
from pgstrata.collectors.hostfacts.parse import parse_host_facts
from pgstrata.collectors.hostfacts.sampler import capture_host_facts
from pgstrata.drivers.joint import JointDriver, Place
from pgstrata.drivers.registry import find_driver
from pgstrata.hosts.clock import measure_clock
from pgstrata.model.clocks import ClockOffset
from pgstrata.model.experiment import HostSpec
from pgstrata.model.server import Build, Fingerprint
from pgstrata.ports.host import Clock, Host
from pgstrata.ports.target import ClientHost, Generator
from pgstrata.servers.psql import PsqlSql


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHere:
    """Clients on this machine (`ports.target.ClientSide`), which does not change during a study."""

    found: ClientHost

    def observe(self) -> ClientHost:
        """The client's host; it does not change."""
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
        generators=(Generator(host=host, scratch=scratch, facts=facts, clocks=clocks),),
        sql=PsqlSql(host, tools),
        drivers={key: find_driver(key).make(host, tools) for key in drivers},
        fingerprint=parse_host_facts(facts),
    )


def join_clients(each: Sequence[ClientHost], clock: Clock) -> ClientHost:
    """Machines that one load comes from; a single one as it is.

    Args:
        each: the clients of each machine by itself, at least one.
        clock: the coordinator's.
    """
    first, *others = each
    if not others:
        return first

    def places(key: str) -> Sequence[Place]:
        return [Place(generator=one.generators[0], driver=one.drivers[key]) for one in each]

    further = {
        f"{number}.{fact}": value
        for number, other in enumerate(others, start=2)
        for fact, value in other.fingerprint.facts.items()
    }
    return ClientHost(
        generators=tuple(one.generators[0] for one in each),
        sql=first.sql,
        drivers={key: JointDriver(places(key), clock) for key in first.drivers},
        fingerprint=Fingerprint(facts={**first.fingerprint.facts, **further}),
    )


@dataclass(slots=True, kw_only=True)
class ClientMachines:
    """Clients on another machine, or on several (`ports.target.ClientSide`).

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
        """As the port says; a machine that has been opened again is observed again."""
        now = tuple(self.hosts[spec] for spec in self.specs)
        if self._found is None or any(one is not other for one, other in zip(now, self._connected, strict=True)):
            self._found = join_clients([self._look(opened) for opened in now], self.hosts.machine.clock)
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
