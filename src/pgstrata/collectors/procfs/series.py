"""A run that was alone as series over its seconds: the host, the server's processes by kind, and the client. Pure.

Disks are all whole physical devices together, or the block devices that are named: queue and await by their time
counters, as iostat does (await = growth of time in requests / requests that were done, queue = growth of weighted time
/ time).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from pgstrata.collectors.procfs.samples import HostSample, ProcessSample, Seconds
from pgstrata.collectors.procfs.snapshot import SECTOR, Counters, find_disks, read_block_devices, read_counters
from pgstrata.collectors.sessions.parse import SessionSample
from pgstrata.collectors.window_series import Values, make_series
from pgstrata.model.metrics import Series
from pgstrata.ports.collector import Window

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


_SESSIONS: Final = "sessions_cpu"
_OTHERS: Final = "other_server_cpu"
_CLIENT: Final = "client_cpu_course"
_KINDS: Final[Mapping[str, str]] = {
    "checkpointer": "checkpointer_cpu",
    "wal writer": "walwriter_cpu",
    "walwriter": "walwriter_cpu",
    "background writer": "bgwriter_cpu",
    "writer": "bgwriter_cpu",
    "autovacuum launcher": "autovacuum_cpu",
    "autovacuum worker": "autovacuum_cpu",
    "io worker": "io_workers_cpu",
    "parallel worker": "parallel_cpu",
    "bgworker: parallel worker": "parallel_cpu",
}
# postgres: [CLUSTER: ]KIND [process] ...; "wal writer" is "walwriter" from 10 on, "writer" was the background writer
_TITLE: Final = re.compile(
    rf"postgres: (?:[^\[\]]*?: )?(?P<kind>{'|'.join(sorted(_KINDS, key=len, reverse=True))})(?: process)?(?: |$)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """Which process is of which kind, by the name of its series."""

    known: Mapping[int, str]
    postmaster: int | None
    transports: Collection[int]
    driver: str

    def of(self, process: ProcessSample) -> str | None:
        """None for processes that are neither the server's nor the client."""
        if process.parent in self.transports:
            return _CLIENT if process.name == self.driver else None
        if self.postmaster is None or self.postmaster not in {process.pid, process.parent}:
            return None
        return self.known.get(process.pid, _OTHERS)


def tell_kinds(titles: Mapping[int, str], sessions: Iterable[SessionSample], window: Window) -> Kinds:
    """From what the server says of its processes, or else from their titles."""
    known: dict[int, str] = {}
    for pid, title in titles.items():
        if match := _TITLE.match(title):
            known[pid] = _KINDS[match["kind"]]
    for sample in sessions:
        if sample.kind in _KINDS:
            known[sample.pid] = _KINDS[sample.kind]
        elif sample.ours:
            known[sample.pid] = _SESSIONS
    return Kinds(known=known, postmaster=window.postmaster_pid, transports=window.transport_pids, driver=window.driver)


def process_rates(before: HostSample, after: HostSample, kinds: Kinds, ticks: int) -> Values:
    """CPU by kind, and bytes to and from disks of all the server's processes, in the seconds between two samples.

    A process that began in between counts from its beginning. Where one ended, its last part is not known, and so
    nothing of its kind: NaN.
    """
    seconds = after.moment - before.moment
    used: dict[str, float] = defaultdict(float)
    for process in after.processes.values():
        kind = kinds.of(process)
        if kind is None:
            continue
        earlier = before.processes.get(process.pid)
        if earlier is None or earlier.start != process.start:
            earlier = ProcessSample(pid=process.pid)
        used[kind] += max(0.0, _cpu(process, ticks) - _cpu(earlier, ticks)) / seconds
        if kind != _CLIENT:
            for name, now, then in (
                ("server_read", process.read, earlier.read),
                ("server_written", process.written, earlier.written),
            ):
                if now is not None:
                    used[name] += max(0, now - (then or 0)) / seconds
    for process in before.processes.values():
        kind = kinds.of(process)
        if kind is not None and not _is_there(process, after):
            used[kind] = math.nan
            if kind != _CLIENT:
                used["server_read"] = used["server_written"] = math.nan
    return used


def _is_there(process: ProcessSample, sample: HostSample) -> bool:
    found = sample.processes.get(process.pid)
    return found is not None and found.start == process.start


def _cpu(process: ProcessSample, ticks: int) -> float:
    """Seconds: by the scheduler's statistics, which a kernel without them says are 0; else in ticks."""
    return process.cpu or ((process.user or 0) + (process.system or 0)) / ticks


def make_courses(seconds: Seconds, sessions: Iterable[SessionSample], window: Window, ticks: int) -> tuple[Series, ...]:
    """A series for each kind of what the host and the server's processes did, and of the disks by what lies on them.

    Raises:
        ParseError: a line has an unknown shape.
    """
    kinds = tell_kinds(seconds.titles, sessions, window)

    def happened(before: HostSample, after: HostSample) -> Values:
        first, last = ({**read_counters(one.lines), **sum_disks(one)} for one in (before, after))
        host = rates(first, last, after.moment - before.moment, ticks)
        return {**host, **process_rates(before, after, kinds, ticks)}

    def worked(before: HostSample, after: HostSample, *, devices: Collection[str]) -> Values:
        first, last = sum_disks(before, devices), sum_disks(after, devices)
        return rates(first, last, after.moment - before.moment, ticks)

    series = list(make_series(seconds.samples, window, happened, _missing))
    for subject, devices in seconds.devices.items():
        series += make_series(seconds.samples, window, partial(worked, devices=devices), subject=subject)
    return tuple(series)


def _missing(name: str) -> float:
    """A kind of process that was not there used nothing; what a host did not tell is not known."""
    return 0.0 if name.endswith(("_cpu", "_course")) and not name.startswith("host_") else math.nan
