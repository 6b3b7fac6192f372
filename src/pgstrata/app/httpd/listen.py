"""Addresses to listen at."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from pgstrata.errors import HostNotFitError, UsageError

_LARGEST_PORT: Final = 65535
_WHERE: Final = "--listen"
_PROXY: Final = "listen at 127.0.0.1 behind a reverse proxy, or add --listen-anywhere in a network that you trust"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """An address to listen at; port 0 is one that is free."""

    address: IPv4Address | IPv6Address
    port: int

    @property
    def text(self) -> str:
        """127.0.0.1:9790, [::1]:9790."""
        return f"{self.name}:{self.port}"

    @property
    def name(self) -> str:
        """The address alone, as URLs have it."""
        return f"[{self.address}]" if self.address.version == 6 else str(self.address)  # noqa: PLR2004


def parse_listen(text: str, *, anywhere: bool, remedy: str = _PROXY) -> Listen:
    """An address such as 127.0.0.1:9790, localhost:9790 or [::1]:9790.

    Args:
        text: what the user wrote.
        anywhere: whether other addresses than those of this machine alone are allowed.
        remedy: what to do where they are not.

    Raises:
        UsageError: it is no such address, or other machines could reach it.
    """
    host, _, port = text.rpartition(":")
    host = "127.0.0.1" if host == "localhost" else host
    try:
        address = ip_address(host.removeprefix("[").removesuffix("]"))
        valid = port.isdecimal() and port.isascii() and int(port) <= _LARGEST_PORT and (":" in host) == ("[" in host)
    except ValueError:
        valid = False
    if not valid:
        example = "write an IP address and a port, such as 127.0.0.1:9790"
        raise UsageError(f"{text[:80]!r} is not an address to listen at", where=_WHERE, remedy=example)
    if not (address.is_loopback or anywhere):
        what = f"other machines can reach {text[:80]}, without encryption or a password"
        raise UsageError(what, where=_WHERE, remedy=remedy)
    return Listen(address=address, port=int(port))


def explain_failure(listen: Listen, error: OSError) -> HostNotFitError:
    """Why an address cannot be listened at."""
    if error.errno == errno.EADDRINUSE:
        what, remedy = "another program listens at this address", "choose another port; port 0 takes one that is free"
    elif error.errno == errno.EACCES:
        what, remedy = "this user may not listen at this port", "choose a port from 1024 on"
    elif error.errno == errno.EADDRNOTAVAIL:
        what, remedy = "this machine does not have this address", "`ip address` lists those that it has"
    else:
        what, remedy = f"this address cannot be listened at: {error.strerror or error}", "choose another one"
    return HostNotFitError(what, where=f"{_WHERE} {listen.text}", remedy=remedy)
