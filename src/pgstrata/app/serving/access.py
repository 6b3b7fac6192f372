"""Who may read: whoever has the cookie, which is given for a token, once.

Other users of the machine can reach the port. They do not know the token, which is on the terminal alone. The cookie is
bound to a path that nobody can guess, because browsers send cookies to every port of a host: without it, a server of
another user at another port would be given the cookie.
"""

from __future__ import annotations

import secrets
import threading
from hmac import compare_digest
from typing import Final
from urllib.parse import parse_qs

from pgstrata.app.httpd.server import Request

_BYTES: Final = 32
_NAME: Final = "pgstrata"
_TOKEN: Final = "token"  # noqa: S105 - its name in the address


class Access:
    """Secrets that are drawn at the start and never written anywhere.

    Attributes:
        base: the path that all pages are below, with a slash at both ends.
    """

    def __init__(self) -> None:
        self.base: Final = f"/{secrets.token_urlsafe(_BYTES)}/"
        self._cookie: Final = secrets.token_urlsafe(_BYTES)
        self._token: str | None = secrets.token_urlsafe(_BYTES)
        self._lock = threading.Lock()

    @property
    def first(self) -> str:
        """Path and query of the first request; empty after it."""
        return f"/?{_TOKEN}={self._token}" if self._token else ""

    def exchange(self, request: Request) -> str:
        """The header Set-Cookie for the token, which is spent by it; empty where the request does not have it."""
        given = parameter(request.query, _TOKEN)
        with self._lock:
            if request.path != "/" or request.head_only or self._token is None or not _same(given, self._token):
                return ""
            self._token = None
        return f"{_NAME}={self._cookie}; Path={self.base}; HttpOnly; SameSite=Strict"

    def admits(self, request: Request) -> bool:
        """Whether the request is for a page, and has the cookie."""
        pairs = (each.strip().partition("=") for header in request.all_of("Cookie") for each in header.split(";"))
        known = [_same(value, self._cookie) for name, _, value in pairs if name == _NAME]
        length = len(self.base)
        return any(known) and _same(request.path[:length], self.base)


def _same(given: str, secret: str) -> bool:
    """Compare in constant time, so that timing does not give a secret away."""
    return compare_digest(given.encode(errors="replace"), secret.encode())


def parameter(query: str, name: str) -> str:
    """The value of a parameter of a query; empty where it is not there exactly once."""
    try:
        (value,) = parse_qs(query, max_num_fields=8).get(name, ("",))
    except ValueError:
        return ""
    return value
