"""The client of one execution: one process of a driver, or several that share its clients among CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgstrata.ports.host import CpuTime, Process, ProcessExit, StopSignal


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProcesses:
    """Processes that end together: implements `ports.host.Process` for all of them; the first gives its name to them.

    Args:
        processes: at least one, each leader of its own process group.
    """

    processes: Sequence[Process]

    @property
    def pid(self) -> int:
        """Of the first."""
        return self.processes[0].pid

    @property
    def pids(self) -> tuple[int, ...]:
        """Of all."""
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
        """Send a signal to each, or to the process group of each."""
        for process in self.processes:
            process.signal(signal, group=group)


def _together(exits: Sequence[ProcessExit]) -> ProcessExit:
    cpu = CpuTime(user=sum(each.cpu.user for each in exits), system=sum(each.cpu.system for each in exits))
    return ProcessExit(code=next((each.code for each in exits if each.code), 0), cpu=cpu)
