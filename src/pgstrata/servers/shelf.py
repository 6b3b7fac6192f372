"""The place of servers and kernels in the cache: each comes into being whole, once, and everybody may enter it.

What belongs here: locks, half-made folders, the checking of what was downloaded. Where servers come from does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.errors import DiskFullError, HostNotFitError, PgstrataError
from pgstrata.ports.host import Host
from pgstrata.system import files
from pgstrata.system.locks import locked
from pgstrata.units import render_duration

DISK_REMEDY: Final = "make room, or choose another place with PGSTRATA_CACHE (and for temporary files with TMPDIR)"
DOWNLOAD_TIMEOUT: Final = 20 * 60.0
_PATIENCE: Final = 4 * 3600.0
"""A build of PostgreSQL takes minutes, with sanitizers on one slow CPU an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSite:
    """Where servers are brought to, built and looked at.

    Args:
        here: the coordinator, as the user that pgstrata runs as.
        host: where servers run, and on the coordinator are built, as the user that they run as.
        cache: folder on the coordinator; everything in it is readable by everybody.
        note: is told in one line what takes a while.
    """

    here: Host
    host: Host
    cache: str
    note: Callable[[str], None]

    @property
    def shelf(self) -> Shelf:
        """The place of servers in the cache."""
        return Shelf(cache=self.cache, note=self.note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Folders below one folder of the cache, by default `servers`.

    Args:
        cache: folder on the coordinator; everything in it is readable by everybody, but for locks.
        note: is told what takes a while.
        patience: how long another process that makes the same is waited for, in seconds.
        place: the name of that folder.
    """

    cache: str
    note: Callable[[str], None]
    patience: float = _PATIENCE
    place: str = "servers"

    def folder(self, name: str) -> Path:
        """Where it is, or will be."""
        return Path(self.cache, self.place, name)

    def has(self, name: str) -> bool:
        """Whether it is there."""
        return self.folder(name).is_dir()

    def bring(self, name: str, fill: Callable[[Path, Path], None]) -> None:
        """Make it, if it is not there.

        Args:
            name: of the folder.
            fill: is given a folder for its own use and the folder to fill, which takes its place afterwards.

        Raises:
            DiskFullError: no room.
            HostNotFitError: the cache cannot be written, or another process does not get done with it.
        """
        if self.has(name):
            return
        with cache_errors(self.cache):
            files.make_folders(Path(self.cache, self.place), mode=0o755)
            with self._alone(name):
                if not self.has(name):
                    self._make(name, fill)

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        path = Path(self.cache, self.place, f".{name}.lock")
        holder = f"`fuser {path}` names it"

        def waiting() -> None:
            self.note(f"waiting for another process that makes {name} ({holder})")

        with ExitStack() as stack:
            try:
                stack.enter_context(locked(path, patience=self.patience, waiting=waiting))
            except BlockingIOError as error:
                raise HostNotFitError(
                    f"another process has been making {name} for {render_duration(self.patience)}",
                    where=str(path),
                    remedy=f"end it ({holder}), or wait for it and try again",
                ) from error
            yield

    def _make(self, name: str, fill: Callable[[Path, Path], None]) -> None:
        folder = self.folder(name)
        partial = folder.with_name(f"{name}.partial")
        scratch = folder.with_name(f"{name}.download")
        for left in (partial, scratch):
            files.remove_rest(left)  # left by a fetch that was killed; we hold the lock
            files.make_folder(left, mode=0o755 if left == partial else None)
        try:
            fill(scratch, partial)
            files.rename(partial, folder)
        finally:
            for left in (partial, scratch):
                files.remove_rest(left)


@contextmanager
def cache_errors(cache: str) -> Iterator[None]:
    """Turn errors of the file system into DiskFullError and HostNotFitError."""
    try:
        yield
    except OSError as error:
        if files.is_full(error):
            what = "the file system of the cache is full"
            raise DiskFullError(what, where=cache, remedy=DISK_REMEDY) from error
        raise HostNotFitError(
            f"the cache cannot be written: {error.strerror or error}",
            where=str(error.filename or cache),
            remedy="choose another place with PGSTRATA_CACHE",
        ) from error


def digest_of(file: Path) -> str:
    """SHA-256 of a file's content."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def verify_digest(archive: Path, expected: str, *, program: str, remedy: str) -> None:
    """Refuse a downloaded file that is not the one that is pinned.

    Raises:
        PgstrataError: its SHA-256 differs.
    """
    found = digest_of(archive)
    if found != expected:
        raise mismatch(archive.name, (f"expected {expected}", f"got      {found}"), program=program, remedy=remedy)


def mismatch(where: str, details: tuple[str, ...], *, program: str, remedy: str) -> PgstrataError:
    """The error for a file that is not the one that is pinned."""
    return PgstrataError(
        f"the file that {program} offers is not the one that is pinned (SHA-256 differs)",
        where=where,
        details=details,
        remedy=f"{remedy}; nothing was installed",
    )
