"""One writer at a time: the lock of a study, with the identity of its holder for the one who comes second."""

import json
import os
import platform
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pgstrata.errors import ExitCode, StudyError
from pgstrata.model import sizes
from pgstrata.model.codec import parse_json
from pgstrata.system.locks import take_lock
from pgstrata.system.reading import read_regular

LOCK_FILE = "study.lock"


class StudyLockedError(StudyError):
    """Another pgstrata is at work on the study."""

    exit_code = ExitCode.HOST_NOT_FIT


class StudyLock:
    """Held from construction to `release`; the kernel releases it too when the process dies, however it dies."""

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK_FILE
        try:
            self._descriptor = take_lock(path)
        except BlockingIOError:
            raise _explain_holder(path) from None
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

    def holds(self, folder: Path) -> bool:
        """Whether the lock of that folder is still the one that was taken."""
        try:
            there = (folder / LOCK_FILE).stat()
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self._descriptor))

    def release(self) -> None:
        """Give the study free; nothing happens the second time."""
        if self._descriptor >= 0:
            # a disk that has failed must not keep it, and who held it does not matter any more
            with suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1


def _explain_holder(path: Path) -> StudyLockedError:
    try:
        holder = parse_json(read_regular(path, most=sizes.LOCK_FILE))
        who = f"process {holder['pid']} on {holder['host']}, since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        who = "it has not said which"
    return StudyLockedError(
        f"another pgstrata is at work on this study ({who})",
        where=str(path.parent),
        remedy="wait for it or stop it; `pgstrata show` works meanwhile",
    )
