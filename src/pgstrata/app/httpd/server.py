"""The server: requests are bounded in number, size and time, so that nobody who reaches the port holds it up."""

from __future__ import annotations

import io
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Final

from pgstrata.app.httpd.listen import Listen, explain_failure

MOST_REQUESTS: Final = 8
"""Requests that are answered at the same time, unless a server says otherwise."""
LARGEST_HEAD: Final = 8192
"""Bytes of the request line and the headers."""
PATIENCE: Final = 5.0
"""Seconds in which a request has to come, and in which its answer has to be taken, unless a server says otherwise."""
_POLL: Final = 0.5
_CHUNK: Final = 4096
_MAKES_ROOM: Final = 1.0
"""Seconds in which a connection that was closed has to be gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A GET or HEAD whose header Host is right; `query` is what stands behind the question mark."""

    head_only: bool
    path: str
    query: str
    headers: Message

    def all_of(self, name: str) -> list[str]:
        """Each header of that name."""
        return [str(each) for each in self.headers.get_all(name) or ()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What is sent: `body`, or instead the parts of `stream` as they come, until it ends or nobody takes them."""

    status: HTTPStatus = HTTPStatus.OK
    kind: str = "text/plain; charset=utf-8"
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    stream: Iterable[bytes] | None = None


Answer = Callable[[Request], Response]


def refuse(status: HTTPStatus, message: str = "", headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A status with its message as plain text."""
    text = f"{status.value} {message or status.phrase}\n"
    return Response(status=status, body=text.encode(), headers=headers)


class HttpServer:
    """Answers from construction on until it is closed.

    Args:
        listen: where.
        answer: called in other threads; what it raises becomes status 500.
        name: of the threads.
        most: requests that are answered at the same time. Where there are more, the oldest connection that has not
            asked yet is closed; the newest if all have.
        patience: seconds in which an answer has to be taken.

    Raises:
        HostNotFitError: the address cannot be listened at.
    """

    def __init__(
        self, listen: Listen, answer: Answer, *, name: str, most: int = MOST_REQUESTS, patience: float | None = None
    ) -> None:
        try:
            self._server = _Server(listen, answer, most, PATIENCE if patience is None else patience)
        except OSError as error:
            raise explain_failure(listen, error) from None
        self.listen: Final = Listen(address=listen.address, port=int(self._server.server_address[1]))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL,), name=name, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Without a path."""
        return f"http://{self.listen.text}"

    def close(self) -> None:
        """Stop listening; requests that are being answered are not waited for."""
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, listen: Listen, answer: Answer, most: int, patience: float) -> None:
        self.address_family = socket.AF_INET6 if listen.address.version == 6 else socket.AF_INET  # noqa: PLR2004
        self.answer, self.patience = answer, patience
        # None: any name will do
        self.names = {"localhost", listen.name} if listen.address.is_loopback else None
        self._free = threading.Semaphore(most)
        self._silent: dict[socket.socket, None] = {}
        self._lock = threading.Lock()
        super().__init__((str(listen.address), listen.port), _Connection)

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        assert isinstance(request, socket.socket)
        if not (self._free.acquire(blocking=False) or self._make_room()):
            self.shutdown_request(request)
            return
        with self._lock:
            self._silent[request] = None
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.asked(request)
            self._free.release()
            raise

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            assert isinstance(request, socket.socket)
            self.asked(request)
            self._free.release()

    def asked(self, connection: socket.socket) -> None:
        """It has sent its request, or is gone."""
        with self._lock:
            self._silent.pop(connection, None)

    def _make_room(self) -> bool:
        """End the oldest connection that has not asked yet; whether its place is free."""
        with self._lock:
            oldest = next(iter(self._silent), None)
            if oldest is None:
                return False
            del self._silent[oldest]
            # it may have gone by itself
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
        return self._free.acquire(timeout=_MAKES_ROOM)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone is no error of the server's."""


class _Connection(BaseHTTPRequestHandler):
    """One request of a connection, which is closed after it."""

    server: _Server
    protocol_version = "HTTP/1.1"
    error_message_format = "%(code)d %(message)s\n"
    error_content_type = "text/plain; charset=utf-8"

    def handle(self) -> None:
        head = _read_head(self.connection)
        self.server.asked(self.connection)
        if head is None:
            return
        self.rfile.close()
        self.rfile = io.BufferedReader(io.BytesIO(head))
        self.connection.settimeout(self.server.patience)
        self.raw_requestline = self.rfile.readline()
        if len(head) > LARGEST_HEAD:
            self.requestline, self.request_version, self.command = "", self.protocol_version, ""
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self.parse_request():
            self._send(self._answer())

    def _answer(self) -> Response:
        if not self._is_host_right():
            return refuse(HTTPStatus.MISDIRECTED_REQUEST, "the header Host names another machine")
        if self.command not in {"GET", "HEAD"}:
            return refuse(HTTPStatus.METHOD_NOT_ALLOWED, headers=(("Allow", "GET, HEAD"),))
        path, _, query = self.path.partition("?")
        request = Request(head_only=self.command == "HEAD", path=path, query=query, headers=self.headers)
        try:
            return self.server.answer(request)
        except Exception:  # noqa: BLE001 - whatever fails here, the client has to learn that it did
            return refuse(HTTPStatus.INTERNAL_SERVER_ERROR)

    def _is_host_right(self) -> bool:
        """Whether the client means this machine: a page of another site whose name was turned to us does not."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1:
            return False
        name, colon, port = hosts[0].rpartition(":")
        if not colon or not port.isdecimal():
            name = hosts[0]
        return self.server.names is None or name.lower() in self.server.names

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.kind)
        for name, value in response.headers:
            self.send_header(name, value)
        if response.stream is None:
            self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if response.stream is None:
            self.wfile.write(response.body)
            return
        for part in response.stream:
            self.wfile.write(part)

    def send_response(self, code: int, message: str | None = None) -> None:
        """Without the name and version of any software."""
        self.send_response_only(code, message)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
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
