"""Locks of files on this machine, which the kernel lets go when the process that holds them ends, however it ends.

Root takes them as whoever could replace the path (`ways.as_owner`). Failures raise OSError.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pgstrata.system.reading import read_as_is
from pgstrata.system.ways import as_owner

_LOCKS: Final = "/proc/locks"
_MOST: Final = 1 << 24
_FLOCK: Final = re.compile(r"^\d+: FLOCK\s+ADVISORY\s+WRITE\s+-?\d+\s+\S+:(\d+)\s", re.MULTILINE)
_POLL: Final = 0.1
_SOON: Final = 3.0


@as_owner
def take_lock(path: Path, *, wait: float = 0.0, private: bool = False) -> int:
    """A descriptor that holds the lock of a file, which is made if it is not there, until it is closed.

    The kernel closes it too when this process ends, however it ends. BlockingIOError: another process has it, and
    still has it after `wait` seconds. Who may open a file can hold its lock; of a `private` one only its owner can.
    """
    mode = 0o600 if private else 0o644
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        if private and os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, mode)  # former versions let everybody read it
        _lock(descriptor, time.monotonic() + wait)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _lock(descriptor: int, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_POLL)


@contextmanager
def locked(path: Path, *, patience: float, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a file that nobody but its owner can open.

    Args:
        path: the file, made if it is not there.
        patience: how long another process that has it is waited for, in seconds; then BlockingIOError.
        waiting: called once if that takes longer than some seconds.
    """
    soon = min(patience, _SOON)
    try:
        descriptor = take_lock(path, wait=soon, private=True)
    except BlockingIOError:
        waiting()
        descriptor = take_lock(path, wait=patience - soon, private=True)
    try:
        yield
    finally:
        os.close(descriptor)


@as_owner
def is_in_use(path: Path) -> bool:
    """Whether another process has locked a part of a file, as QEMU does with the images of its disks (fcntl(2)).

    FileNotFoundError if there is no such file.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def locked_inodes() -> frozenset[int]:
    """Inodes of the files that processes of this machine have locked by flock(2), from /proc/locks (proc_locks(5)).

    Nothing is locked by looking. Empty where that file cannot be read.
    """
    try:
        text = read_as_is(_LOCKS, most=_MOST).decode("ascii", "replace")
    except OSError:
        return frozenset()
    return frozenset(int(inode) for inode in _FLOCK.findall(text))
