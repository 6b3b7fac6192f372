"""The log of a watched server from its present end on: a file of its host, one in its container, or its container's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

from pgstrata.collectors.live.contained import Unwrapper, Wrapping, container_logs, container_of
from pgstrata.collectors.live.log import MOST, LogPlace, LogReader
from pgstrata.collectors.live.logged_plans import LoggedPlan
from pgstrata.errors import HostFileError, PgstrataError
from pgstrata.model.archive import ArchiveEvent
from pgstrata.ports.host import Command, Host
from pgstrata.system.reading import open_below
from pgstrata.system.trust import ROOT, require_root_keeps

_LOOKED: Final = 10
"""Seconds between two looks at whether the log was truncated or replaced."""
_FAILURES: Final = (PgstrataError, OSError, ValueError, IndexError)


class LogFile(Protocol):
    """A file that grows, and may be truncated or replaced; PgstrataError or OSError where it cannot be read."""

    def status(self) -> tuple[str, int]:
        """Which file it is, and its size."""
        ...

    def read(self, offset: int) -> bytes:
        """Its bytes from `offset` on."""
        ...


@dataclass(frozen=True, slots=True)
class HostFile:
    """A file of a host, read as the user of that host."""

    host: Host
    path: str

    def status(self) -> tuple[str, int]:
        said = self.host.run(Command(argv=("stat", "-L", "-c", "%i %s", "--", self.path))).text.split()
        return said[0], int(said[1])

    def read(self, offset: int) -> bytes:
        return self.host.read(self.path, offset=offset)


@dataclass(frozen=True, slots=True)
class ContainedFile:
    """A file of the user `owner` in the container of a process of this machine; links in there are not followed."""

    process: int
    path: str
    owner: int

    def status(self) -> tuple[str, int]:
        with open_below(self._root, self.path, owner=self.owner) as stream:
            found = os.fstat(stream.fileno())
        return str(found.st_ino), found.st_size

    def read(self, offset: int) -> bytes:
        with open_below(self._root, self.path, owner=self.owner) as stream:
            stream.seek(offset)
            return stream.read(MOST)

    @property
    def _root(self) -> str:
        return f"/proc/{self.process}/root"


@dataclass(slots=True)
class LogTail:
    """Reads what is appended to a log file; if that is more than `MOST` bytes at once, only the end of it."""

    file: LogFile
    wrapping: Wrapping = Wrapping.PLAIN
    _offset: int = -1
    _inode: str = ""
    _looked: int = 0
    _unwrapper: Unwrapper = field(init=False)
    _reader: LogReader = field(default_factory=LogReader)

    def __post_init__(self) -> None:
        self._unwrapper = Unwrapper(self.wrapping)

    def read(self, moment: int) -> tuple[ArchiveEvent, ...]:
        """Events since the last call; none at the first call."""
        if self._offset < 0 or moment - self._looked >= _LOOKED:
            self._look(moment)
        new = self.file.read(self._offset)
        self._offset += len(new)
        if len(new) > MOST:
            self._forget()
        lines = self._unwrapper.read(new[-MOST:])
        return self._reader.read(lines, moment) if lines else ()

    def take_plans(self) -> tuple[LoggedPlan, ...]:
        """Plans that were read since the last call."""
        return self._reader.plans.take()

    def _forget(self) -> None:
        self._unwrapper.forget()
        self._reader.forget()

    def _look(self, moment: int) -> None:
        """Begin a replaced or truncated file from its start, or from its last `MOST` bytes."""
        inode, size = self.file.status()
        before = self._offset
        if self._offset < 0:
            self._offset = size
        elif inode != self._inode or size < self._offset:
            self._offset = 0
        self._offset = max(self._offset, size - MOST)
        if self._offset != before or inode != self._inode:
            self._forget()
        self._inode, self._looked = inode, moment


def find_log(host: Host, place: LogPlace) -> LogTail | None:
    """The log of a server that sees the files of its host: the file that it names, or its standard error.

    Root reads it as the server's user: a link in its place leads no further than that user could go.

    Raises:
        PgstrataError: it cannot be read.
    """
    path = place.path or standard_error(host, place.backend)
    if not path.startswith("/"):
        return None
    if host.user == ROOT:
        host = host.as_user(_owner(host, place.backend)[1])
    return _open(HostFile(host, path))


def find_contained_log(host: Host, place: LogPlace, process: int, *, here: bool) -> LogTail | None:
    """The log of a server in a container: the first one that can be read.

    On this machine that is the file in the container that the server names or writes its messages to. Elsewhere, and
    otherwise, it is the log that docker or podman keep of the container, where root alone could replace that.

    Args:
        host: the container's.
        place: as the server names it in its container.
        process: of the server, by its id on the host.
        here: whether the host is this machine.
    """
    for file, wrapping in _contained_files(host, place, process, here=here):
        with suppress(*_FAILURES):
            return _open(file, wrapping)
    return None


def _contained_files(host: Host, place: LogPlace, process: int, *, here: bool) -> Iterator[tuple[LogFile, Wrapping]]:
    path = place.path
    if not path:
        said = standard_error(host, process)
        path = said if said.startswith("/") and not said.startswith("/dev/") else ""
    if path:
        if here:
            with suppress(*_FAILURES):
                yield ContainedFile(process, path, int(_owner(host, process)[0])), Wrapping.PLAIN
        # its messages do not go to the container's log
        return
    membership = f"/proc/{process}/cgroup"
    container = container_of(host.read_files((membership,)).get(membership, b"").decode("utf-8", "replace"))
    for log, wrapping in (container_logs(container) if container else {}).items():
        with suppress(*_FAILURES):
            if host.user == ROOT:
                require_root_keeps(host, log, remedy="")
            yield HostFile(host, log), wrapping


def _open(file: LogFile, wrapping: Wrapping = Wrapping.PLAIN) -> LogTail:
    tail = LogTail(file, wrapping)
    tail.read(0)
    return tail


def _owner(host: Host, process: int) -> list[str]:
    """Number and name of the user of a server's process.

    No server runs as root. So a process of root is not the server's: a malicious server may name one, such as this
    recorder, to have a file of its choice read.

    Raises:
        HostFileError: the process is root's.
    """
    owner = host.run(Command(argv=("stat", "-c", "%u %U", "--", f"/proc/{process}"))).text.split()
    if owner[0] == "0":
        raise HostFileError(f"process {process} does not belong to the server's user", where="the server's log")
    return owner


def standard_error(host: Host, process: int) -> str:
    """The target of a server's standard error, where it logs without a collector; only the link's text is read."""
    status = f"/proc/{process}/status"
    text = host.read_files((status,)).get(status, b"").decode("utf-8", "replace")
    parent = next((line.split()[1] for line in text.splitlines() if line.startswith("PPid:")), "")
    found = host.run(Command(argv=("readlink", "--", f"/proc/{parent}/fd/2")), check=False)
    return "" if found.code else found.text.strip()
