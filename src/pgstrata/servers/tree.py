"""PostgreSQL's source, as a folder, a tarball or a commit: what it is, what is in it, a copy to build in.

The user's own folder is only read; by root as the user who could replace it, so that nobody is shown more than that
user may see. The copy is made as the user who builds.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Protocol

from pgstrata.errors import UsageError, find_disk_full
from pgstrata.model import sizes
from pgstrata.ports.host import Command, Completed, Host
from pgstrata.servers.commits import Repository, open_repository
from pgstrata.servers.recipes import TELLING_FILES, require_programs
from pgstrata.system import files, reading
from pgstrata.system.trees import copy_tree, digest_tree
from pgstrata.system.users import UserIds, acting_as
from pgstrata.system.ways import find_reader

UNPACKERS: Final = {".tar.gz": "gzip", ".tgz": "gzip", ".tar.bz2": "bzip2", ".tar.xz": "xz"}
_MOST_BYTES: Final = 1 << 30
_CONFIGURED: Final = ("config.status", "GNUmakefile", "src/Makefile.global", "src/include/pg_config.h")
_NOT_SOURCE: Final = (".git",)
_UNPACK_TIMEOUT: Final = 600.0
_MOST_TEXT: Final = 8 << 20
_LISTED: Final[dict[tuple[str, int, int], dict[str, str]]] = {}
"""Telling files of tarballs, and those of configured trees, with their names there, by path, size and time."""


class Source(Protocol):
    """A source of PostgreSQL, wherever it is."""

    @property
    def origin(self) -> str:
        """What the level does not say of it, such as the commit that a branch stood at; may be empty."""

    def require(self) -> None:
        """Refuse what cannot be a source: UsageError, or HostNotFitError for a program that reading it takes."""

    def holds(self) -> frozenset[str]:
        """The telling files (`TELLING_FILES`) that it contains; UsageError where it cannot be read."""

    def text(self, name: str) -> str:
        """What one of the telling files that are in it says; UsageError where it cannot be read."""

    def digest(self) -> str:
        """Names its content and, where root reads it as another user, that user; UsageError: it cannot be read."""

    def copy(self, target: Path) -> None:
        """A copy at `target`, which is not there yet; UsageError where it cannot be read, OSError where not written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildUser:
    """Who builds: `host` acts as that user, whose numbers are `ids` where it is not the user of pgstrata."""

    host: Host
    ids: UserIds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A source tree of the user's; implements `Source`.

    Args:
        builder: whose the copy will be.
        path: absolute.
        reader: the user as whom it is read; pgstrata's own if None.
    """

    builder: BuildUser
    path: str
    reader: UserIds | None = None
    origin: ClassVar[str] = ""

    def require(self) -> None:
        """Refuse a tree that was configured in place: what was compiled would be taken over."""
        found = next(iter(self._among(_CONFIGURED)), None)
        if found:
            raise UsageError(
                f"the tree was configured in place: {found} is there, and what was compiled may be as well",
                where=f"build:{self.path}",
                remedy="run make distclean in it, or name a commit of it, such as build:DIR@HEAD",
            )

    def holds(self) -> frozenset[str]:
        return frozenset(self._among(TELLING_FILES))

    def text(self, name: str) -> str:
        path = Path(self.path, name)
        try:
            with acting_as(self.reader):
                return reading.read_regular(path, most=_MOST_TEXT).decode("utf-8", "replace")
        except OSError as error:
            raise _unreadable(str(path), error) from error

    def _among(self, names: Iterable[str]) -> list[str]:
        with acting_as(self.reader):
            return [name for name in names if os.path.isfile(f"{self.path}/{name}")]  # noqa: PTH113 never raises

    def digest(self) -> str:
        """SHA-256 over names, kinds and contents of its files, without git's own."""
        try:
            return digest_tree(Path(self.path), reader=self.reader, ignore=_NOT_SOURCE) + owned(self.reader)
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def copy(self, target: Path) -> None:
        """Times are kept, because make compares them."""
        try:
            copy_tree(Path(self.path), target, reader=self.reader, writer=self.builder.ids, ignore=_NOT_SOURCE)
        except OSError as error:
            if files.is_full(error):
                raise
            raise _unreadable(self.path, error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A tarball with one folder in it; implements `Source`.

    Args:
        builder: who unpacks it.
        path: absolute.
        reader: as of `Folder`.
    """

    builder: BuildUser
    path: str
    reader: UserIds | None = None
    origin: ClassVar[str] = ""

    @property
    def _unpacker(self) -> str:
        return next(program for ending, program in UNPACKERS.items() if self.path.endswith(ending))

    def require(self) -> None:
        """Refuse a tarball of a tree that was configured in place, as of a folder."""
        require_programs(self.builder.host, ("tar", self._unpacker), f"build:{self.path}")
        found = next((name for name in _CONFIGURED if name in self._members()), None)
        if found:
            raise UsageError(
                f"the tarball is of a tree that was configured in place: it holds {found}, and maybe compiled files",
                where=f"build:{self.path}",
                remedy="unpack it, run make distclean in it, and name the folder",
            )

    def holds(self) -> frozenset[str]:
        return frozenset(name for name in self._members() if name in TELLING_FILES)

    def text(self, name: str) -> str:
        member = self._members().get(name)
        if member is None:
            what = f"the tarball was replaced while it was read, and the new one has no {name}"
            raise UsageError(what, where=f"build:{self.path}", remedy="give the command again once it is complete")
        return self._asked("-x", "-O", "--", member).text

    def _members(self) -> dict[str, str]:
        # looking through some megabytes takes seconds: once for an experiment is enough
        facts = Path(self.path).stat()
        key = (self.path, facts.st_size, facts.st_mtime_ns)
        if key not in _LISTED:
            members = {name.removeprefix("./").partition("/")[2]: name for name in self._asked("-t").text.splitlines()}
            _LISTED[key] = {name: members[name] for name in (*TELLING_FILES, *_CONFIGURED) if name in members}
        return _LISTED[key]

    def _asked(self, *arguments: str) -> Completed:
        done = _tar(self.builder.host, self._content(), f"--{self._unpacker}", *arguments)
        if done.code != 0:
            raise _bad_archive(done, f"build:{self.path}")
        return done

    def digest(self) -> str:
        """SHA-256 of the tarball."""
        return hashlib.sha256(self._content()).hexdigest() + owned(self.reader)

    def copy(self, target: Path) -> None:
        unpack(self.builder.host, self._content(), self._unpacker, target, f"build:{self.path}")

    def _content(self) -> bytes:
        try:
            with acting_as(self.reader):
                return reading.read_regular(Path(self.path), most=_MOST_BYTES)
        except OSError as error:
            raise _unreadable(self.path, error) from error


def owned(reader: UserIds | None) -> str:
    """What tells builds apart of sources that several users have: one could change its own while it is copied."""
    return "" if reader is None else f" of {reader.uid}"


def unpack(host: Host, archive: bytes, unpacker: str, target: Path, where: str) -> None:
    """The content of the one folder in a tarball, at `target`, as the user of the host.

    Raises:
        UsageError: it cannot be unpacked.
        OSError: no room.
    """
    host.make_folder(str(target))
    done = _tar(host, archive, f"--{unpacker}", "-x", "-C", str(target), "--strip-components=1", "--no-same-owner")
    if done.code != 0:
        if find_disk_full(done.complaints):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise _bad_archive(done, where)


def _tar(host: Host, archive: bytes, *arguments: str) -> Completed:
    command = Command(
        argv=("tar", "-f", "-", *arguments), environment={"LC_ALL": "C"}, stdin=archive, memory=sizes.PROGRAM
    )
    return host.run(command, timeout=_UNPACK_TIMEOUT, check=False)


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
        remedy="make all of it readable, and take out what is not a file, folder or link",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A commit; implements `tree.Source`.

    Args:
        builder: who unpacks it.
        repository: where it is.
        name: as it was asked for, such as a branch.
        commit: its full hash, which stays when the branch moves on.
    """

    builder: BuildUser
    repository: Repository
    name: str
    commit: str

    @property
    def _where(self) -> str:
        return f"build:{self.repository.folder}@{self.name}"

    @property
    def origin(self) -> str:
        return f"commit {self.commit}"

    def require(self) -> None:
        require_programs(self.builder.host, ("tar", "gzip"), self._where)

    def holds(self) -> frozenset[str]:
        return self.repository.holds(self.commit, TELLING_FILES)

    def text(self, name: str) -> str:
        return self.repository.text(self.commit, name)

    def digest(self) -> str:
        """The name of its tree, by which commits with the same content are the same."""
        return f"git tree {self.repository.tree(self.commit)}{owned(self.repository.reader)}"

    def copy(self, target: Path) -> None:
        unpack(self.builder.host, self.repository.export(self.commit), "gzip", target, self._where)


def find_source(here: Host, value: str, builder: BuildUser) -> Source:
    """The source that the part behind `build:` names: DIR, FILE.tar.gz, or DIR@COMMIT.

    What is there under the whole name is meant first; otherwise the longest folder before an @.

    Args:
        here: the coordinator, as the user that pgstrata runs as.
        value: the part behind `build:`.
        builder: who builds.

    Raises:
        UsageError: nothing is there, it is no source, or the repository has no such commit.
        HostNotFitError: there is no git, or several users could replace the source.
    """
    where = f"build:{value}"
    if not value.startswith("/"):
        raise UsageError(
            "the path of a source must be absolute", where=where, remedy="write the whole path: build:/DIR"
        )
    path = Path(value)
    if path.is_dir():
        return Folder(builder=builder, path=value, reader=find_reader(value))
    if path.is_file() and value.endswith(tuple(UNPACKERS)):
        return Archive(builder=builder, path=value, reader=find_reader(value))
    if path.exists():
        what = "this is neither a folder nor a .tar.gz, .tar.bz2 or .tar.xz"
        raise UsageError(what, where=where, remedy="name the top folder of PostgreSQL's source, or a tarball")
    for folder, name in _splits(value):
        if Path(folder).is_dir():
            repository = open_repository(here, folder)
            return Revision(builder=builder, repository=repository, name=name, commit=repository.find(name, where))
    raise UsageError(
        "there is nothing at this path",
        where=where,
        remedy="name the top folder of PostgreSQL's source, a tarball, or a commit: build:DIR@COMMIT",
    )


def _splits(value: str) -> Iterator[tuple[str, str]]:
    """At each @, the last one first: names of commits may hold some as well (HEAD@{1})."""
    for place in range(len(value) - 1, 0, -1):
        if value[place] == "@" and value[place + 1 :]:
            yield value[:place], value[place + 1 :]
