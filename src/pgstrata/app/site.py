"""A machine as pgstrata uses and changes it: its transport, who we are there, and where our folders are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pgstrata.app.places import find_machine_places
from pgstrata.errors import ParseError, UsageError
from pgstrata.experiment.hosts import parse_named_host
from pgstrata.experiment.keys import WrongValueError
from pgstrata.hosts.local import LocalHost
from pgstrata.hosts.ssh_link import Patience
from pgstrata.ledger.lock import LOCK_VARIABLE
from pgstrata.model.experiment import HostKind, HostSpec
from pgstrata.model.server import TcpRoute
from pgstrata.ports.host import Command, Host
from pgstrata.servers.places import HOST_LEDGER, Places, absolute_path, find_places, server_user
from pgstrata.system.files import remove_tree

SSH_CONFIG: Final = "PGSTRATA_SSH_CONFIG"
"""Names an ssh configuration instead of the user's own."""
_VARIABLES: Final[tuple[str, ...]] = (
    "PGSTRATA_CACHE", "PGSTRATA_STATE", "PGSTRATA_DATA", "PGSTRATA_STORAGE", "PGSTRATA_RUN", "PGSTRATA_USER",
    LOCK_VARIABLE,
    "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
)  # fmt: skip
_ASK: Final = r"""
printf 'uid=%s\0home=%s\0machine=%s\0' "$(id -u)" "${HOME:-/}" "$(uname -m)"
[ ! -w /dev/shm ] || printf 'memory=yes\0'
for name in "$@"; do
    eval "value=\${$name-}"
    [ -z "$value" ] || printf '%s=%s\0' "$name" "$value"
done
:
"""
_NAME_IT: Final = "write it as for ssh, such as db1, user@db1 or ssh://user@db1:2222"
PATIENCE: Final = Patience()
_SOCKETS: Final = "pgstrata-ssh-"
_SHORT: Final = "/tmp"  # noqa: S108 - a folder of our own is made in it, with a name that is short enough for a socket


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A machine: `transport` acts as the user of pgstrata there, whose number is `uid`.

    `environ` are the variables over there that concern pgstrata (PGSTRATA_*, XDG_*), `machine` the architecture as
    `uname -m` says it. Nothing of it is taken from this process where the machine is another one.
    """

    transport: Host
    uid: int
    places: Places
    environ: Mapping[str, str]
    machine: str

    @property
    def lock(self) -> str:
        """The file of a lock of the user's own, empty where the host has one for all. UsageError: it is no path."""
        return absolute_path(self.environ, LOCK_VARIABLE, "")

    @property
    def ledger(self) -> str:
        """Where its ledger is: one for all users, or below the state folder of who has a lock of their own."""
        return f"{self.places.state}/ledger" if self.environ.get(LOCK_VARIABLE) else HOST_LEDGER

    @property
    def privilege(self) -> tuple[str, ...]:
        """The words in front of a script that changes the machine."""
        return () if self.uid == 0 else ("sudo", "-n")

    def server_user(self) -> str | None:
        """The user that servers run as there, None for the one of the transport; as `servers.places.server_user`."""
        return server_user(self.uid, self.environ, known=self._known)

    def _known(self, name: str) -> bool:
        return self.transport.run(Command(argv=("id", "-u", "--", name)), check=False).code == 0


def site_here(transport: Host) -> Site:
    """This machine, by what this process knows."""
    return Site(
        transport=transport,
        uid=os.getuid(),
        places=find_machine_places(),
        environ=os.environ,
        machine=os.uname().machine,
    )


def observe_site(transport: Host) -> Site:
    """Any machine, in one exchange.

    Raises:
        UsageError: a variable of the environment over there names no usable folder.
        HostLostError, HostNotFitError: the machine cannot be asked.
    """
    said = transport.run(Command(argv=("sh", "-c", _ASK, "sh", *_VARIABLES))).text.split("\0")
    words = dict(part.partition("=")[::2] for part in said if part)
    if not words.keys() >= {"home", "machine"} or not words.get("uid", "").isdecimal():
        raise ParseError("the user there cannot be identified", where=transport.name)
    environ = {name: words[name] for name in _VARIABLES if name in words}
    uid = int(words["uid"])
    places = find_places(environ, uid=uid, home=words["home"], memory_backed="memory" in words)
    return Site(transport=transport, uid=uid, places=places, environ=environ, machine=words["machine"])


def named_destination(host: str | None) -> str | None:
    """What ssh is told for a value of `--host`, such as db1 or ssh:db1; None for this machine.

    Raises:
        UsageError: it names no machine that ssh could reach.
    """
    if host is None:
        return None
    try:
        spec = parse_named_host(host)
    except WrongValueError as error:
        raise UsageError(error.what, where="--host", remedy=_NAME_IT) from None
    if spec.kind is HostKind.VM:
        raise UsageError(f"{host!r} is a virtual machine, which pgstrata boots itself", where="--host", remedy=_NAME_IT)
    return spec.destination or None


@contextmanager
def open_site(destination: str | None, *, config: str | None = None) -> Iterator[Site]:
    """This machine, or the one that the user's own ssh reaches by that destination; the transport is closed at the end.

    `config` is an ssh configuration instead of the user's own.

    Raises:
        UsageError: that is no destination.
        HostNotFitError, HostLostError: it cannot be reached; the remedy says what to do about it.
    """
    if destination is None:
        with closing(LocalHost()) as here:
            yield site_here(here)
        return
    from pgstrata.hosts.ssh import open_ssh  # noqa: PLC0415 - most commands need no other machine

    config = config or os.environ.get(SSH_CONFIG) or None
    with (
        make_socket_folder() as run,
        closing(open_ssh(destination, run=run, config=config, patience=PATIENCE)) as transport,
    ):
        yield observe_site(transport)


@contextmanager
def make_socket_folder() -> Iterator[str]:
    """A folder of this user's alone for ssh's control sockets, until the end; never one that servers' users own.

    Whoever can reach a control socket can use the connection.
    """
    _sweep_sockets()
    with TemporaryDirectory(prefix=f"{_SOCKETS}{os.getpid()}-", dir=_SHORT) as folder:
        yield folder


def _sweep_sockets() -> None:
    """Remove the folders of those who were killed."""
    for folder in Path(_SHORT).glob(f"{_SOCKETS}*"):
        pid = folder.name.removeprefix(_SOCKETS).partition("-")[0]
        with suppress(OSError):
            if pid.isdecimal() and not Path("/proc", pid).exists() and folder.lstat().st_uid == os.getuid():
                remove_tree(folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedHost:
    """A machine of a plan: `host` acts as the user that servers run as, which may be that of the site's transport.

    `way` is how clients on this machine reach servers there, None if that has to be found out.
    """

    spec: HostSpec
    site: Site
    host: Host
    way: TcpRoute | None = None

    @property
    def transport(self) -> Host:
        """The host as the user of pgstrata there."""
        return self.site.transport

    @property
    def places(self) -> Places:
        """The folders of pgstrata there, which need not exist yet."""
        return self.site.places
