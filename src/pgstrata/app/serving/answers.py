"""Looks for the answers of studies, one after the other, while nobody waits for a page."""

from __future__ import annotations

import json
import threading
from typing import Final

from pgstrata.app.serving.child import BusyError, Children
from pgstrata.app.serving.shelf import Shelf, Undecided
from pgstrata.errors import PgstrataError

_REST: Final = 5.0
_PAUSE: Final = 0.05


class AnswerSearch:
    """A thread, from the first `want` on until it is closed."""

    def __init__(self, shelf: Shelf, children: Children) -> None:
        self._shelf, self._children = shelf, children
        self._wanted, self._closing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._search, name="answers", daemon=True)
        self._thread.start()

    def want(self) -> None:
        """Somebody looks at the list."""
        self._wanted.set()

    def close(self) -> None:
        """Begin nothing any more."""
        self._closing.set()
        self._wanted.set()

    def _search(self) -> None:
        while self._wanted.wait() and not self._closing.is_set():
            found = self._next()
            if found is None:
                # until somebody looks again
                self._wanted.clear()
                self._closing.wait(_REST)
                continue
            try:
                self._shelf.decide(found, self._headline(found))
            except (BusyError, OSError):
                self._closing.wait(_REST)
            self._closing.wait(_PAUSE)

    def _next(self) -> Undecided | None:
        """None where there is none, where others wait, or where the folder has gone."""
        try:
            return None if self._children.wanted else self._shelf.undecided()
        except PgstrataError:
            return None

    def _headline(self, found: Undecided) -> str:
        """Empty where there is none; BusyError where others wait."""
        self._children.take_turn()
        try:
            ended = self._children.run("list", found.entry.path, "--decide", "--json", folder=self._shelf.folder)
        finally:
            self._children.end_turn()
        return read_headline(ended.printed, found.entry.path) if ended.code == 0 else ""


def read_headline(printed: str, path: str) -> str:
    """The answer, or the problem, of the study at a path, from what `pgstrata list --json` has printed."""
    try:
        entries = json.loads(printed)["entries"]
        (found,) = (each for each in entries if each["path"] == path)
        return str(found["headline"] or found["problem"] or "")
    except (ValueError, KeyError, TypeError):
        return ""
