"""`pgstrata list`: what lies below a folder. Nothing is changed or locked, and links are not followed."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pgstrata.errors import PgstrataError, UsageError
from pgstrata.model.listing import Listed, ListedKind, ListedState, Listing
from pgstrata.ports.studies import StudyHead
from pgstrata.report.sentences.names import name_environment
from pgstrata.store.archives.reader import ArchiveReader
from pgstrata.store.archives.schema import ARCHIVE
from pgstrata.store.archives.writer import LOCK as ARCHIVE_LOCK
from pgstrata.store.catalogue import CATALOGUE, count_runs
from pgstrata.store.lock import LOCK_FILE, Holder, find_holder
from pgstrata.store.merged import load_merged_head
from pgstrata.store.serialise import parse_plan_file
from pgstrata.store.study import MERGED_FILE, PLAN_FILE, load_plan_file
from pgstrata.system.locks import locked_inodes
from pgstrata.system.reading import open_regular

DEPTH: Final = 4
MOST_ENTRIES: Final = 5_000
DECIDING_SECONDS: Final = 2.0
"""Spent on headlines at most, unless all are asked for."""
_MOST_FILES: Final = 200_000
_BUNDLE: Final = ".tar.xz"
_MARKS: Final = {PLAN_FILE: ListedKind.STUDY, MERGED_FILE: ListedKind.MERGED, ARCHIVE: ListedKind.ARCHIVE}


Read = Callable[[ListedKind, Path, frozenset[int]], Listed]


def list_below(
    folder: Path,
    *,
    seconds: float | None = DECIDING_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    read: Read | None = None,
) -> Listing:
    """What lies in a folder or up to `DEPTH` folders below it, the newest first.

    Args:
        folder: where to look.
        seconds: the time for headlines of studies, which are looked for from the newest on; None: for all.
        clock: seconds that pass.
        read: instead of `read_listed`.

    Raises:
        UsageError: there is no such folder.
    """
    if not folder.is_dir():
        remedy = "name a folder in which studies, bundles or archives lie"
        raise UsageError("there is no such folder", where=str(folder), remedy=remedy)
    walk, locked = _Walk(), locked_inodes()
    read = read or read_listed
    entries = sorted((read(kind, path, locked) for kind, path in walk.find(folder)), key=_moment, reverse=True)
    until = None if seconds is None else clock() + seconds
    decided = tuple(_decide(one) if until is None or clock() < until else one for one in entries)
    return Listing(folder=str(folder), entries=decided, depth=DEPTH, unread=tuple(walk.unread), cut=walk.cut)


@dataclass(slots=True)
class _Walk:
    """Looks through folders, those of one depth after the other; hidden ones and those of a study are left out."""

    unread: list[str] = field(default_factory=list)
    cut: bool = False
    _files: int = 0
    _found: int = 0

    def find(self, folder: Path) -> Iterator[tuple[ListedKind, Path]]:
        waiting = deque([(folder, 0)])
        while waiting and not self.cut:
            here, depth = waiting.popleft()
            names, folders = self._look_into(here)
            if kind := next((kind for name, kind in _MARKS.items() if name in names), None):
                yield from self._take(kind, here)
                continue
            for name in names:
                if name.endswith(_BUNDLE) and _is_bundle(here / name):
                    yield from self._take(ListedKind.BUNDLE, here / name)
            if depth < DEPTH:
                waiting.extend((here / name, depth + 1) for name in folders)

    def _take(self, kind: ListedKind, path: Path) -> Iterator[tuple[ListedKind, Path]]:
        self._found += 1
        self.cut = self.cut or self._found > MOST_ENTRIES
        if not self.cut:
            yield kind, path

    def _look_into(self, folder: Path) -> tuple[list[str], list[str]]:
        """Names of ordinary files and of folders, sorted."""
        files, folders = [], []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._files += 1
                    if self._files > _MOST_FILES:
                        self.cut = True
                        break
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    elif entry.is_file(follow_symlinks=False):
                        files.append(entry.name)
        except OSError:
            self.unread.append(str(folder))
        return sorted(files), sorted(name for name in folders if not name.startswith("."))


def _is_bundle(path: Path) -> bool:
    from pgstrata.store.bundles.archive import begins_like_bundle  # noqa: PLC0415 - most folders have no bundles

    try:
        with open_regular(path) as stream:
            return begins_like_bundle(stream)
    except OSError:
        return False


def read_listed(kind: ListedKind, path: Path, locked: frozenset[int]) -> Listed:
    """What is known of it without a comparison; what cannot be read is damaged, with the reason.

    `locked`: inodes of files that processes have locked.
    """
    listed = Listed(kind=kind, path=str(path), state=ListedState.FINISHED, name=path.absolute().name)
    try:
        match kind:
            case ListedKind.STUDY:
                return _read_study(listed, path, find_holder(path / LOCK_FILE, locked))
            case ListedKind.ARCHIVE:
                return _read_archive(listed, path, find_holder(path / ARCHIVE_LOCK, locked))
            case ListedKind.BUNDLE:
                return _read_bundle(listed, path)
            case ListedKind.MERGED:
                return replace(listed, environments=load_merged_head(path).parts, created=_modified(path / MERGED_FILE))
    except PgstrataError as error:
        return replace(
            listed, state=ListedState.DAMAGED, created=_modified(path), problem=error.what, remedy=error.remedy
        )


def _read_study(listed: Listed, path: Path, holder: Holder | None) -> Listed:
    head = load_plan_file(path)
    planned, runs = len(head.plan.runs), count_runs(path / CATALOGUE)
    state = ListedState.FINISHED if runs >= planned else ListedState.BEGUN
    return _held(replace(_with_head(listed, head), state=state, runs=runs, planned=planned), holder)


def _with_head(listed: Listed, head: StudyHead) -> Listed:
    """With what its plan says of a study."""
    experiment = head.plan.experiment
    names = tuple(name_environment(each, experiment) for each in experiment.environments)
    return replace(listed, question=experiment.question, environments=names, created=head.created)


def _held(listed: Listed, holder: Holder | None) -> Listed:
    if holder is None:
        return listed
    return replace(listed, state=ListedState.RUNNING, process=holder.process, host=holder.host)


def _read_archive(listed: Listed, path: Path, holder: Holder | None) -> Listed:
    with ArchiveReader.open(path) as reader:
        facts = reader.facts()
    if facts is None:
        return _held(replace(listed, created=_modified(path / ARCHIVE), server="a server, nothing yet"), holder)
    server = f"PostgreSQL {facts.facts.get('server_version', 'of unknown version')}"
    created = datetime.fromtimestamp(facts.span.begin, UTC).isoformat(timespec="seconds")
    return _held(replace(listed, server=server, span=facts.span, created=created), holder)


def _read_bundle(listed: Listed, path: Path) -> Listed:
    """Read a bundle's manifest and plan, which lie at its beginning; the rest is neither unpacked nor checked."""
    from pgstrata.store.bundles.unpack import open_bundle  # noqa: PLC0415 - most folders have no bundles

    with open_bundle(path) as bundle:
        named = replace(listed, name=bundle.manifest.study, runs=bundle.manifest.runs, created=_modified(path))
        file, content = next(bundle.files())
    if file.path != PLAN_FILE or content is None:
        return named
    return _with_head(named, parse_plan_file(content, where=str(path)))


def _modified(path: Path) -> str:
    with suppress(OSError):
        return datetime.fromtimestamp(path.lstat().st_mtime, UTC).isoformat(timespec="seconds")
    return ""


def _moment(one: Listed) -> tuple[float, str]:
    """When it was begun; what does not say so in a way that can be read is the oldest."""
    try:
        begun = datetime.fromisoformat(one.created)
        return (begun if begun.tzinfo else begun.replace(tzinfo=UTC)).timestamp(), one.path
    except (ValueError, OverflowError):
        return 0.0, one.path


def _decide(one: Listed) -> Listed:
    """With its headline, and whether everything is decided that was asked."""
    if one.kind is not ListedKind.STUDY or not one.runs:
        return one
    from pgstrata.app.headline import decide_headline  # noqa: PLC0415 - reading and comparing takes half a second

    try:
        headline, finished = decide_headline(Path(one.path))
    except PgstrataError as error:
        return replace(one, state=ListedState.DAMAGED, problem=error.what, remedy=error.remedy)
    ended = finished and one.state is ListedState.BEGUN
    return replace(one, headline=headline, decided=True, state=ListedState.FINISHED if ended else one.state)
