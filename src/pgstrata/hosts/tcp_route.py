"""The addresses by which two machines reach each other, as the connection between them shows them."""

from __future__ import annotations

import socket
from ipaddress import IPv6Address, ip_address
from itertools import pairwise
from typing import Final

from pgstrata.errors import HostNotFitError
from pgstrata.model.server import TcpRoute

_FIELDS: Final = 4
_INTERFACE: Final = 6
_PATIENCE: Final = 10.0
_REMEDY: Final = (
    "clients connect by TCP to the address that sshd was reached at, which fails through a jump host or where the "
    "server's address is translated. Use a destination that this machine reaches directly, or start pgstrata on a "
    "machine that does"
)


def find_tcp_route(said: str, name: str) -> TcpRoute:
    """The way that the ssh connection itself takes, by what sshd says of it: client, its port, server, its port.

    Args:
        said: SSH_CONNECTION of the shell over there, empty if it has none.
        name: the host's, for messages.

    Raises:
        HostNotFitError: sshd says nothing, or an address that belongs to one of several links only (fe80::1%eth0).
    """
    words = said.split()
    if len(words) != _FIELDS:
        what = "the shell on that host does not say by which addresses it was reached (SSH_CONNECTION)"
        raise HostNotFitError(what, where=name, remedy="connect to an OpenSSH server")
    client, _, server, port = words
    for address in (client, server):
        if "%" in address:
            raise HostNotFitError(
                f"{address} is a link-local address, which holds on one network only",
                where=name,
                remedy="name the host by an address that holds everywhere",
            )
    return TcpRoute(server=_plain(server), clients=(_plain(client),), known_port=int(port))


def require_tcp_route(way: TcpRoute, name: str) -> None:
    """HostNotFitError unless this machine reaches the server's address directly, tried once at the port of its sshd."""
    try:
        socket.create_connection((way.server, way.known_port), timeout=_PATIENCE).close()
    except OSError as error:
        what = f"this machine does not reach {way.server}, the address of {name} on its own network"
        raise HostNotFitError(what, where=name, details=(error.strerror or str(error),), remedy=_REMEDY) from error


def find_addresses(trie: str, interfaces: str) -> tuple[str, ...]:
    """A machine's own addresses that others may know, as its kernel lists them.

    Args:
        trie: /proc/net/fib_trie, in which an address of its own is followed by the line "/32 host LOCAL".
        interfaces: /proc/net/if_inet6: address, index, length of the prefix, scope (0 is global), flags, name.
    """
    lines = [line.split() for line in trie.splitlines()]
    old = (one[1] for one, after in pairwise(lines) if one[:1] == ["|--"] and after == ["/32", "host", "LOCAL"])
    new = (line.split() for line in interfaces.splitlines())
    known = [
        *old,
        *(str(IPv6Address(int(words[0], 16))) for words in new if len(words) == _INTERFACE and int(words[3], 16) == 0),
    ]
    return tuple(address for address in dict.fromkeys(known) if not ip_address(address).is_loopback)


def _plain(text: str) -> str:
    """Without the IPv6 form of an IPv4 address."""
    address = ip_address(text)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
