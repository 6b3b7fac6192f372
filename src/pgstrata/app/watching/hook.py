"""The user's own command that is run when an incident begins and when it ends."""

from __future__ import annotations

import os
import queue
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from pgstrata.errors import UsageError
from pgstrata.model.secret import Secret
from pgstrata.system.users import acting_as_itself

LIMIT: Final = 60.0
"""Seconds after which the command is killed, with all that it started in its process group."""
MOST_WAITING: Final = 20
"""Most calls that wait for earlier ones; if there are more, the oldest are left out."""
_GRACE: Final = 5.0
"""Seconds in which a command that was killed has to be gone."""
_SHORTEST: Final = 4
"""Letters of a secret from which on a variable that contains it is left out; a shorter one may be part of any text."""
_OURS: Final = ("PG",)
"""Beginnings of names of variables that the command does not inherit: those of libpq may hold a password."""


class HookState(StrEnum):
    """What happened."""

    BEGIN = "begin"
    END = "end"


def secrets_of(dsn: str, password: Secret | None) -> tuple[str, ...]:
    """What the command must not see of a connection string; one without a password, such as a service, is no secret."""
    return (dsn, password.reveal()) if password else ()


def parse_hook(text: str) -> tuple[str, ...]:
    """The command and its arguments, quoted as in a shell; UsageError where there are none, or no such program."""
    remedy = "give a program with its arguments, quoted as in a shell: --on-incident 'notify-team db'"
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"the command cannot be read: {error}", where="--on-incident", remedy=remedy) from None
    if not words:
        raise UsageError("the command is empty", where="--on-incident", remedy=remedy)
    if shutil.which(words[0]) is None:
        remedy = "check its name, PATH, and that its file may be executed"
        raise UsageError(f"there is no program {words[0]}", where="--on-incident", remedy=remedy)
    return words


class Hook:
    """Runs a command beside the recorder, one call after the other, in the order in which they were asked for.

    Args:
        words: the command and its arguments; no shell is involved.
        archive: its folder, told to the command.
        environment: that of the recorder; variables of libpq, and what contains a secret, are left out.
        secrets: texts that the command must not see.
        limit: seconds for one call.
    """

    def __init__(
        self,
        words: tuple[str, ...],
        archive: Path,
        environment: Mapping[str, str],
        secrets: tuple[str, ...],
        limit: float = LIMIT,
    ) -> None:
        self._words, self._archive, self._limit = words, archive, limit
        self._environment = {
            name: value
            for name, value in environment.items()
            if not name.startswith(_OURS) and not any(_shows(value, secret) for secret in secrets)
        }
        self._asked: queue.SimpleQueue[tuple[HookState, int, str] | None] = queue.SimpleQueue()
        self._failed: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._worker: threading.Thread | None = None
        self._running: subprocess.Popen[bytes] | None = None
        self._ended = False

    def call(self, state: HookState, begin: int, document: str) -> None:
        """Run the command soon.

        Args:
            state: what happened.
            begin: when the incident began, Unix seconds.
            document: what the command reads from its standard input, JSON.
        """
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name="on-incident", daemon=True)
            self._worker.start()
        if self._asked.qsize() >= MOST_WAITING:
            with suppress(queue.Empty):
                self._asked.get_nowait()
                self._fail(f"was not run for one event, because {MOST_WAITING} calls were waiting already")
        self._asked.put((state, begin, document))

    def tell_failures(self, tell: Callable[[str], None]) -> None:
        """Say what failed since the last time, in the caller's thread."""
        while not self._failed.empty():
            tell(self._failed.get())

    def close(self, patience: float) -> None:
        """No further calls; wait so long for those that were asked for, then kill what still runs."""
        if self._worker is None:
            return
        self._asked.put(None)
        self._worker.join(patience)
        self._ended = True
        if self._worker.is_alive() and (process := self._running) is not None:
            _kill(process)
            self._worker.join(1.0)

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None and not self._ended:
            try:
                why = self._run(*asked)
            except Exception as error:  # noqa: BLE001 - an error that ended the thread would never be told
                why = f"could not be run ({type(error).__name__}: {error})"
            if why:
                self._fail(why)

    def _fail(self, why: str) -> None:
        self._failed.put(f"the command of --on-incident failed: {self._words[0]} {why}; recording goes on")

    def _run(self, state: HookState, begin: int, document: str) -> str:
        """Why a call failed; empty where it did not."""
        environment = {
            **self._environment,
            "PGSTRATA_STATE": state.value,
            "PGSTRATA_INCIDENT_BEGIN": str(begin),
            "PGSTRATA_ARCHIVE": str(self._archive),
        }
        try:
            # the recorder of root's may just be reading the log as the server's user
            with acting_as_itself():
                process = subprocess.Popen(
                    self._words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, start_new_session=True,
                )  # fmt: skip
        except (OSError, ValueError) as error:
            return f"could not be started ({error.strerror or error})" if isinstance(error, OSError) else str(error)
        self._running = process
        try:
            # names of folders need not be text
            process.communicate(document.encode("utf-8", "replace"), timeout=self._limit)
        except subprocess.TimeoutExpired:
            _kill(process)
            _leave(process)
            return f"was killed after {self._limit:.0f} s"
        finally:
            self._running = None
        return f"ended with code {process.returncode}" if process.returncode else ""


def _shows(value: str, secret: str) -> bool:
    return value == secret or (len(secret) >= _SHORTEST and secret in value)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _leave(process: subprocess.Popen[bytes]) -> None:
    """The rest of its input is not written: a child that has left its process group may hold it and never read."""
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
