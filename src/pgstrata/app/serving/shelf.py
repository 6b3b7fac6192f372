"""What lies below the folder that is served: looked at anew for each request, read anew only where it has changed."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Final

from pgstrata.app.listing import list_below, read_listed
from pgstrata.errors import PgstrataError
from pgstrata.model.listing import Listed, ListedKind, ListedState, Listing
from pgstrata.store.archives.schema import ARCHIVE
from pgstrata.store.archives.writer import LOCK as ARCHIVE_LOCK
from pgstrata.store.catalogue import CATALOGUE
from pgstrata.store.lock import LOCK_FILE
from pgstrata.store.study import MERGED_FILE, PLAN_FILE
from pgstrata.system.locks import locked_inodes

_FILES: Final = {
    ListedKind.STUDY: (PLAN_FILE, CATALOGUE, f"{CATALOGUE}-wal"),
    ListedKind.MERGED: (MERGED_FILE,),
    ListedKind.ARCHIVE: (ARCHIVE, f"{ARCHIVE}-wal"),
    ListedKind.BUNDLE: ("",),
}
_LOCKS: Final = {ListedKind.STUDY: LOCK_FILE, ListedKind.ARCHIVE: ARCHIVE_LOCK}
_MOST_FILES: Final = 500_000
_RECENT: Final = 5.0
"""Seconds for which a look is recent enough to choose the next study whose answer is looked for."""

State = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """A study whose answer is to be looked for, and its state."""

    entry: Listed
    state: State


class Shelf:
    """Studies, bundles and archives, each with a key that says nothing of where it lies.

    Args:
        folder: in which they lie; UsageError where there is none.
        clock: seconds that pass.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # relative paths would mean another folder for the commands that read them
        self.folder: Final = folder.absolute()
        self._secret: Final = secrets.token_bytes(32)
        self._known: dict[Path, tuple[State, Listed]] = {}
        self._answers: dict[str, tuple[State, str]] = {}
        self._keys: dict[str, Listed] = {}
        self._guard = threading.Lock()
        self._last, self._moment = self.look(), clock()

    def look(self) -> Listing:
        """All that is there now, with the answers that were found so far."""
        with self._guard:
            seen: dict[Path, tuple[State, Listed]] = {}

            def read(kind: ListedKind, path: Path, locked: frozenset[int]) -> Listed:
                state, known = _state_of(kind, path, locked), self._known.get(path)
                entry = known[1] if known and known[0] == state else read_listed(kind, path, locked)
                seen[path] = (state, entry)
                return self._with_answer(entry, state)

            found = list_below(self.folder, seconds=0.0, read=read)
            self._known, self._last, self._moment = seen, found, self._clock()
            # what has gone keeps its key, so that its page can say so
            self._keys |= {self.key(each): each for each in found.entries}
        return found

    def key(self, entry: Listed) -> str:
        """A key that stays the same for as long as this process runs."""
        return blake2b(entry.path.encode(errors="surrogateescape"), key=self._secret, digest_size=12).hexdigest()

    def find(self, key: str) -> Listed | None:
        """What was found under that key when somebody last looked, as it is now; None for no key of this."""
        with self._guard:
            found = self._keys.get(key)
        return None if found is None else read_listed(found.kind, Path(found.path), locked_inodes())

    def state(self, entry: Listed) -> str:
        """Another text whenever it has changed."""
        return blake2b(repr(_state_of(entry.kind, Path(entry.path))).encode(), digest_size=8).hexdigest()

    def undecided(self) -> Undecided | None:
        """The newest study whose answer was not looked for; None while one is measured, which would be disturbed."""
        entries = self._last.entries if self._clock() < self._moment + _RECENT else self.look().entries
        if any(each.state is ListedState.RUNNING and each.kind is ListedKind.STUDY for each in entries):
            return None
        wanted = ((each, _state_of(each.kind, Path(each.path))) for each in entries if needs_answer(each))
        return next(
            (Undecided(entry=each, state=now) for each, now in wanted if self._answers.get(each.path, ((),))[0] != now),
            None,
        )

    def decide(self, found: Undecided, headline: str) -> None:
        """Keep the answer of a study, until the study changes."""
        with self._guard:
            self._answers[found.entry.path] = (found.state, headline)

    def check(self, entry: Listed) -> None:
        """PgstrataError where it has gone, or where anything in it is a link, which might lead elsewhere."""
        relative = Path(entry.path).relative_to(self.folder)
        if Path(os.path.realpath(entry.path)) != Path(os.path.realpath(self.folder)) / relative:
            raise _LinkError(entry.path)
        left = _MOST_FILES
        for where, folders, files in os.walk(entry.path):
            left -= len(folders) + len(files)
            if left < 0:
                what = "it has too many files to be shown here"
                raise PgstrataError(what, where=entry.path, remedy="use `pgstrata report`")
            with os.scandir(where) as entries:
                if link := next((each.path for each in entries if each.is_symlink()), ""):
                    raise _LinkError(link)

    def _with_answer(self, entry: Listed, state: State) -> Listed:
        known, headline = self._answers.get(entry.path, ((), ""))
        return replace(entry, headline=headline, decided=True) if known == state else entry


class _LinkError(PgstrataError):
    def __init__(self, path: str) -> None:
        remedy = "put the files themselves there"
        super().__init__("it is a link, and links are not followed here", where=path, remedy=remedy)


def needs_answer(entry: Listed) -> bool:
    """Whether it is a study whose answer could be looked for."""
    return entry.kind is ListedKind.STUDY and bool(entry.runs) and not entry.decided and not entry.problem


def _state_of(kind: ListedKind, path: Path, locked: frozenset[int] = frozenset()) -> State:
    """The state of its files: inode, size and time of each, and who holds its lock."""
    # a thousand of them are looked at for each list, so without a path object for each file
    place = str(path)
    states = [_stat(f"{place}/{name}" if name else place) for name in _FILES[kind]]
    lock = _stat(f"{place}/{_LOCKS[kind]}") if kind in _LOCKS else ()
    return (*states, lock if lock and lock[0] in locked else ())


def _stat(path: str) -> tuple[int, ...]:
    """Empty where there is none; an empty one is none, because readers of a database make such a log."""
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found.st_size else ()
