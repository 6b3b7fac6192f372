"""The client of one execution: a process of a driver, or several that share its clients among CPUs or machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import HostLostError, ParseError
from pgstrata.ports.host import CpuTime, Process, ProcessExit, StopSignal

STARTS: Final = "generators.txt"
"""Evidence name: a line for each machine of a load that comes from several, with what `render_start` writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherClient:
    """The second or a further machine of a load.

    `cpu` are CPU seconds of its clients, `threads` their threads, `cpus` how many the machine has, 0 where that is not
    known; `transport_pids` are pgstrata's own processes there.
    """

    cpu: float
    transport_pids: tuple[int, ...]
    threads: int = 0
    cpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProcesses:
    """Processes that end together: implements `ports.host.Process` for all of them; the first gives its name to them.

    Args:
        processes: at least one, each leader of its own process group.
    """

    processes: Sequence[Process]

    @property
    def pid(self) -> int:
        """Process id of the first."""
        return self.processes[0].pid

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of all."""
        return tuple(process.pid for process in self.processes)

    def poll(self) -> ProcessExit | None:
        """How they ended, with the first code that is not 0, or None while one of them runs."""
        found = [process.poll() for process in self.processes]
        ended = [each for each in found if each is not None]
        return _together(ended) if len(ended) == len(found) else None

    def wait(self, timeout: float) -> ProcessExit:
        """Wait for the end of each; TimeoutError where one takes longer than `timeout` seconds."""
        return _together([process.wait(timeout) for process in self.processes])

    def signal(self, signal: StopSignal, *, group: bool = False) -> None:
        """Send a signal to each, or to the process group of each; HostLostError after that where a machine is lost."""
        lost: HostLostError | None = None
        for process in self.processes:
            try:
                process.signal(signal, group=group)
            except HostLostError as error:
                lost = lost or error
        if lost is not None:
            raise lost


def _together(exits: Sequence[ProcessExit]) -> ProcessExit:
    each = tuple(each.cpu for each in exits)
    return ProcessExit(code=next((each.code for each in exits if each.code), 0), cpu=sum(each, CpuTime()), each=each)


def share_clients(clients: int, machines: int) -> tuple[int, ...]:
    """How many clients each machine has, as evenly as they go; machines beyond the number of clients are left out."""
    parts = min(machines, clients)
    return tuple(clients // parts + (number < clients % parts) for number in range(parts))


def share_threads(threads: int, clients: int, of: int) -> int:
    """The threads of a machine with `clients` of the `of` clients, at least one."""
    return min(clients, max(1, round(threads * clients / of)))


def render_start(host: str, agreed: float, began: str) -> str:
    """Name of a machine, and by its own clock when its load was to begin and when it began, in Unix seconds."""
    return f"{agreed:.6f} {began or '-'} {host}\n"


def parse_delays(starts: bytes) -> tuple[float, ...]:
    """Seconds by which each machine began later than agreed; those that did not begin are left out.

    Raises:
        ParseError: a line has an unknown shape.
    """
    found: list[float] = []
    for line in starts.decode("utf-8", "replace").splitlines():
        agreed, _, rest = line.partition(" ")
        began = rest.partition(" ")[0]
        try:
            if began != "-":
                found.append(float(began) - float(agreed))
        except ValueError:
            raise ParseError(f"unknown shape of a line: {line[:200]!r}", where=STARTS) from None
    return tuple(found)
