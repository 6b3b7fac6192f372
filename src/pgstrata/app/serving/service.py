"""What is answered: the list, reports, pages of archives, and events that tell when one of them has changed."""

from __future__ import annotations

import secrets
from dataclasses import replace
from hashlib import blake2b
from http import HTTPStatus
from pathlib import Path
from typing import Final

from pgstrata import __version__
from pgstrata.app.httpd.listen import Listen
from pgstrata.app.httpd.server import HttpServer, Request, Response, refuse
from pgstrata.app.serving.access import Access, parameter
from pgstrata.app.serving.answers import AnswerSearch
from pgstrata.app.serving.child import Children
from pgstrata.app.serving.events import Streams
from pgstrata.app.serving.rendering import Page, Renderer, View
from pgstrata.app.serving.shelf import Shelf, needs_answer
from pgstrata.app.serving.views import TITLES, Shown, beside, changes, has_figures, make_view, shown_of
from pgstrata.errors import PgstrataError
from pgstrata.model.listing import Listed, Listing
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.served.beside import StudyFigures, make_beside_document, read_figures
from pgstrata.report.served.pages import Frame, Link, Pages, state_of, title_of

MOST_REQUESTS: Final = 256
_PATIENCE: Final = 60.0
_POLL: Final = 2.0
_POLL_LIST: Final = 10.0
_EVENTS: Final = "events"
_ALL: Final = "all studies"
_REFUSED: Final = (
    "These pages are for one browser.\n\nOpen the address that `pgstrata serve` has printed. It works once; for "
    "another browser, end `pgstrata serve` and start it again."
)
_HEADERS: Final = (
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


class Service:
    """Answers from construction on until it is closed.

    Args:
        folder: of which studies and archives are shown.
        listen: where; only this machine reaches it.
        children: make the reports.

    Raises:
        UsageError: there is no such folder.
        HostNotFitError: the address cannot be listened at.
    """

    def __init__(self, folder: Path, listen: Listen, children: Children | None = None) -> None:
        self._shelf = Shelf(folder)
        self._children = children or Children()
        self._renderer = Renderer(self._children)
        self._access, self._pages, self._streams = Access(), Pages(), Streams()
        self._server = HttpServer(listen, self._answer, name="pages", most=MOST_REQUESTS, patience=_PATIENCE)
        self._answers = AnswerSearch(self._shelf, self._children)

    @property
    def url(self) -> str:
        """The address with the token; without it once that is spent."""
        return f"{self._server.url}{self._access.first or self._access.base}"

    def close(self) -> None:
        """Stop listening, and end what is being made."""
        self._streams.close()
        self._answers.close()
        self._children.close()
        self._server.close()

    def _answer(self, request: Request) -> Response:
        """The answer to a request whose Host is right."""
        try:
            return self._choose(request)
        except PgstrataError as error:
            return self._problem("This cannot be shown", str(error))

    def _choose(self, request: Request) -> Response:
        base = self._access.base
        if cookie := self._access.exchange(request):
            headers = (*_HEADERS, ("Set-Cookie", cookie), ("Location", base))
            return Response(status=HTTPStatus.SEE_OTHER, headers=headers)
        if not self._access.admits(request):
            return refuse(HTTPStatus.FORBIDDEN, _REFUSED, _HEADERS)
        match request.path.removeprefix(base).split("/"):
            case [""]:
                return self._list()
            case ["events"]:
                since = parameter(request.query, "since")
                return self._streams.open(lambda: _state_of(self._shelf.look()) != since, _POLL_LIST)
            case [key, "beside", *others] if (entry := self._shelf.find(key)) and has_figures(entry):
                return self._beside(key, entry, others)
            case [key, shown, *more] if more in ([], [_EVENTS]) and (entry := self._shelf.find(key)):
                if shown in shown_of(entry):
                    return self._entry(request, key, entry, Shown(shown), told=bool(more))
        return self._missing()

    def _list(self) -> Response:
        found = self._shelf.look()
        self._answers.want()
        waiting = sum(map(needs_answer, found.entries))
        nonce, base = _nonce(), self._access.base
        frame = Frame(nonce=nonce, links=(Link(text=_ALL),), events=f"{base}{_EVENTS}?since={_state_of(found)}")
        return _html(self._pages.studies(found, self._address, frame, waiting), nonce)

    def _address(self, entry: Listed) -> str:
        return f"{self._access.base}{self._shelf.key(entry)}/{shown_of(entry)[0]}"

    def _entry(self, request: Request, key: str, entry: Listed, shown: Shown, *, told: bool) -> Response:
        if told:
            since = parameter(request.query, "since")
            return self._streams.open(lambda: self._renderer.is_outdated(self._view(entry, shown), since), _POLL)
        self._shelf.check(entry)
        page = self._renderer.page(self._view(entry, shown))
        frame = self._frame(key, entry, shown, page)
        if page.problem:
            return _html(self._pages.problem(title_of(entry), page.problem, frame), frame.nonce, page.status)
        return _html(self._pages.framed(page.content, frame), frame.nonce)

    def _beside(self, key: str, entry: Listed, others: list[str]) -> Response:
        """A study beside another one, or the others that there are."""
        base, nonce = self._access.base, _nonce()
        report = Link(text=title_of(entry), address=f"{base}{key}/{Shown.REPORT}")
        frame = Frame(nonce=nonce, links=(Link(text=_ALL, address=base), report))
        if not others:
            found = self._shelf.look()
            chosen = replace(found, entries=beside(entry, found.entries))
            return _html(
                self._pages.beside(title_of(entry), chosen, lambda each: self._address_beside(key, each), frame), nonce
            )
        other = self._shelf.find(others[0]) if len(others) == 1 else None
        if other is None or not has_figures(other):
            return self._missing()
        document = make_beside_document(self._figures(entry), self._figures(other), __version__)
        return _html(self._pages.framed(emit_page(document), frame), nonce)

    def _address_beside(self, key: str, entry: Listed) -> str:
        return f"{self._access.base}{key}/beside/{self._shelf.key(entry)}"

    def _figures(self, entry: Listed) -> StudyFigures:
        """PgstrataError where there are none."""
        self._shelf.check(entry)
        page = self._renderer.page(self._view(entry, Shown.FIGURES))
        if page.problem:
            raise PgstrataError(page.problem)
        return read_figures(page.content, f"{title_of(entry)} ({Path(entry.path).relative_to(self._shelf.folder)})")

    def _view(self, entry: Listed, shown: Shown) -> View:
        return make_view(entry, shown, self._shelf.state(entry))

    def _frame(self, key: str, entry: Listed, shown: Shown, page: Page) -> Frame:
        base = self._access.base
        others = (
            Link(text=TITLES[each], address="" if each is shown else f"{base}{key}/{each}") for each in shown_of(entry)
        )
        more = (Link(text="compare with another study", address=f"{base}{key}/beside"),) if has_figures(entry) else ()
        return Frame(
            nonce=_nonce(),
            links=(Link(text=_ALL, address=base), *others, *more),
            state=state_of(entry),
            events=f"{base}{key}/{shown}/{_EVENTS}?since={page.state}" if changes(entry) else "",
        )

    def _missing(self) -> Response:
        return self._problem("Not found", "There is no such page.", HTTPStatus.NOT_FOUND)

    def _problem(self, title: str, problem: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
        frame = Frame(nonce=_nonce(), links=(Link(text=_ALL, address=self._access.base),))
        return _html(self._pages.problem(title, problem, frame), frame.nonce, status)


def _html(page: str, nonce: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = (*_HEADERS, ("Content-Security-Policy", policy))
    return Response(status=status, kind="text/html; charset=utf-8", body=page.encode(), headers=headers)


def _nonce() -> str:
    return secrets.token_urlsafe(16)


def _state_of(found: Listing) -> str:
    """The state of everything that the list shows, except the length of archives, which grows each second."""
    shown = [(each.path, each.state, each.runs, each.headline, each.decided, each.problem) for each in found.entries]
    return blake2b(repr(shown).encode(), digest_size=8).hexdigest()
