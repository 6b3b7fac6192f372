"""Finds the addresses by which clients reach a server, and tries them before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgstrata.app.site import OpenedHost
from pgstrata.errors import HostNotFitError
from pgstrata.hosts.tcp_route import find_addresses, find_tcp_route, require_tcp_route
from pgstrata.model.experiment import name_hosts
from pgstrata.model.server import TcpRoute
from pgstrata.ports.host import Command

_TRIE: Final = "/proc/net/fib_trie"
_INTERFACES: Final = "/proc/net/if_inet6"
# bash opens a connection without any further program; `timeout` because a packet may be dropped without an answer
_KNOCK: Final = ("timeout", "10", "bash", "-c", 'exec 3<>"/dev/tcp/$0/$1"')
_NO_BASH: Final = (126, 127)
_MOST: Final = 64
_REMEDY: Final = (
    "clients connect by TCP to an address of the server's machine itself. In ~/.ssh/config write its address in the "
    "clients' network, open its ports (15432 to 31999) to the clients, or use machines that reach each other directly"
)


def observe_tcp_route(opened: OpenedHost) -> TcpRoute:
    """How clients on this machine reach servers there; HostNotFitError unless they reach them directly."""
    if opened.way is not None:
        return opened.way
    way = _reached(opened)
    require_tcp_route(way, opened.spec.text)
    return way


def find_way(server: OpenedHost, clients: Sequence[OpenedHost]) -> TcpRoute:
    """How the clients of an environment reach its server, each by the same address.

    Args:
        server: the machine of the server, opened.
        clients: the machines of its load generators, opened: this one, or others.

    Raises:
        HostNotFitError: one does not reach the server, as far as that can be tried before there is a server: at the
            port of its machine's sshd.
    """
    if server.spec in {client.spec for client in clients}:
        return TcpRoute()
    others = [client for client in clients if client.spec.remote]
    if not others:
        return observe_tcp_route(server)
    if not server.spec.remote:
        return TcpRoute(server=_seen_from(server, others), clients=_come_from(others))
    way = _reached(server)
    known = tuple(dict.fromkeys((way.server, *_addresses(server))))
    for address in known:
        if all(_reaches(client, address, way.known_port) for client in clients):
            local = [client for client in clients if not client.spec.remote]
            here = (*way.clients, *(each for client in local for each in _addresses(client))) if local else ()
            return TcpRoute(server=address, clients=(*here, *_come_from(others)), known_port=way.known_port)
    names = name_hosts(client.spec for client in others)
    what = f"{names} cannot connect to {server.spec.text} at any of its addresses ({', '.join(known)})"
    raise HostNotFitError(what, where=server.spec.text, remedy=_REMEDY)


def _reached(opened: OpenedHost) -> TcpRoute:
    """The route of the ssh connection to a machine."""
    said = opened.transport.run(Command(argv=("printenv", "SSH_CONNECTION")), check=False).text
    return find_tcp_route(said, opened.spec.text)


def _addresses(opened: OpenedHost) -> tuple[str, ...]:
    found = opened.transport.read_files((_TRIE, _INTERFACES))
    trie, interfaces = (found.get(path, b"").decode("ascii", "replace") for path in (_TRIE, _INTERFACES))
    return find_addresses(trie, interfaces)[:_MOST]


def _come_from(clients: Sequence[OpenedHost]) -> tuple[str, ...]:
    """Addresses from which connections of these machines may come."""
    every = (address for client in clients for address in (_reached(client).server, *_addresses(client)))
    return tuple(dict.fromkeys(every))


def _seen_from(here: OpenedHost, clients: Sequence[OpenedHost]) -> str:
    """The address of this machine as the first of the clients sees it."""
    seen, own = _reached(clients[0]).clients[0], _addresses(here)
    if seen not in own:
        what = f"{clients[0].spec.text} sees this machine as {seen}, which is not an address of this machine"
        details = (f"its addresses are {', '.join(own)}",)
        raise HostNotFitError(what, where=clients[0].spec.text, details=details, remedy=_REMEDY)
    return seen


def _reaches(client: OpenedHost, address: str, port: int) -> bool:
    """Whether a connection can be made; without bash there it is not tried, and taken for possible."""
    tried = client.transport.run(Command(argv=(*_KNOCK, address, str(port))), timeout=60, check=False)
    return tried.code == 0 or tried.code in _NO_BASH
