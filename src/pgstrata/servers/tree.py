"""PostgreSQL's source, as a folder or a tarball: what it is, what is in it, a copy to build in.

The user's own folder is only read.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Protocol

from pgstrata.errors import UsageError, find_disk_full
from pgstrata.ports.host import Command, Completed, Host
from pgstrata.servers.recipes import TELLING_FILES
from pgstrata.servers.shelf import digest_of
from pgstrata.servers.toolchain import require_programs
from pgstrata.system import files

UNPACKERS: Final = {".tar.gz": "gzip", ".tgz": "gzip", ".tar.bz2": "bzip2", ".tar.xz": "xz"}
_CONFIGURED: Final = ("config.status", "GNUmakefile", "src/Makefile.global", "src/include/pg_config.h")
_NOT_SOURCE: Final = (".git",)
_UNPACK_TIMEOUT: Final = 600.0
_LISTED: Final[dict[tuple[str, int, int], frozenset[str]]] = {}
"""Telling files of tarballs, by path, size and time."""


class Source(Protocol):
    """A source of PostgreSQL, wherever it is."""

    @property
    def origin(self) -> str:
        """What the level does not say of it, such as the commit that a branch stood at; may be empty."""
        ...

    def require(self) -> None:
        """Refuse what cannot be a source: UsageError, or HostNotFitError for a program that reading it takes."""
        ...

    def holds(self) -> frozenset[str]:
        """Those of the telling files that are in it; UsageError where it cannot be read."""
        ...

    def digest(self) -> str:
        """Names its content; UsageError where it cannot be read."""
        ...

    def copy(self, target: Path) -> None:
        """A copy at `target`, which is not there yet; UsageError where it cannot be read, OSError where not written."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A source tree of the user's; implements `Source`.

    Args:
        path: absolute.
    """

    path: str
    origin: ClassVar[str] = ""

    def require(self) -> None:
        """Refuse a tree that was configured in place: what was compiled would be taken over."""
        found = next((name for name in _CONFIGURED if Path(self.path, name).exists()), None)
        if found:
            raise UsageError(
                f"the tree was configured in place: {found} is there, and what was compiled may be as well",
                where=f"build:{self.path}",
                remedy="run make distclean in it, or name a commit of it, such as build:DIR@HEAD",
            )

    def holds(self) -> frozenset[str]:
        return frozenset(name for name in TELLING_FILES if Path(self.path, name).is_file())

    def digest(self) -> str:
        """SHA-256 over names, kinds and contents of its files, without git's own."""
        path, digest = Path(self.path), hashlib.sha256()
        try:
            for file in _files(path):
                facts = file.readlink() if file.is_symlink() else f"{os.access(file, os.X_OK)} {digest_of(file)}"
                digest.update(f"{file.relative_to(path)}\0{facts}\0".encode())
        except OSError as error:
            raise _unreadable(self.path, error) from error
        return digest.hexdigest()

    def copy(self, target: Path) -> None:
        """Times are kept, because make compares them."""
        try:
            files.copy_tree(Path(self.path), target, ignore=_NOT_SOURCE)
        except shutil.Error as error:
            if files.is_full(error):
                raise
            raise _unreadable(self.path, error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A tarball with one folder in it; implements `Source`.

    Args:
        here: the coordinator.
        path: absolute.
    """

    here: Host
    path: str
    origin: ClassVar[str] = ""

    def require(self) -> None:
        unpacker = next(program for ending, program in UNPACKERS.items() if self.path.endswith(ending))
        require_programs(self.here, ("tar", unpacker), f"build:{self.path}")

    def holds(self) -> frozenset[str]:
        # looking through some megabytes takes seconds: once for an experiment is enough
        facts = Path(self.path).stat()
        key = (self.path, facts.st_size, facts.st_mtime_ns)
        if key not in _LISTED:
            done = _tar(self.here, "-t", "-f", self.path)
            if done.code != 0:
                raise _bad_archive(done, f"build:{self.path}")
            inner = {name.removeprefix("./").partition("/")[2] for name in done.text.splitlines()}
            _LISTED[key] = frozenset(TELLING_FILES) & inner
        return _LISTED[key]

    def digest(self) -> str:
        """SHA-256 of the tarball."""
        try:
            return digest_of(Path(self.path))
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def copy(self, target: Path) -> None:
        unpack(self.here, self.path, target, f"build:{self.path}")


def unpack(here: Host, archive: str, target: Path, where: str) -> None:
    """The content of the one folder in a tarball, at `target`.

    Raises:
        UsageError: it cannot be unpacked.
        OSError: no room.
    """
    files.make_folder(target)
    done = _tar(here, "-x", "-f", archive, "-C", str(target), "--strip-components=1", "--no-same-owner")
    if done.code != 0:
        if find_disk_full(done.complaints):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise _bad_archive(done, where)


def _tar(here: Host, *arguments: str) -> Completed:
    command = Command(argv=("tar", *arguments), environment={"LC_ALL": "C"})
    return here.run(command, timeout=_UNPACK_TIMEOUT, check=False)


def _bad_archive(done: Completed, where: str) -> UsageError:
    return UsageError(
        "the tarball cannot be unpacked",
        where=where,
        details=done.last_words(),
        remedy="name a whole tarball with one folder in it that holds PostgreSQL's source",
    )


def _unreadable(path: str, error: OSError) -> UsageError:
    return UsageError(
        f"the source cannot be read: {error.strerror or error}",
        where=str(error.filename or path),
        remedy="make all of it readable, and take out what is no file, folder or link",
    )


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NOT_SOURCE)
        links = [name for name in folders if Path(parent, name).is_symlink()]
        found = (Path(parent, name) for name in sorted([*names, *links]))
        yield from (path for path in found if path.is_symlink() or path.is_file())
