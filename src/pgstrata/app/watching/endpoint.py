"""A small HTTP server for metrics, in threads of its own: GET and HEAD of /metrics, and nothing else.

Requests are bounded in number, size and time, so that nobody who reaches the port holds up the recorder.
"""

from __future__ import annotations

import errno
import io
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from pgstrata.errors import HostNotFitError, UsageError
from pgstrata.report.live.openmetrics import MetricsFormat, choose_format

PATH: Final = "/metrics"
MOST_REQUESTS: Final = 8
"""Requests that are answered at the same time; further connections are closed at once."""
LARGEST_HEAD: Final = 8192
"""Bytes of the request line and the headers."""
PATIENCE: Final = 5.0
"""Seconds in which a request has to come, and in which its answer has to be taken."""
_POLL: Final = 0.5
_LARGEST_PORT: Final = 65535
_CHUNK: Final = 4096
_WHERE: Final = "--listen"

Render = Callable[[MetricsFormat], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """An address to listen at; port 0 is one that is free."""

    address: IPv4Address | IPv6Address
    port: int

    @property
    def text(self) -> str:
        """127.0.0.1:9790, [::1]:9790."""
        return f"{_bracketed(self.address)}:{self.port}"


def parse_listen(text: str | None, *, anywhere: bool) -> Listen | None:
    """An address such as 127.0.0.1:9790, localhost:9790 or [::1]:9790; None where none is wanted.

    Args:
        text: what the user wrote.
        anywhere: whether other addresses than those of this machine alone are allowed.

    Raises:
        UsageError: it is no such address, or other machines could reach it.
    """
    if text is None:
        if anywhere:
            raise UsageError("--listen-anywhere needs --listen", remedy="add an address, such as --listen 0.0.0.0:9790")
        return None
    host, _, port = text.rpartition(":")
    host = "127.0.0.1" if host == "localhost" else host
    try:
        address = ip_address(host.removeprefix("[").removesuffix("]"))
        valid = port.isdecimal() and port.isascii() and int(port) <= _LARGEST_PORT and (":" in host) == ("[" in host)
    except ValueError:
        valid = False
    if not valid:
        remedy = "write an IP address and a port, such as 127.0.0.1:9790"
        raise UsageError(f"{text[:80]!r} is not an address to listen at", where=_WHERE, remedy=remedy)
    if not (address.is_loopback or anywhere):
        raise UsageError(
            f"other machines can reach {text[:80]}, without encryption or a password",
            where=_WHERE,
            remedy="listen at 127.0.0.1 behind a reverse proxy, or add --listen-anywhere in a network that you trust",
        )
    return Listen(address=address, port=int(port))


class Endpoint:
    """Answers from construction on until it is closed.

    Args:
        listen: where.
        render: the metrics in a format; called in other threads.

    Raises:
        HostNotFitError: the address cannot be listened at.
    """

    def __init__(self, listen: Listen, render: Render) -> None:
        try:
            self._server = _Server(listen, render)
        except OSError as error:
            raise _explain(listen, error) from None
        port = int(self._server.server_address[1])
        self.url: Final = f"http://{Listen(address=listen.address, port=port).text}{PATH}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL,), name="metrics endpoint", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening; requests that are being answered are not waited for."""
        self._server.shutdown()
        self._server.server_close()


def _explain(listen: Listen, error: OSError) -> HostNotFitError:
    if error.errno == errno.EADDRINUSE:
        what, remedy = "another program listens at this address", "choose another port; port 0 takes one that is free"
    elif error.errno == errno.EACCES:
        what, remedy = "this user may not listen at this port", "choose a port from 1024 on"
    elif error.errno == errno.EADDRNOTAVAIL:
        what, remedy = "this machine does not have this address", "`ip address` lists those that it has"
    else:
        what, remedy = f"this address cannot be listened at: {error.strerror or error}", "choose another one"
    return HostNotFitError(what, where=f"{_WHERE} {listen.text}", remedy=remedy)


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, listen: Listen, render: Render) -> None:
        self.address_family = socket.AF_INET6 if listen.address.version == 6 else socket.AF_INET  # noqa: PLR2004
        self.render = render
        # None: any name will do
        self.names = {"localhost", _bracketed(listen.address)} if listen.address.is_loopback else None
        self._free = threading.Semaphore(MOST_REQUESTS)
        super().__init__((str(listen.address), listen.port), _Request)

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone is no error of the recorder's."""


class _Request(BaseHTTPRequestHandler):
    """One request of a connection, which is closed after it."""

    server: _Server
    protocol_version = "HTTP/1.1"
    error_message_format = "%(code)d %(message)s\n"
    error_content_type = "text/plain; charset=utf-8"

    def handle(self) -> None:
        head = _read_head(self.connection)
        if head is None:
            return
        self.rfile.close()
        self.rfile = io.BufferedReader(io.BytesIO(head))
        self.connection.settimeout(PATIENCE)
        self.raw_requestline = self.rfile.readline()
        if len(head) > LARGEST_HEAD:
            self.requestline, self.request_version, self.command = "", self.protocol_version, ""
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self.parse_request():
            self._answer()

    def _answer(self) -> None:
        if not self._is_host_right():
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "the header Host names another machine")
        elif self.path.partition("?")[0] != PATH:
            self.send_error(HTTPStatus.NOT_FOUND, f"metrics are at {PATH}")
        elif self.command not in {"GET", "HEAD"}:
            self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)
        else:
            self._send_metrics()

    def _is_host_right(self) -> bool:
        """Whether the client means this machine: a page of another site whose name was turned to us does not."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1:
            return False
        name, colon, port = hosts[0].rpartition(":")
        if not colon or not port.isdecimal():
            name = hosts[0]
        return self.server.names is None or name.lower() in self.server.names

    def _send_metrics(self) -> None:
        form = choose_format(",".join(self.headers.get_all("Accept") or []))
        try:
            body = self.server.render(form).encode()
        except Exception:  # noqa: BLE001 - whatever fails here, the client has to learn that it did
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", form.value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_response(self, code: int, message: str | None = None) -> None:
        """Without the name and version of any software."""
        self.send_response_only(code, message)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        if code == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        if code == HTTPStatus.OK:
            self.send_header("Connection", "close")
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class calls it
        """Requests are not logged."""


def _read_head(connection: socket.socket) -> bytes | None:
    """Bytes up to the empty line, or the first `LARGEST_HEAD` + 1; None where they do not come in time."""
    deadline, head = time.monotonic() + PATIENCE, b""
    while not (b"\r\n\r\n" in head or b"\n\n" in head or len(head) > LARGEST_HEAD):
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        connection.settimeout(left)
        try:
            chunk = connection.recv(min(_CHUNK, LARGEST_HEAD + 1 - len(head)))
        except OSError:
            return None
        if not chunk:
            return None
        head += chunk
    return head


def _bracketed(address: IPv4Address | IPv6Address) -> str:
    return f"[{address}]" if address.version == 6 else str(address)  # noqa: PLR2004
