"""The rows of one look at pg_stat_activity, and the heads of the chains of those that block. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from pgstrata.collectors.lines import whole_lines
from pgstrata.collectors.sessions.parse import unify_names
from pgstrata.collectors.statements import constants_expression, statements_for
from pgstrata.diagnosis.query_text import hash_query, normalise_masked
from pgstrata.errors import ParseError
from pgstrata.model.archive import Blocking, SessionClass, SessionsLook

MOST_ASKED: Final = 50
"""Sessions that wait for a lock and are asked who blocks them; each question looks at the whole lock table."""
MOST_APPLICATIONS: Final = 200
"""Names of applications that are told apart: some put a number of their own into theirs."""
OTHERS: Final = "(other applications)"
_CLASS: Final = 9
"""Columns that make up a class."""
_COLUMNS: Final = 12
_NO_QUERY: Final = "(prepared transaction)"


@cache
def sessions_statement(version: int) -> str:
    """What a server of that version is asked each second."""
    text = statements_for(__package__, "sessions", version)[0][1]
    return text.replace("@constant@", constants_expression()).replace("@most@", str(MOST_ASKED))


@dataclass(slots=True)
class SessionsReader:
    """Reads looks; `texts` are the normalised texts of statements by key that the server gave no id for."""

    texts: dict[str, str] = field(default_factory=dict)
    _known: dict[str, SessionClass] = field(default_factory=dict)
    _applications: set[str] = field(default_factory=set)

    def read(self, rows: bytes) -> SessionsLook:
        """One look.

        Raises:
            ParseError: a row has an unknown shape.
        """
        counts: Counter[SessionClass] = Counter()
        waiting: list[tuple[int, SessionClass, tuple[int, ...]]] = []
        seen: dict[int, _Seen] = {}
        for line in whole_lines(rows):
            words = line.rsplit("\t", _COLUMNS - _CLASS)
            try:
                classed, pid, held = words[0], int(words[1]), max(0, int(words[2]))
                behind = tuple(map(int, words[3].split()))
            except (IndexError, ValueError):
                raise ParseError(f"unknown shape of a session: {line[:200]!r}") from None
            known = self._known.get(classed) or self._learn(classed)
            counts[known] += 1
            seen[pid] = _Seen(known, held, behind)
            if behind:
                waiting.append((pid, known, behind))
        blocked = Counter(_find_root(pid, known, seen) for pid, known, _ in waiting)
        return SessionsLook(counts=counts, blocked=blocked)

    def forget(self) -> None:
        """Texts are told again."""
        self._known.clear()

    def _learn(self, classed: str) -> SessionClass:
        words = classed.split("\t")
        if len(words) != _CLASS:
            raise ParseError(f"unknown shape of a session: {classed[:200]!r}")
        kind, database, role, application, state, wait_type, event, identity, masked = words
        if application not in self._applications:
            if len(self._applications) >= MOST_APPLICATIONS:
                application = OTHERS
            else:
                self._applications.add(application)
        wait_type, event = unify_names(wait_type, event)
        found = SessionClass(
            kind=kind, database=database, role=role, application=application, state=state,
            wait_type=wait_type, event=event, statement=identity or self._identify(masked),
        )  # fmt: skip
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known[classed] = found
        return found

    def _identify(self, masked: str) -> str:
        text = normalise_masked(masked)
        key = hash_query(text)
        if key and key not in self.texts:
            self.texts[key] = text
        return key


_MOST_KNOWN: Final = 20_000


@dataclass(frozen=True, slots=True)
class _Seen:
    session: SessionClass
    held: int
    blockers: tuple[int, ...]


def _find_root(pid: int, known: SessionClass, seen: Mapping[int, _Seen]) -> Blocking:
    """The head of the chain behind which a session waits; in a circle, the one that was come to last."""
    passed, here = {pid}, pid
    while True:
        further = [each for each in seen[here].blockers if each not in passed]
        if not further:
            break
        if 0 in further:
            root = SessionClass(kind="", state=_NO_QUERY)
            return Blocking(waiting=known, root=root, pid=0, held=0)
        found = next((each for each in further if each in seen), None)
        if found is None:
            return Blocking(waiting=known, root=None, pid=0, held=0)
        passed.add(found)
        here = found
    if here == pid:
        return Blocking(waiting=known, root=None, pid=0, held=0)
    return Blocking(waiting=known, root=seen[here].session, pid=here, held=seen[here].held)
