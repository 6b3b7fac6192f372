"""The transport to a machine: run a command, move a file, look at the clock; and the coordinator's own time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from pgstrata.model.secret import Secret
from pgstrata.ports.steps import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program to run on a host: an argv list, never a shell line.

    `environment` is added to the host's. `password` is libpq's: it stands in a file without a name that the process
    inherits and PGPASSFILE leads to; it is never shown, logged or visible in a process list or an environment.
    `stdin` is fed to the program and closed. `memory` is the most that each of its processes may reserve, in bytes.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    password: Secret | None = None
    folder: str | None = None
    stdin: bytes = b""
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTime:
    """CPU seconds of a finished process and its waited-for children."""

    user: float = 0.0
    system: float = 0.0

    def __add__(self, other: CpuTime) -> CpuTime:
        return CpuTime(user=self.user + other.user, system=self.system + other.system)

    @property
    def total(self) -> float:
        """user + system, seconds."""
        return self.user + self.system


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A finished command. `code` is the exit status, or minus the signal's number."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def complaints(self) -> str:
        """Standard error as text."""
        return self.stderr.decode("utf-8", "replace")

    def last_words(self, most: int = 3) -> tuple[str, ...]:
        """The last lines of standard error; of standard output where there are none."""
        return tuple((self.complaints.strip() or self.text.strip()).splitlines()[-most:])


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExit:
    """How a spawned process ended, and the CPU time that it used; of several together, that of `each` of them too."""

    code: int
    cpu: CpuTime
    each: tuple[CpuTime, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """Both clocks of a host at one moment: `wall` in Unix seconds, `monotonic` since boot, seconds."""

    wall: float
    monotonic: float


class StopSignal(StrEnum):
    """Signals that pgstrata sends, to processes that it started only."""

    TERM = "TERM"
    INT = "INT"
    QUIT = "QUIT"
    KILL = "KILL"
    ALRM = "ALRM"
    STOP = "STOP"
    CONT = "CONT"


class Process(Protocol):
    """A process that runs in the background on a host, leader of its own process group.

    It is sent `on_parent_death` when the coordinator dies, however it dies.
    """

    @property
    def pid(self) -> int:
        """Process id on the host."""

    def poll(self) -> ProcessExit | None:
        """How it ended, or None while it runs."""

    def wait(self, timeout: float) -> ProcessExit:
        """Wait for its end; TimeoutError after `timeout` seconds."""

    def signal(self, signal: StopSignal, *, group: bool = False) -> None:
        """Send a signal to it, or to its process group; nothing happens if it has ended."""


class Host(Protocol):
    """The one transport to a machine: run a command, move a file, look at the clock; nothing else.

    Paths are absolute and belong to the host. Everything is done as `user`. Missing files raise HostFileError, a full
    file system DiskFullError, a broken connection HostLostError.
    """

    @property
    def name(self) -> str:
        """For messages and records: local, or the host's name."""

    @property
    def user(self) -> str:
        """The user that processes run as."""

    def as_user(self, user: str) -> Host:
        """The same machine as another user, for root only; HostNotFitError. It need not be closed."""

    @property
    def transport_pids(self) -> tuple[int, ...]:
        """Processes on the host that are pgstrata itself (coordinator or its shell), for the observer's CPU time."""

    def run(self, command: Command, *, timeout: float = 600.0, check: bool = True) -> Completed:
        """Run to the end. With `check`, a non-zero code raises CommandFailedError with the last lines of stderr."""

    def running(self, command: Command, *, timeout: float = 600.0, check: bool = True) -> Steps[Completed]:
        """As `run`, in two steps: started, then awaited for at most `timeout` seconds. It is killed if it is closed."""

    def spawn(
        self, command: Command, *, stdout: str, stderr: str, on_parent_death: StopSignal = StopSignal.TERM
    ) -> Process:
        """Start in the background with output to files on the host (created, or appended to)."""

    def read(self, path: str, *, offset: int = 0) -> bytes:
        """Content of a file from `offset` bytes on."""

    def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        """Contents of all those that exist and can be read, in one exchange; others are left out."""

    def read_matching(self, pattern: str) -> bytes:
        """Contents of all files that match a glob, one after the other; those that vanish are left out."""

    def write(self, path: str, content: bytes, *, mode: int = 0o600) -> None:
        """Create or replace a file; atomic: written beside and renamed."""

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""

    def list_folder(self, path: str) -> tuple[str, ...]:
        """Names in a folder, sorted; empty if there is no such folder."""

    def make_folder(self, path: str, *, mode: int = 0o700) -> None:
        """Create a folder and its parents; nothing happens if it is there."""

    def remove_tree(self, path: str) -> None:
        """Remove a file or folder with all in it; nothing happens if it is not there."""

    def rename(self, source: str, target: str) -> None:
        """Rename within a file system; an existing file (not folder) is replaced."""

    def free_bytes(self, path: str) -> int:
        """Free space for this user at the nearest existing folder of `path`."""

    def pid_alive(self, pid: int) -> bool:
        """Whether a process with that id exists."""

    def signal_pid(self, pid: int, signal: StopSignal) -> None:
        """Send a signal to one process by id, found by pgstrata's own marker; nothing happens if it has gone."""

    def clock(self) -> ClockReading:
        """The host's clocks."""

    def close(self) -> None:
        """End what was spawned and leave."""


class Clock(Protocol):
    """The coordinator's time."""

    def wall(self) -> float:
        """Unix seconds."""

    def monotonic(self) -> float:
        """Seconds that never jump."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_START_TIME_FIELD: Final = 19  # field 22 of /proc/PID/stat, counted from the state that follows the name (proc(5))


def start_times(host: Host, pids: Sequence[int]) -> Mapping[int, str]:
    """When processes started, in ticks since boot, by id; those that have ended are left out."""
    paths = {f"/proc/{pid}/stat": pid for pid in pids}
    found: dict[int, str] = {}
    for path, content in host.read_files(tuple(paths)).items():
        fields = content.decode("utf-8", "replace").rpartition(")")[2].split()
        if len(fields) > _START_TIME_FIELD and fields[0] not in ("Z", "X"):
            found[paths[path]] = fields[_START_TIME_FIELD]
    return found


def observe_boot(host: Host) -> str:
    """The id of the boot that a host runs."""
    return host.read(BOOT_ID).decode().strip()
