"""Opening the machines on which servers run: this one is open already, others by the user's own ssh."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final, Never

from pgstrata.app.machine import Machine
from pgstrata.app.opened_host import OpenedHost
from pgstrata.app.places import observe_capacity
from pgstrata.app.site import SSH_CONFIG, make_socket_folder, observe_site, site_here
from pgstrata.datasets.marker import sum_datasets
from pgstrata.errors import HostNotFitError, PgstrataError
from pgstrata.hosts.ssh import SshHost, open_ssh
from pgstrata.hosts.ssh_link import Patience
from pgstrata.hosts.tcp_route import find_tcp_route, require_tcp_route
from pgstrata.model.experiment import HostSpec
from pgstrata.model.plan import HostCapacity
from pgstrata.model.server import TcpRoute
from pgstrata.ports.host import Command, Host
from pgstrata.system import commands
from pgstrata.system.trust import ROOT, find_keeper, require_root_keeps

PATIENCE: Final = Patience()
_OTHERS: Final = (
    "let PGSTRATA_CACHE and PGSTRATA_STATE over there name folders to which root alone can write, as to all above them"
)


def local_host(machine: Machine) -> OpenedHost:
    """This machine."""
    return OpenedHost(spec=HostSpec(), site=site_here(machine.here), host=machine.host)


@contextmanager
def open_server_host(spec: HostSpec) -> Iterator[OpenedHost]:
    """Connect to another machine and find out where things lie there; nothing is made or changed.

    Args:
        spec: which one, not this machine.

    Raises:
        HostNotFitError: something has to be done about it first, such as its host key or a missing program.
        HostLostError: it cannot be reached now.
    """
    config = os.environ.get(SSH_CONFIG) or None
    with (
        make_socket_folder() as run,
        closing(open_ssh(spec.destination, run=run, config=config, patience=PATIENCE)) as transport,
    ):
        yield _look_around(spec, transport)


def _look_around(spec: HostSpec, transport: SshHost) -> OpenedHost:
    try:
        site = observe_site(transport)
        user = site.server_user()
    except PgstrataError as error:
        error.where = error.where if spec.destination in error.where else f"{spec.text}: {error.where}".rstrip(": ")
        raise
    return OpenedHost(spec=spec, site=site, host=transport.as_user(user) if user else transport)


def observe_tcp_route(opened: OpenedHost) -> TcpRoute:
    """How clients of this machine reach servers there; HostNotFitError unless they do, without a detour."""
    said = opened.transport.run(Command(argv=("printenv", "SSH_CONNECTION")), check=False).text
    way = find_tcp_route(said, opened.spec.text)
    require_tcp_route(way, opened.spec.text)
    return way


def make_places_there(opened: OpenedHost) -> None:
    """Make the folders on another machine, with their owners and modes, as `make_places` does on this one.

    Raises:
        HostNotFitError: one cannot be made, or belongs to somebody else; as root there, others could replace the cache
            or the state.
    """
    places, apart = opened.places, opened.host is not opened.transport
    _make(opened, places.cache, mode="755", owner=opened.transport.user)
    _make(opened, places.state, mode="755" if apart else "700", owner=opened.transport.user)
    if apart:
        for path in (places.cache, places.state):
            require_root_keeps(opened.transport, path, remedy=_OTHERS)
    for folder in dict.fromkeys((places.data, places.run, places.memory)):
        _make(opened, folder, mode="700", owner=opened.host.user)


def _make(opened: OpenedHost, folder: str, *, mode: str, owner: str) -> None:
    """Make a folder as the user who could replace it, each that is missing above it by itself: nobody's link counts."""
    there, *missing = _find_missing(opened.transport, folder)
    root = opened.transport.user == ROOT
    keeper = find_keeper(opened.transport, there, adding=True) if root else opened.transport.user
    if keeper not in {opened.transport.user, owner}:
        _refuse_foreign(opened, there, owner)
    maker = opened.transport if keeper == opened.transport.user else opened.host
    for path in missing[:-1]:
        _make_one(opened, maker, path, mode="755", owner=maker.user)
    _make_one(opened, maker, folder, mode=mode, owner=owner)


def _find_missing(host: Host, folder: str) -> list[str]:
    """The nearest folder that is there, and below it those that are missing, the last one being the folder itself."""
    way = [folder]
    while way[0] != "/" and not host.exists(way[0]):
        way.insert(0, posixpath.dirname(way[0]) or "/")
    return way


def _make_one(opened: OpenedHost, maker: Host, folder: str, *, mode: str, owner: str) -> None:
    done = maker.run(Command(argv=commands.make_place(folder, mode=mode, owner=owner).argv), check=False)
    if done.code == commands.FOREIGN_FOLDER:
        _refuse_foreign(opened, done.text.strip(), owner)
    if done.code:
        raise HostNotFitError(
            f"this folder of pgstrata cannot be made there: {folder}",
            where=opened.spec.text,
            details=done.last_words(),
            remedy="check who may write there",
        )


def _refuse_foreign(opened: OpenedHost, folder: str, owner: str) -> Never:
    raise HostNotFitError(
        f"the folder {folder} there does not belong to {owner}",
        where=opened.spec.text,
        remedy="remove it, or let PGSTRATA_DATA and the like name others over there",
    )


def observe_room(opened: OpenedHost) -> HostCapacity:
    """What another machine has; room that datasets take already counts as free, because plans count all they need."""
    cpus = opened.transport.run(Command(argv=("nproc",))).text
    taken = sum_datasets(opened.host, opened.places.data)
    return observe_capacity(opened.host, opened.places.data, cpus=int(cpus), taken=taken)
