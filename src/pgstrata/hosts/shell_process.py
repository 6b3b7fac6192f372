"""Words for the far side of a shell host, and the processes that it guards."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from pgstrata.hosts import failures
from pgstrata.hosts.lanes import waiting
from pgstrata.hosts.transport import Transport, quote
from pgstrata.libpq import render_passfile
from pgstrata.ports.host import Command, CpuTime, ProcessExit, StopSignal

PATIENCE: Final = 60.0
"""Seconds within which a shell answers what takes no time at all."""

_LONGEST_PAUSE: Final = 0.1
_END_OF_TEXT: Final = "transport_end_of_text"
# The kernel counts CPU time towards user space in USER_HZ, which is 100 on every machine that Debian knows.
_TICKS_PER_SECOND: Final = 100.0
_SIGNALLED: Final = range(129, 193)


def render_setup(command: Command) -> str:
    """What a program's guard does before: its folder and its password file, of which nothing shows in a process list.

    The file has lost its name before it is written. What it holds is not on a command line of the shell's either.
    """
    steps = [f"cd -- {quote(command.folder or '/')}"]
    if command.memory:
        # where the shell has a lower limit already, that one stays
        steps.append(f"{{ ulimit -v {command.memory // 1024} 2>/dev/null || :; }}")
    if command.password:
        content = render_passfile(command.password.reveal()).decode("utf-8", "surrogateescape")
        steps.append(f"transport_keep <<'{_END_OF_TEXT}'\n{content}{_END_OF_TEXT}")
    # These serve one program; the transport itself knows a password only until it is told of the next program.
    path = quote(command.environment.get("PATH", "")) if "PATH" in command.environment else "''"
    setup = " && ".join(steps)
    return f"transport_setup() {{ {setup}\n}}\ntransport_program={quote(command.argv[0])}\ntransport_path={path}"


def render_words(command: Command) -> str:
    """Arguments for `env`: the environment, then the program with its arguments."""
    given = (f"{name}={text}" for name, text in command.environment.items())
    # env takes a word with an equals sign for one more variable.
    through = ("sh", "-c", 'exec "$0" "$@"') if "=" in command.argv[0] else ()
    return quote(*given, *through, *command.argv)


def render_input(identity: int, stdin: bytes) -> str:
    """Where a program reads from; the content follows the request."""
    if not stdin:
        return "transport_in=/dev/null"
    return f'transport_in=$transport_tmp/run.{identity}.in\ntransport_feed {len(stdin)} "$transport_in"'


def parse_code(text: str) -> int:
    """The exit code that a shell gives; 128 + n stands for signal n."""
    code = int(text)
    return 128 - code if code in _SIGNALLED else code


@dataclass(slots=True)
class ShellProcess:
    """A process in the background behind a transport (`ports.Process`)."""

    transport: Transport
    identity: int
    pid: int
    on_parent_death: StopSignal
    _exit: ProcessExit | None = field(init=False, default=None)

    def poll(self) -> ProcessExit | None:
        if self._exit is None:
            said = self.transport.exchange(f"transport_do transport_poll {self.identity}", timeout=PATIENCE).stdout
            lines = said.decode("utf-8", "replace").splitlines()
            if lines and lines[-1] == "end":
                self._exit = ProcessExit(code=parse_code(lines[0]), cpu=_parse_cpu(lines[-2]))
        return self._exit

    def wait(self, timeout: float) -> ProcessExit:
        deadline = time.monotonic() + timeout
        pause = 0.005
        while (ending := self.poll()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"process {self.pid} still runs after {timeout:g} s")
            with waiting():
                time.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_PAUSE)
        return ending

    def signal(self, signal: StopSignal, *, group: bool = False) -> None:
        if self._exit is not None:
            return
        target = f"-{self.pid}" if group else str(self.pid)
        self.transport.exchange(f"transport_do transport_signal {self.identity} {signal} {target}", timeout=PATIENCE)

    def end(self, deadline: float) -> None:
        """As when the coordinator dies; killed at `deadline` (of time.monotonic)."""
        if self.poll() is not None:
            return
        self.signal(self.on_parent_death)
        try:
            self.wait(deadline - time.monotonic())
        except TimeoutError:
            self.signal(StopSignal.KILL, group=True)
            self.wait(PATIENCE)


def _parse_cpu(stat: str) -> CpuTime:
    # After the program's name, which may hold anything, come the fields of proc(5) from the third on.
    fields = stat.rpartition(")")[2].split()
    try:
        return CpuTime(user=int(fields[13]) / _TICKS_PER_SECOND, system=int(fields[14]) / _TICKS_PER_SECOND)
    except (IndexError, ValueError):
        raise failures.host_lost(f"the shell shows an unexpected /proc/self/stat: {stat}", host="") from None
