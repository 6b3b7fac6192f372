"""Reports as pages: made where they are asked for, and kept as long as what they are made of does not change."""

from __future__ import annotations

import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

from pgstrata.app.serving.child import BusyError, Children, Ended

_MOST_KEPT: Final = 16
_LARGEST: Final = 64 << 20
"""Bytes of a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One page that can be made.

    Attributes:
        key: names it among all others.
        arguments: the command that makes it, but for the file, which follows.
        printed: whether the page is what the command prints, and no file follows.
        state: of what it is made of; another one if that has changed.
        rest: seconds for which a page is good enough although that has changed.
        command: what a user would run for the same.
    """

    key: str
    arguments: tuple[str, ...]
    state: str
    rest: float
    command: str
    printed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page that was made, or the problem; `state` is that of its view, `moment` on the clock of the renderer."""

    state: str
    moment: float
    content: str = ""
    problem: str = ""
    status: HTTPStatus = HTTPStatus.OK


class Renderer:
    """Makes and keeps pages."""

    def __init__(self, children: Children, clock: Callable[[], float] = time.monotonic) -> None:
        self._children, self._clock = children, clock
        self._pages: OrderedDict[str, Page] = OrderedDict()
        self._guard = threading.Lock()

    def page(self, view: View) -> Page:
        """The page of a view, which may take as long as it takes to make it."""
        if page := self._fresh(view):
            return page
        try:
            self._children.take_turn()
        except BusyError:
            busy = "Too many pages are being made. Try again in a minute."
            return self._problem(view, busy, HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            if page := self._fresh(view):
                return page
            made = self._make(view)
        except BusyError:
            return self._problem(view, "pgstrata serve is ending.", HTTPStatus.SERVICE_UNAVAILABLE)
        except OSError as error:
            said = f"The page could not be made: {error.strerror or error}. Reload it once there is room."
            return self._problem(view, said, HTTPStatus.SERVICE_UNAVAILABLE)
        finally:
            self._children.end_turn()
        with self._guard:
            self._pages[view.key] = made
            self._pages.move_to_end(view.key)
            while len(self._pages) > _MOST_KEPT:
                self._pages.popitem(last=False)
        return made

    def is_outdated(self, view: View, state: str) -> bool:
        """Whether somebody who has the page of that state would now get another one."""
        page = self._fresh(view)
        return state != (view.state if page is None else page.state)

    def _fresh(self, view: View) -> Page | None:
        with self._guard:
            page = self._pages.get(view.key)
        if page is None or (page.state != view.state and self._clock() - page.moment >= view.rest):
            return None
        return page

    def _make(self, view: View) -> Page:
        with tempfile.TemporaryDirectory(prefix="pgstrata-serve-") as scratch:
            folder = Path(scratch)
            file = folder / "page.html"
            ended = self._children.run(*view.arguments, *(() if view.printed else (str(file),)), folder=folder)
            if ended.code != 0:
                return self._problem(view, self._explain(view, ended))
            if view.printed:
                return Page(state=view.state, moment=self._clock(), content=ended.printed)
            if file.stat().st_size > _LARGEST:
                return self._problem(view, f"The page is too large for this. Write it with: {view.command}")
            return Page(state=view.state, moment=self._clock(), content=file.read_text(encoding="utf-8"))

    def _problem(self, view: View, problem: str, status: HTTPStatus = HTTPStatus.OK) -> Page:
        return Page(state=view.state, moment=self._clock(), problem=problem, status=status)

    def _explain(self, view: View, ended: Ended) -> str:
        if ended.code is None:
            return f"The page was not ready after {self._children.seconds:g} seconds. Write it with: {view.command}"
        if "Traceback" in ended.said or not ended.said.strip():
            return f"The page could not be made, which is a defect of pgstrata. This shows it: {view.command}"
        return ended.said.strip().removeprefix("pgstrata: ")
