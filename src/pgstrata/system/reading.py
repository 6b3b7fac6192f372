"""Regular files of this machine, read with a bound, as whoever could replace the path (`ways.as_owner_of`).

Failures raise OSError.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Final

from pgstrata.system.ways import as_owner_of, find_owner

_CHUNK: Final = 1 << 16
_READING: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OTHERS_WRITE: Final = (
    "root would execute it, and another user may change it (start pgstrata as the user whose it is, or copy it into a "
    "folder of root's)"
)


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """A regular file for reading, of any size; OSError if it is missing or not regular."""
    with os.fdopen(_open_as_owner(path), "rb") as stream:
        yield stream


@as_owner_of
def _open_as_owner(path: Path) -> int:
    return _open_regular(str(path))


@as_owner_of
def read_regular(path: Path, *, most: int) -> bytes:
    """Content of a regular file of at most `most` bytes; OSError if it is larger, missing or not regular.

    Reading a device, or a pipe without a writer, might never end.
    """
    return read_as_is(str(path), most=most)


def read_own(path: Path, *, most: int) -> bytes:
    """`read_regular` of a file that will be executed.

    OSError also where this process is root's and another user could change or replace the file.
    """
    if find_owner(path, making=False) is not None and path.exists():
        raise PermissionError(errno.EPERM, _OTHERS_WRITE, str(path))
    return read_as_is(str(path), most=most, own=os.geteuid() == 0)


def read_as_is(path: str, *, most: int, offset: int = 0, own: bool = False) -> bytes:
    """`read_regular` from `offset` on, as the user that this process acts as; files of /proc are regular too.

    `own`: OSError where another user than this process's could change it.
    """
    descriptor = _open_regular(path)
    try:
        status = os.fstat(descriptor)
        if own and (status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
            raise OSError(errno.EPERM, _OTHERS_WRITE, path)
        if offset:
            os.lseek(descriptor, offset, os.SEEK_SET)
        return _read_rest(descriptor, path, max(0, os.fstat(descriptor).st_size - offset), most)
    finally:
        os.close(descriptor)


@contextmanager
def open_below(folder: str, path: str, *, owner: int) -> Iterator[BinaryIO]:
    """A regular file of the user `owner` below a folder, for reading; no link below the folder is followed.

    It is for folders in which other users can put anything, such as the root of a container. OSError if it is missing,
    is not regular, belongs to somebody else, or has a link on the way to it.

    Args:
        folder: where the way begins; a link here is followed.
        path: from there, as the container sees it, without `..`.
        owner: number of the user.
    """
    names = [name for name in path.split("/") if name not in {"", "."}]
    if not names or ".." in names:
        raise OSError(errno.EINVAL, "it is no path of a file below a folder", path)
    step = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for place, name in enumerate(names, 1):
            kind = 0 if place == len(names) else os.O_DIRECTORY
            inner = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=step)
            os.close(step)
            step = inner
        status = os.fstat(step)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner:
            raise OSError(errno.EPERM, "it is not an ordinary file of the server's user", path)
        # this very file, whatever lies at its path by now; its owner may hold a lease, for which nobody waits
        descriptor = os.open(f"/proc/self/fd/{step}", _READING)
    finally:
        os.close(step)
    with os.fdopen(descriptor, "rb") as stream:
        yield stream


def read_head(path: str, size: int) -> bytes:
    """The first bytes of a regular file, at most `size`, as the user that this process acts as."""
    descriptor = _open_regular(path)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)


def _open_regular(path: str) -> int:
    descriptor = os.open(path, _READING)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, "it is not an ordinary file", path)


def _read_rest(descriptor: int, path: str, expected: int, most: int) -> bytes:
    """What follows in a file; `expected` bytes, or more where it grows or, as in /proc, does not say its size."""
    chunks: list[bytes] = []
    size = 0
    while expected <= most and size <= most:
        chunk = os.read(descriptor, min(max(expected - size, _CHUNK), most + 1 - size))
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
    raise _too_large(path, most)


def _too_large(name: str, most: int) -> OSError:
    return OSError(errno.EFBIG, f"larger than {most >> 20} MiB", name)


def read_bounded(stream: IO[bytes], name: str, *, most: int) -> bytes:
    """What a stream holds, at most `most` bytes; OSError where it holds more."""
    # None: a stream that does not block has nothing now
    content = stream.read(most + 1) or b""
    if len(content) > most:
        raise _too_large(name, most)
    return content
