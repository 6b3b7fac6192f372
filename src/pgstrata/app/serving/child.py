"""Commands of pgstrata itself, run one at a time, at a low priority and for a limited time.

Reports are made in processes of their own: a study that is broken or endless does the server no harm, and a study that
is being measured on this machine is disturbed as little as possible.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LONGEST: Final = 120.0
"""Seconds of one command."""
_MOST_WAITING: Final = 8
_NICENESS: Final = 10
"""Niceness of a command: others come first, but it ends in time even if all CPUs are in use."""


class BusyError(Exception):
    """Too many wait already, or for too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended: its exit code, None if it took too long; what it printed and said."""

    code: int | None
    printed: str
    said: str


class Children:
    """One command after the other; whoever else wants one waits.

    Args:
        program: what is run, before the arguments.
        seconds: the time of one command.
    """

    def __init__(
        self, program: tuple[str, ...] = (sys.executable, "-P", "-m", "pgstrata"), seconds: float = LONGEST
    ) -> None:
        self._program, self.seconds = program, seconds
        self._turn = threading.Lock()
        self._guard = threading.Lock()
        self._waiting = 0
        self._child: subprocess.Popen[str] | None = None
        self._closed = False

    @property
    def wanted(self) -> bool:
        """Whether somebody waits."""
        return self._waiting > 0

    def take_turn(self) -> None:
        """Wait until nobody else runs anything, then keep it so until `end_turn`; BusyError where that takes long."""
        with self._guard:
            if self._waiting >= _MOST_WAITING:
                raise BusyError
            self._waiting += 1
        try:
            if not self._turn.acquire(timeout=self.seconds):
                raise BusyError
        finally:
            with self._guard:
                self._waiting -= 1

    def end_turn(self) -> None:
        """Let the next one."""
        self._turn.release()

    def run(self, *arguments: str, folder: Path) -> Ended:
        """Run a command in a folder, in a turn; BusyError after `close`."""
        with self._guard:
            if self._closed:
                raise BusyError
            child = subprocess.Popen(
                (*self._program, *arguments),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            self._child = child
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, child.pid, _NICENESS)
        try:
            printed, said = child.communicate(timeout=self.seconds)
        except subprocess.TimeoutExpired:
            self._kill()
            child.communicate()
            return Ended(code=None, printed="", said="")
        finally:
            with self._guard:
                self._child = None
        return Ended(code=child.returncode, printed=printed, said=said)

    def close(self) -> None:
        """End what runs; nothing is begun any more."""
        with self._guard:
            self._closed = True
        self._kill()

    def _kill(self) -> None:
        with self._guard:
            # not yet awaited, so its number is still its own
            if self._child is not None and self._child.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._child.pid, signal.SIGKILL)
