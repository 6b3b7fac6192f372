"""This machine as pgstrata uses it: transports, servers, clock."""

from __future__ import annotations

import os
import pwd
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pgstrata.app.places import find_machine_places, find_server_user
from pgstrata.drivers.registry import driver_programs
from pgstrata.errors import UsageError
from pgstrata.experiment.keys import WrongValueError
from pgstrata.experiment.servers import parse_server
from pgstrata.hosts.lanes import pause
from pgstrata.hosts.local import LocalHost
from pgstrata.model.experiment import ServerSpec
from pgstrata.model.server import Build
from pgstrata.ports.host import Clock, Host
from pgstrata.servers.inspect import ProgramCheck
from pgstrata.servers.places import Places, make_places
from pgstrata.servers.shelf import ServerSite
from pgstrata.servers.supply import Servers
from pgstrata.system.commands import become
from pgstrata.system.users import UserIds


class SystemClock:
    """Implements `ports.Clock`."""

    def wall(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        pause(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The coordinator's machine: `here` acts as the user of pgstrata, `host` as the user that servers run as.

    Programs on `host` do not get the user's PG* variables, which are meant for servers of the user's own.
    """

    places: Places
    here: Host
    host: Host
    servers: Servers
    clock: Clock


@contextmanager
def open_machine(note: Callable[[str], None]) -> Iterator[Machine]:
    """Make the folders, open the transports, close them at the end.

    PGSTRATA_TRANSPORT=shell sends everything that concerns servers through one `sh` behind a pipe, as it would be
    sent to another host; the default is to do it directly.
    """
    user = find_server_user()
    places = find_machine_places()
    make_places(places, uid=os.getuid(), server=UserIds.of(user) if user else None)
    here = LocalHost()
    host = _open_host(user)
    try:
        servers = Servers.make(
            ServerSite(here=here, host=host, cache=places.cache, note=note),
            machine=os.uname().machine,
            python=sys.executable,
            drivers=driver_programs(),
        )
        yield Machine(places=places, here=here, host=host, servers=servers, clock=SystemClock())
    finally:
        host.close()
        here.close()


def libpq_variables(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The PG* variables of an environment, without pgstrata's own."""
    return {name: text for name, text in environ.items() if name.startswith("PG") and not name.startswith("PGSTRATA_")}


def _open_host(user: str | None) -> Host:
    transport = os.environ.get("PGSTRATA_TRANSPORT", "local")
    hidden = libpq_variables(os.environ)
    if transport == "local":
        return LocalHost(user=user, hidden=frozenset(hidden))
    if transport != "shell":
        raise UsageError(f"invalid transport {transport!r}", where="PGSTRATA_TRANSPORT", remedy="use local or shell")
    from pgstrata.hosts.shell import ShellHost  # noqa: PLC0415 - rarely needed

    if user is None:
        return ShellHost(("env", *(f"--unset={name}" for name in hidden), "sh"), name="shell")
    return ShellHost((*become(user, str(pwd.getpwnam(user).pw_gid)), "sh"), name="shell")


def check_levels(machine: Machine, levels: Sequence[str]) -> Iterator[tuple[str, Build, tuple[ProgramCheck, ...]]]:
    """The named levels, or all that are fetched or installed: what each is made of, and whether its programs start."""
    for level in tuple(levels) or tuple(row.level for row in machine.servers.list() if row.fetched):
        build = machine.servers.resolve(_spec(level))
        yield level, build, machine.servers.check(build)


def _spec(level: str) -> ServerSpec:
    try:
        return parse_server(level)
    except WrongValueError as error:
        raise UsageError(error.what, remedy=error.remedy) from None
