"""One writer at a time: the lock of a study or an archive, which names its holder to the one who comes second."""

import json
import os
import platform
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pgstrata.errors import ExitCode, PgstrataError, StudyError
from pgstrata.model import sizes
from pgstrata.model.codec import parse_json
from pgstrata.system.locks import take_lock
from pgstrata.system.reading import read_regular

LOCK_FILE = "study.lock"


class StudyLockedError(StudyError):
    """Another pgstrata is at work on the study."""

    exit_code = ExitCode.HOST_NOT_FIT


class HeldLock:
    """Held from construction to `release`; the kernel releases it too when the process dies, however it dies.

    Args:
        path: the file, made if it is not there.
        taken: makes the error where another process has it, of the path and of what that process said of itself.
        private: whether nobody but its owner may open it, and so hold it.
    """

    def __init__(self, path: Path, taken: Callable[[Path, str], PgstrataError], *, private: bool = False) -> None:
        try:
            self._descriptor = take_lock(path, private=private)
        except BlockingIOError:
            raise taken(path, _read_holder(path)) from None
        try:
            self._write_holder()
        except OSError:
            os.close(self._descriptor)
            raise

    def _write_holder(self) -> None:
        since = datetime.now(UTC).astimezone().isoformat(timespec="seconds")
        holder = {"pid": os.getpid(), "host": platform.node(), "since": since}
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(holder).encode(), 0)

    def holds(self, path: Path) -> bool:
        """Whether the file at that path is still the one that was locked."""
        try:
            there = path.stat()
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self._descriptor))

    def release(self) -> None:
        """Let it go; nothing happens the second time."""
        if self._descriptor >= 0:
            # a disk that has failed must not keep it, and who held it does not matter any more
            with suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1


class StudyLock(HeldLock):
    """The lock of a study, by its folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / LOCK_FILE, _explain_holder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who said that it holds a lock: a process, its host, since when (ISO 8601)."""

    process: int
    host: str
    since: str


def find_holder(path: Path, locked: Container[int]) -> Holder | None:
    """Who holds the lock of a file, which is not touched; None where nobody of this machine does.

    Args:
        path: the file, perhaps missing.
        locked: inodes of locked files.
    """
    try:
        return _parse_holder(path) if path.lstat().st_ino in locked else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _parse_holder(path: Path) -> Holder:
    holder = parse_json(read_regular(path, most=sizes.LOCK_FILE))
    return Holder(process=int(holder["pid"]), host=str(holder["host"]), since=str(holder["since"]))


def _read_holder(path: Path) -> str:
    try:
        holder = _parse_holder(path)
    except (OSError, ValueError, KeyError, TypeError):
        return "its process is not known"
    return f"process {holder.process} on {holder.host}, since {holder.since}"


def _explain_holder(path: Path, who: str) -> StudyLockedError:
    return StudyLockedError(
        f"another pgstrata is at work on this study ({who})",
        where=str(path.parent),
        remedy="wait for it or stop it; `pgstrata show` works meanwhile",
    )
