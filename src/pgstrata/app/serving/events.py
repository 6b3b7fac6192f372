"""Events that tell a page that it has changed (server-sent events), of pages that are open in a browser."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from pgstrata.app.httpd.server import Response

MOST_STREAMS: Final = 32
"""Pages that are told of changes at the same time."""
_HEARTBEAT: Final = 15.0
"""Seconds after which something is sent, which fails where nobody listens any more."""


class Streams:
    """Makes streams of events, as many as there may be at the same time, until it is closed."""

    def __init__(self) -> None:
        self._free = threading.Semaphore(MOST_STREAMS)
        self._closing = threading.Event()

    def open(self, changed: Callable[[], bool], poll: float) -> Response:
        """A stream that asks each `poll` seconds whether the page has changed, and ends when it has said so."""
        return Response(kind="text/event-stream", stream=self._events(changed, poll))

    def close(self) -> None:
        """End all streams soon."""
        self._closing.set()

    def _events(self, changed: Callable[[], bool], poll: float) -> Iterator[bytes]:
        if not self._free.acquire(blocking=False):
            # the browser tries again then
            yield b"retry: 60000\n\n"
            return
        try:
            yield b"retry: 5000\n\n"
            said = time.monotonic()
            while not self._closing.is_set():
                if changed():
                    yield b"event: changed\ndata: \n\n"
                    return
                self._closing.wait(poll)
                if time.monotonic() - said >= _HEARTBEAT:
                    yield b": still there\n\n"
                    said = time.monotonic()
        finally:
            self._free.release()
