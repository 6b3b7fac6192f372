"""Whether the SSH server of a guest answers, found out without logging in, which takes an emulated guest seconds.

What is sent to a guest before its network is up is lost, and QEMU repeats it only after six seconds. So each look makes
a new connection, and earlier ones are kept for some looks.
"""

from __future__ import annotations

import select
import socket
from contextlib import suppress
from typing import Final

_MOST: Final = 8
"""The number of connections that are kept: sshd refuses some of more than ten (MaxStartups in sshd_config(5))."""
_CONNECT: Final = 5.0
_SSH: Final = b"SSH-"
"""The first that an SSH server sends (RFC 4253, 4.2)."""


class Greeting:
    """Connections to a port of 127.0.0.1 that leads to the SSH server of a guest."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connections: dict[int, socket.socket] = {}

    def comes(self, seconds: float) -> bool:
        """Connect once more; whether one of the connections is greeted within so many seconds."""
        self._connect()
        poller = select.poll()
        for descriptor in self._connections:
            poller.register(descriptor, select.POLLIN)
        return any(self._is_greeted(descriptor) for descriptor, _ in poller.poll(seconds * 1000))

    def close(self) -> None:
        """Give all connections up."""
        for connection in self._connections.values():
            connection.close()
        self._connections = {}

    def _connect(self) -> None:
        for descriptor in list(self._connections)[: 1 - _MOST]:
            self._connections.pop(descriptor).close()
        try:
            made = socket.create_connection(("127.0.0.1", self._port), _CONNECT)
        except OSError:
            return  # QEMU does not listen yet
        self._connections[made.fileno()] = made

    def _is_greeted(self, descriptor: int) -> bool:
        """What says anything else, or is closed by the guest, is given up."""
        connection = self._connections[descriptor]
        with suppress(OSError):
            if connection.recv(len(_SSH)) == _SSH:
                return True
        del self._connections[descriptor]
        connection.close()
        return False
