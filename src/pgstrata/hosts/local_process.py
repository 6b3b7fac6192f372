"""Processes on this machine that cannot outlive the coordinator, and that report their CPU time."""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Final, Self

from pgstrata.hosts.account import UserAccount
from pgstrata.libpq import render_passfile
from pgstrata.model import sizes
from pgstrata.ports.host import Command, CpuTime, ProcessExit, StopSignal
from pgstrata.system import files

_PR_SET_PDEATHSIG: Final = 1
_prctl = ctypes.CDLL(None, use_errno=True).prctl
_PRIVATE_UMASK: Final = 0o077
_CHUNK: Final = 1 << 18
MOST_OUTPUT: Final = sizes.HOST_ANSWER
"""Bytes that a program may say."""


def signal_number(stop: StopSignal) -> signal.Signals:
    """The number of a signal on this machine."""
    return signal.Signals["SIG" + stop.value]


def prepare(stop: signal.Signals, memory: int | None) -> Callable[[], None]:
    """What a child does before its program starts: `die_with_parent`, and a limit of its memory in bytes."""
    before_exec = die_with_parent(stop)
    if memory is None:
        return before_exec
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        before_exec()

    return bounded


def die_with_parent(stop: signal.Signals) -> Callable[[], None]:
    """What a child does before its program starts: ask the kernel for `stop` when its parent dies.

    It runs after the change of user, which would clear the request. If the parent died before the request was made,
    the kernel will never send it, hence the second look.
    """
    parent = os.getpid()
    number = int(stop)

    def before_exec() -> None:
        _prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    return before_exec


def start(
    command: Command,
    account: UserAccount,
    *,
    stdin: int,
    stdout: int,
    stderr: int,
    on_parent_death: StopSignal,
) -> subprocess.Popen[bytes]:
    """Start a program as leader of its own session and process group; OSError if that fails."""
    passfile = render_passfile(command.password.reveal()) if command.password else b""
    with holding(passfile, account) as descriptor:
        environment = {**account.environment(), **command.environment}
        if passfile:
            environment["PGPASSFILE"] = f"/proc/self/fd/{descriptor}"
        return subprocess.Popen(
            command.argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=command.folder or "/",
            env=environment,
            user=account.ids.uid if account.other else None,
            group=account.ids.gid if account.other else None,
            extra_groups=account.ids.groups if account.other else None,
            umask=_PRIVATE_UMASK,
            start_new_session=True,
            pass_fds=(descriptor,) if passfile else (),
            preexec_fn=prepare(signal_number(on_parent_death), command.memory),  # noqa: PLW1509 the coordinator has one thread
        )


def kill_group(leader: int) -> bool:
    """Kill a process group that this process started; nothing happens if it has gone.

    False if that is refused: a program such as sudo has become root's, and goes on.
    """
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


@contextmanager
def holding(content: bytes, reader: UserAccount | None = None) -> Iterator[int]:
    """A descriptor from which `content` can be read, without anybody having to feed it.

    Its file lies in memory, has no name, and goes with the last process that has it open. `reader` is the user who
    alone may open it anew.
    """
    if not content:
        yield subprocess.DEVNULL
        return
    with reader.acting() if reader else nullcontext():
        descriptor = os.memfd_create("pgstrata")
    try:
        if reader:
            files.make_private(descriptor)
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


class Conversation:
    """Gathers what a child says, until it has ended: not until the last heir of its pipes has.

    A program may leave a daemon behind that keeps the pipes open for ever.
    """

    def __init__(self, account: UserAccount) -> None:
        self._account = account
        with account.acting():  # or the user could not open its own /dev/stderr
            pipes = (os.pipe(), os.pipe())
        (self._stdout, stdout), (self._stderr, stderr) = pipes
        self._childs = (stdout, stderr)
        self._gathered = {self._stdout: bytearray(), self._stderr: bytearray()}
        self._speaking = set(self._gathered)
        self._open = {descriptor for pipe in pipes for descriptor in pipe}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in tuple(self._open):
            self._close(descriptor)

    @property
    def stdout(self) -> bytes:
        """Standard output so far."""
        return bytes(self._gathered[self._stdout])

    @property
    def stderr(self) -> bytes:
        """Standard error so far."""
        return bytes(self._gathered[self._stderr])

    def start(self, command: Command) -> subprocess.Popen[bytes]:
        """Start the child; OSError if that fails."""
        stdout, stderr = self._childs
        with holding(command.stdin) as stdin:
            child = start(
                command, self._account, stdin=stdin, stdout=stdout, stderr=stderr, on_parent_death=StopSignal.KILL
            )
        for descriptor in self._childs:
            self._close(descriptor)
        return child

    def hold(self, child: subprocess.Popen[bytes], timeout: float) -> None:
        """Until the child has ended and was reaped; TimeoutError otherwise, OverflowError if it says too much."""
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
        ended = os.pidfd_open(child.pid)
        try:
            self._loop(ended, time.monotonic() + timeout)
        finally:
            os.close(ended)
        child.wait()
        for descriptor in tuple(self._speaking):
            self._gather(descriptor)

    def _close(self, descriptor: int) -> None:
        self._open.discard(descriptor)
        os.close(descriptor)

    def _loop(self, ended: int, deadline: float) -> None:
        poller = select.poll()
        poller.register(ended, select.POLLIN)
        for descriptor in self._speaking:
            poller.register(descriptor, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            ready = {descriptor for descriptor, _ in poller.poll(max(0.0, left) * 1000)}
            for descriptor in ready & self._speaking:
                if not self._gather(descriptor):
                    poller.unregister(descriptor)
            if ended in ready:
                return
            if left <= 0:
                raise TimeoutError

    def _gather(self, descriptor: int) -> bool:
        """Read what is there; whether more may come."""
        try:
            while chunk := os.read(descriptor, _CHUNK):
                self._gathered[descriptor] += chunk
                if len(self._gathered[descriptor]) > MOST_OUTPUT:
                    raise OverflowError
        except BlockingIOError:
            return True
        self._speaking.discard(descriptor)
        return False


class LocalProcess:
    """A child in the background (`ports.Process`)."""

    def __init__(self, child: subprocess.Popen[bytes], on_parent_death: StopSignal) -> None:
        self._child = child
        self._exit: ProcessExit | None = None
        self.on_parent_death = on_parent_death

    @property
    def pid(self) -> int:
        return self._child.pid

    def poll(self) -> ProcessExit | None:
        if self._exit is None:
            self._reap(os.WNOHANG)
        return self._exit

    def wait(self, timeout: float) -> ProcessExit:
        if self.poll() is None:
            ended = os.pidfd_open(self.pid)
            try:
                poller = select.poll()
                poller.register(ended, select.POLLIN)
                poller.poll(max(0.0, timeout) * 1000)
            finally:
                os.close(ended)
        ending = self.poll()
        if ending is None:
            raise TimeoutError(f"process {self.pid} still runs after {timeout:g} s")
        return ending

    def signal(self, signal: StopSignal, *, group: bool = False) -> None:
        # Not reaped means that the id cannot belong to another process yet.
        if self.poll() is not None:
            return
        number = signal_number(signal)
        try:
            if group:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            pass

    def _reap(self, options: int) -> None:
        # Popen's own poll would throw the resource usage away.
        pid, status, usage = os.wait4(self.pid, options)
        if pid == 0:
            return
        code = os.waitstatus_to_exitcode(status)
        self._child.returncode = code
        self._exit = ProcessExit(code=code, cpu=CpuTime(user=usage.ru_utime, system=usage.ru_stime))
