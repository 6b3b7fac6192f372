"""The host over the seconds of a run, from samples of the kernel's counters. Pure.

Disks are all whole physical devices together, or the block devices that are named: queue and await by their time
counters, as iostat does (await = growth of time in requests / requests that were done, queue = growth of weighted time
/ time).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from pgstrata.collectors.procfs.counters import SECTOR, Counters, find_disks, read_block_devices
from pgstrata.collectors.procfs.samples import HostSample

Values = Mapping[str, float]
_MILLISECOND: Final = 1e-3
_MICROSECOND: Final = 1e-6


def sum_disks(sample: HostSample, numbers: Collection[str] | None = None) -> Counters:
    """The counters of all disks in a sample, or of the block devices with these numbers; nothing where one is missing.

    Raises:
        ParseError: a line has an unknown shape.
    """
    lines = sample.lines.get("diskstats", ())
    if numbers is None:
        return _sum(find_disks(lines).values()) if lines else {}
    found = {device.number: device.counters for device in read_block_devices(lines)}
    return _sum([found[number] for number in numbers]) if found.keys() >= set(numbers) else {}


def rates(before: Counters, after: Counters, seconds: float, ticks: int) -> Values:
    """What the host did between two samples; NaN for a counter that went backwards, nothing for a missing one."""

    def grown(*names: str) -> float | None:
        growths = [after[name] - before[name] for name in names if name in before and name in after]
        if len(growths) < len(names):
            return None
        return math.nan if any(growth < 0 for growth in growths) else sum(growths)

    values = {name: _scaled(grown(*parts), scale / seconds) for name, (parts, scale) in _RATES.items()}
    for name, parts in _CPU.items():
        values[name] = _scaled(grown(*parts), 1 / ticks / seconds)
    done, spent = grown("disk.done"), grown("disk.spent")
    if done and spent is not None:
        values["disk_await"] = spent * _MILLISECOND / done
    levels = {name: after.get(level) for name, level in _LEVELS.items()}
    return {name: value for name, value in {**values, **levels}.items() if value is not None}


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale


_CPU: Final[Mapping[str, Sequence[str]]] = {
    "host_user_cpu": ("cpu.user", "cpu.nice"),
    "host_system_cpu": ("cpu.system",),
    "host_interrupt_cpu": ("cpu.irq", "cpu.softirq"),
    "host_iowait_cpu": ("cpu.iowait",),
    "host_steal_cpu": ("cpu.steal",),
}
_RATES: Final[Mapping[str, tuple[Sequence[str], float]]] = {
    "context_switches": (("ctxt",), 1.0),
    "page_faults": (("pgfault",), 1.0),
    "disk_iops": (("disk.done",), 1.0),
    "disk_throughput": (("disk.sectors",), SECTOR),
    "disk_queue": (("disk.weighted",), _MILLISECOND),
    "cpu_stalled": (("pressure/cpu",), _MICROSECOND),
    "io_stalled": (("pressure/io",), _MICROSECOND),
    "memory_stalled": (("pressure/memory",), _MICROSECOND),
}
_LEVELS: Final[Mapping[str, str]] = {
    "run_queue_length": "procs_running",
    "memory_available": "MemAvailable",
    "memory_dirty": "Dirty",
    "memory_writeback": "Writeback",
}


def _sum(disks: Iterable[Sequence[int]]) -> Counters:
    done = sectors = spent = weighted = 0
    for numbers in disks:
        done += numbers[0] + numbers[4]
        sectors += numbers[2] + numbers[6]
        spent += numbers[3] + numbers[7]
        weighted += numbers[10]
    return {"disk.done": done, "disk.sectors": sectors, "disk.spent": spent, "disk.weighted": weighted}
