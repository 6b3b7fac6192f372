"""Programs of this machine that run side by side, and what each of them says while the others work.

`local` has programs that are waited for one by one.
"""

from __future__ import annotations

import math
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Final

from pgstrata.errors import PgstrataError
from pgstrata.hosts import failures
from pgstrata.hosts.account import UserAccount
from pgstrata.hosts.lanes import LONGEST_WAIT, wait_for, waiting
from pgstrata.hosts.local_process import kill_group, start
from pgstrata.ports.host import Command, Completed, StopSignal

_LONG: Final = 7200.0
_CHUNK: Final = 1 << 18
_LAST_WORDS: Final = 65536


@dataclass(slots=True, kw_only=True)
class Started:
    """A running program. `said` is its standard output so far, read by `hear`; `speaking`: there may be more.

    Its standard error goes into a file, so that it never waits for a reader.
    """

    child: subprocess.Popen[bytes]
    errors: IO[bytes]
    said: bytearray = field(default_factory=bytearray)
    speaking: bool = True

    def take(self) -> bool:
        """Read what it has printed; returns whether there may be more."""
        assert self.child.stdout is not None
        chunk = os.read(self.child.stdout.fileno(), _CHUNK)
        self.said += chunk
        self.speaking = bool(chunk)
        return self.speaking

    def wait(self) -> int:
        """Wait until it ends, perhaps because another program has ended; returns the exit code."""
        return wait_for(self.child)

    def finish(self, program: str, host: str) -> None:
        """Wait for its end. CommandFailedError, DiskFullError if it failed; `program` and `host` are for messages."""
        command = Command(argv=(program,))
        try:
            code = wait_for(self.child, _LONG)
        except subprocess.TimeoutExpired:
            raise failures.command_overdue(command, _LONG, b"", host=host) from None
        if code:
            raise self.failed(program, host)

    def failed(self, program: str, host: str) -> PgstrataError:
        """The error for a program that has ended, with its last words."""
        self.errors.seek(max(0, self.errors.seek(0, os.SEEK_END) - _LAST_WORDS))
        completed = Completed(code=self.child.returncode, stdout=b"", stderr=self.errors.read())
        return failures.command_failed(Command(argv=(program,)), completed, host=host)


def hear(programs: Sequence[Started], enough: Callable[[], bool], *, timeout: float = math.inf) -> None:
    """Gather what programs say until it is enough, or until none of them says any more.

    TimeoutError if that takes longer than `timeout` seconds.
    """
    poller = select.poll()
    speaking = {}
    for program in programs:
        if program.speaking and program.child.stdout is not None:
            poller.register(program.child.stdout, select.POLLIN)
            speaking[program.child.stdout.fileno()] = program
    deadline = time.monotonic() + timeout
    while speaking and not enough():
        with waiting() as wait:
            ready = poller.poll(min(LONGEST_WAIT, max(0.0, deadline - time.monotonic())) * 1000)
        deadline += wait.late
        if not ready and time.monotonic() >= deadline:
            raise TimeoutError
        for outlet, _ in ready:
            if not speaking[outlet].take():
                poller.unregister(outlet)
                del speaking[outlet]


@contextmanager
def started(
    command: Command, user: UserAccount, *, stdin: int = subprocess.DEVNULL, stdout: int = subprocess.PIPE
) -> Iterator[Started]:
    """Start a program as a user of this machine; what still runs in the end is killed.

    Raises:
        HostNotFitError: there is no such program, or it cannot be started.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            child = start(
                command,
                user,
                stdin=stdin,
                stdout=stdout,
                stderr=errors.fileno(),
                on_parent_death=StopSignal.KILL,
            )
        except FileNotFoundError as error:
            raise failures.program_missing(command.argv[0], host="local") from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise failures.program_refused(command.argv[0], reason, host="local", user=user.name) from error
        with child:
            try:
                yield Started(child=child, errors=errors)
            finally:
                if child.poll() is None:  # only what has failed still runs
                    kill_group(child.pid)
