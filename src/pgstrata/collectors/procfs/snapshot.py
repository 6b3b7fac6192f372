"""A capture of /proc as typed counters. Pure. Shapes: proc(5), the kernel's Documentation/admin-guide/iostats.rst."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.collectors.numbers import natural_number, whole_number
from pgstrata.errors import ParseError

PROCESSES: Final = "/proc/[0-9]*/stat"
TICKS: Final = "getconf CLK_TCK"
RESOURCES: Final = ("cpu", "io", "memory")

DEFAULT_TICKS: Final = 100
"""USER_HZ on every architecture that PostgreSQL is built for, for hosts without getconf."""
_SECTOR: Final = 512
"""Bytes of a sector in diskstats, whatever the device's own."""

_HEADING = re.compile(r"^==> (?P<name>\S.*) <==$", re.MULTILINE)
# The name may hold spaces, parentheses and even line ends: it ends where nothing but a state and numbers follows.
_PROCESS = re.compile(r"^(?P<pid>\d+) \((?:.|\n){0,80}?\) [A-Za-z] (?P<numbers>-?\d+(?: -?\d+){18,})$", re.MULTILINE)
_PPID, _UTIME, _CSTIME, _START = 0, 10, 13, 18
"""Places of fields 4, 14, 17 and 22 of /proc/PID/stat among the numbers that follow the state (field 3)."""

_NOT_PHYSICAL = re.compile(r"(?:loop|ram|zram|dm-|md|zd|sr|fd|nbd)\d|nvme\d+c\d+n")
"""Memory, removable media, and layers whose bytes pass through a device below them, where they are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCpu:
    """CPU time of the whole host since boot, in ticks. Guests are part of `user` and `nice` and not counted twice."""

    busy: int
    steal: int
    cpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTime:
    """One process: CPU time in ticks, its own and that of the children it has waited for; `start` tells reused pids."""

    pid: int
    parent: int
    own: int
    waited: int
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskBytes:
    """Bytes since boot of one whole device."""

    read: int
    written: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDevice:
    """A line of /proc/diskstats: a disk, a part of one, or a layer above; `number` such as 8:1."""

    number: str
    name: str
    counters: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Counters of one moment; None or absent where the host has no such file. `pressure` is in microseconds."""

    uptime: float | None
    ticks: int
    cpu: HostCpu | None
    context_switches: int | None
    page_faults: int | None
    pages_swapped_in: int | None
    disks: Mapping[str, DiskBytes]
    pressure: Mapping[str, int]
    processes: Mapping[int, ProcessTime]


def render_heading(name: str) -> bytes:
    """The line above a section of a capture."""
    return f"==> {name} <==\n".encode()


def parse_snapshot(capture: bytes) -> Snapshot:
    """A capture as counters.

    Raises:
        ParseError: a section has an unknown shape; the message quotes the line.
    """
    sections = _sections(capture.decode("utf-8", "replace"))
    stat = sections.get("/proc/stat", "")
    return Snapshot(
        uptime=_uptime(sections.get("/proc/uptime", "")),
        ticks=_ticks(sections.get(TICKS, "")),
        cpu=_host_cpu(stat),
        context_switches=_named_counter(stat, "ctxt", "/proc/stat"),
        page_faults=_named_counter(sections.get("/proc/vmstat", ""), "pgfault", "/proc/vmstat"),
        pages_swapped_in=_named_counter(sections.get("/proc/vmstat", ""), "pswpin", "/proc/vmstat"),
        disks=_disks(sections.get("/proc/diskstats", "")),
        pressure=_pressures(sections),
        processes=_processes(sections.get(PROCESSES, "")),
    )


def _sections(text: str) -> Mapping[str, str]:
    parts = _HEADING.split(text)
    if parts[0].strip():
        raise _unknown("text before the first heading", parts[0].strip().splitlines()[0])
    # A heading that occurs twice can only come from the name of a process: what was captured comes first.
    found: dict[str, str] = {}
    for name, content in zip(parts[1::2], parts[2::2], strict=True):
        found.setdefault(name, content.removeprefix("\n"))
    return found


def _unknown(where: str, line: str) -> ParseError:
    return ParseError(f"unknown shape of a line: {line[:200]!r}", where=where)


