"""Metrics for other monitors, at one path."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from pgstrata.app.httpd.listen import Listen, parse_listen
from pgstrata.app.httpd.server import HttpServer, Request, Response, refuse
from pgstrata.errors import UsageError
from pgstrata.report.live.openmetrics import MetricsFormat, choose_format

PATH: Final = "/metrics"

Render = Callable[[MetricsFormat], str]


def choose_listen(text: str | None, *, anywhere: bool) -> Listen | None:
    """The address that is wanted (`parse_listen`); None where none is, UsageError where the options do not fit."""
    if text is not None:
        return parse_listen(text, anywhere=anywhere)
    if anywhere:
        raise UsageError("--listen-anywhere needs --listen", remedy="add an address, such as --listen 0.0.0.0:9790")
    return None


class Endpoint:
    """Answers from construction on until it is closed.

    Args:
        listen: where.
        render: the metrics in a format; called in other threads.

    Raises:
        HostNotFitError: the address cannot be listened at.
    """

    def __init__(self, listen: Listen, render: Render) -> None:
        self._render = render
        self._server = HttpServer(listen, self._answer, name="metrics endpoint")
        self.url: Final = f"{self._server.url}{PATH}"

    def close(self) -> None:
        """Stop listening; requests that are being answered are not waited for."""
        self._server.close()

    def _answer(self, request: Request) -> Response:
        if request.path != PATH:
            return refuse(HTTPStatus.NOT_FOUND, f"metrics are at {PATH}")
        form = choose_format(",".join(request.all_of("Accept")))
        return Response(kind=form.value, body=self._render(form).encode())
