"""The host over the seconds of a run, from samples of the kernel's counters. Pure.

Shapes: proc(5) and the kernel's Documentation/admin-guide/iostats.rst. Disks are all whole physical devices together,
or the block devices that are named: queue and await by their time counters, as iostat does (await = growth of time in
requests / requests that were done, queue = growth of weighted time / time).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from pgstrata.collectors.numbers import whole_number
from pgstrata.collectors.procfs.samples import HostSample
from pgstrata.collectors.procfs.snapshot import find_disks, read_block_devices
from pgstrata.errors import ParseError

Counters = Mapping[str, float]
Values = Mapping[str, float]
_KIB: Final = 1024
_SECTOR: Final = 512
_MILLISECOND: Final = 1e-3
_MICROSECOND: Final = 1e-6
_CPU_TIMES: Final = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_DISK_FIELDS: Final = 11
"""Of /proc/diskstats after the name, in all kernels since 2.6."""


def read_counters(sample: HostSample) -> Counters:
    """All counters of the kernel in a sample, by names of our own.

    Raises:
        ParseError: a line has an unknown shape.
    """
    found: dict[str, float] = {}
    for name, lines in sample.lines.items():
        for line in lines:
            try:
                if reader := _READERS.get(name):
                    found |= reader(line)
            except (IndexError, ValueError):
                raise ParseError(f"unknown shape of a line: {line[:200]!r}", where=f"/proc/{name}") from None
    disks = sample.lines.get("diskstats")
    return found if disks is None else {**found, **_disks(find_disks(disks, _DISK_FIELDS).values())}


def read_devices(sample: HostSample, numbers: Collection[str]) -> Counters:
    """The counters of disks in a sample, of the block devices with these numbers; nothing where one of them is missing.

    Raises:
        ParseError: a line has an unknown shape.
    """
    devices = read_block_devices(sample.lines.get("diskstats", ()), _DISK_FIELDS)
    found = {device.number: device.counters for device in devices}
    return _disks([found[number] for number in numbers]) if found.keys() >= set(numbers) else {}


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
    "disk_throughput": (("disk.sectors",), _SECTOR),
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


def _stat(line: str) -> Counters:
    name, *words = line.split()
    if name == "cpu":
        return {f"cpu.{kind}": float(whole_number(word)) for kind, word in zip(_CPU_TIMES, words, strict=False)}
    return {name: float(whole_number(words[0]))}


def _vmstat(line: str) -> Counters:
    name, value = line.split()
    return {name: float(whole_number(value))}


def _meminfo(line: str) -> Counters:
    name, value, *_ = line.split()
    return {name.removesuffix(":"): float(whole_number(value)) * _KIB}


def _pressure(resource: str) -> Callable[[str], Counters]:
    def read(line: str) -> Counters:
        total = re.search(r" total=(\d+)$", line)
        if total is None:
            raise ValueError(line)
        return {f"pressure/{resource}": float(whole_number(total[1]))}

    return read


_READERS: Final[Mapping[str, Callable[[str], Counters]]] = {
    "stat": _stat,
    "vmstat": _vmstat,
    "meminfo": _meminfo,
    **{f"pressure/{resource}": _pressure(resource) for resource in ("cpu", "io", "memory")},
}


def _disks(disks: Iterable[Sequence[int]]) -> Counters:
    done = sectors = spent = weighted = 0
    for numbers in disks:
        done += numbers[0] + numbers[4]
        sectors += numbers[2] + numbers[6]
        spent += numbers[3] + numbers[7]
        weighted += numbers[10]
    return {"disk.done": done, "disk.sectors": sectors, "disk.spent": spent, "disk.weighted": weighted}