def _integer(word: str, where: str, line: str) -> int:
    try:
        return natural_number(word)
    except ValueError:
        raise _unknown(where, line) from None


def _uptime(text: str) -> float | None:
    if not text:
        return None
    match = re.match(r"(\d+\.\d+) \d+\.\d+\s", text)
    if match is None:
        raise _unknown("/proc/uptime", text)
    return float(match[1])


def _ticks(text: str) -> int:
    ticks = _integer(text.strip(), TICKS, text) if text else DEFAULT_TICKS
    if ticks == 0:
        raise _unknown(TICKS, text)
    return ticks


def _host_cpu(stat: str) -> HostCpu | None:
    line = next((line for line in stat.splitlines() if line.startswith("cpu ")), None)
    if line is None:
        return None
    words = [_integer(word, "/proc/stat", line) for word in line.split()[1:]]
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    if len(words) < len(names):
        raise _unknown("/proc/stat", line)
    ticks = dict(zip(names, words, strict=False))
    busy = ticks["user"] + ticks["nice"] + ticks["system"] + ticks["irq"] + ticks["softirq"]
    return HostCpu(busy=busy, steal=ticks["steal"], cpus=len(re.findall(r"^cpu\d", stat, re.MULTILINE)))


def _named_counter(text: str, name: str, where: str) -> int | None:
    line = next((line for line in text.splitlines() if line.startswith(f"{name} ")), None)
    return None if line is None else _integer(line.removeprefix(f"{name} ").strip(), where, line)


def _disks(text: str) -> Mapping[str, DiskBytes]:
    # the first eight counters, up to sectors written
    disks = find_disks(text.splitlines(), 8)
    return {name: DiskBytes(read=numbers[2] * _SECTOR, written=numbers[6] * _SECTOR) for name, numbers in disks.items()}


def find_disks(lines: Iterable[str], fields: int) -> Mapping[str, tuple[int, ...]]:
    """The first so many counters of each whole physical device in lines of /proc/diskstats, by its name.

    Raises:
        ParseError: a line has an unknown shape.
    """
    found = {device.name: device.counters for device in read_block_devices(lines, fields)}
    return {name: disk for name, disk in found.items() if not _NOT_PHYSICAL.match(name) and not _is_part(name, found)}


def read_block_devices(lines: Iterable[str], fields: int) -> Iterator[BlockDevice]:
    """Each block device in lines of /proc/diskstats, with the first so many counters.

    Raises:
        ParseError: a line has an unknown shape.
    """
    for line in lines:
        words = line.split()
        numbers = words[3 : 3 + fields]
        if len(numbers) < fields:
            raise _unknown("/proc/diskstats", line)
        counters = tuple(_integer(number, "/proc/diskstats", line) for number in numbers)
        yield BlockDevice(number=f"{words[0]}:{words[1]}", name=words[2], counters=counters)


def _is_part(name: str, devices: Collection[str]) -> bool:
    """Whether it is a partition: sda1 of sda, nvme0n1p1 of nvme0n1 (behind a digit the kernel writes a p)."""
    stem = re.sub(r"\d+$", "", name)
    device = stem.removesuffix("p") if re.search(r"\dp$", stem) else stem
    return device != name and device in devices


def _pressures(sections: Mapping[str, str]) -> Mapping[str, int]:
    found = {}
    for resource in RESOURCES:
        path = f"/proc/pressure/{resource}"
        line = next((line for line in sections.get(path, "").splitlines() if line.startswith("some ")), None)
        if line is not None:
            match = re.search(r" total=(\d+)$", line)
            if match is None:
                raise _unknown(path, line)
            found[resource] = _integer(match[1], path, line)
    return found


def _processes(text: str) -> Mapping[int, ProcessTime]:
    found = {}
    for match in _PROCESS.finditer(text):
        try:
            numbers = [whole_number(word) for word in match["numbers"].split()]
        except ValueError:
            raise _unknown(PROCESSES, match[0]) from None
        user, system, waited_user, waited_system = numbers[_UTIME : _CSTIME + 1]
        found[int(match["pid"])] = ProcessTime(
            pid=int(match["pid"]),
            parent=numbers[_PPID],
            own=user + system,
            waited=waited_user + waited_system,
            start=numbers[_START],
        )
    if text.strip() and not found:
        raise _unknown(PROCESSES, text.strip().splitlines()[0])
    return found
