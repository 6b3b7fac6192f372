"""Counters of a host by names of our own, from the lines of the kernel's files; a capture of them. Pure.

Shapes: proc(5) and the kernel's Documentation/admin-guide/iostats.rst. Memory is in bytes, CPU time in ticks, pressure
in microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.collectors.lines import natural_number, whole_number
from pgstrata.errors import ParseError

Counters = Mapping[str, float]
RESOURCES: Final = ("cpu", "io", "memory")
SECTOR: Final = 512
"""Bytes of a sector in diskstats, whatever the device's own."""
_KIB: Final = 1024
_CPU_TIMES: Final = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_NAMED: Final[Mapping[str, frozenset[str]]] = {
    "stat": frozenset({"ctxt", "procs_running"}),
    "vmstat": frozenset({"pgfault", "pswpin"}),
    "meminfo": frozenset({"MemAvailable:", "Dirty:", "Writeback:"}),
}
"""The lines of a file that are a name and a number, as far as they are wanted."""
_DISK_FIELDS: Final = 11
"""Numbers after the name in a line of /proc/diskstats, in all kernels since 2.6."""
_NOT_PHYSICAL: Final = re.compile(r"(?:loop|ram|zram|dm-|md|zd|sr|fd|nbd)\d|nvme\d+c\d+n")
"""Memory, removable media, and layers whose bytes pass through a device below them, where they are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDevice:
    """A line of /proc/diskstats: a disk, a part of one, or a layer above; `number` such as 8:1."""

    number: str
    name: str
    counters: tuple[int, ...]


def read_counters(lines: Mapping[str, Iterable[str]]) -> Counters:
    """Wanted counters by name; `lines` maps paths below /proc to their lines, and other paths are ignored.

    Raises:
        ParseError: a line has an unknown shape; the message quotes it.
    """
    found: dict[str, float] = {}
    for file in (*_NAMED, *(f"pressure/{resource}" for resource in RESOURCES)):
        for line in lines.get(file, ()):
            try:
                found |= _read_line(file, line)
            except ValueError:
                raise _unknown(f"/proc/{file}", line) from None
    return found


def _read_line(file: str, line: str) -> Counters:
    """Counters of one line; ValueError where a wanted one has another shape."""
    if file.startswith("pressure/"):
        pressure = re.fullmatch(r"(some|full) .* total=(\d+)", line)
        if pressure is None:
            raise ValueError(line)
        return {file: _number(pressure[2])} if pressure[1] == "some" else {}
    name, *words = line.split()
    if (file, name) == ("stat", "cpu"):
        # newer kernels append further times
        numbers = [_number(word) for word in words]
        return {f"cpu.{kind}": ticks for kind, ticks in zip(_CPU_TIMES, numbers[: len(_CPU_TIMES)], strict=True)}
    if name not in _NAMED[file]:
        return {}
    if file == "meminfo":
        kib, unit = words
        if unit != "kB":
            raise ValueError(line)
        return {name.removesuffix(":"): _number(kib) * _KIB}
    (value,) = words
    return {name: _number(value)}


def _number(word: str) -> float:
    return float(natural_number(word))


def find_disks(lines: Iterable[str]) -> Mapping[str, tuple[int, ...]]:
    """The counters of each whole physical device in lines of /proc/diskstats, by its name.

    Raises:
        ParseError: a line has an unknown shape.
    """
    return {device.name: device.counters for device in whole_disks(lines)}


def whole_disks(lines: Iterable[str]) -> tuple[BlockDevice, ...]:
    """Each whole physical device in lines of /proc/diskstats.

    Raises:
        ParseError: a line has an unknown shape.
    """
    found = {device.name: device for device in read_block_devices(lines)}
    return tuple(
        device for name, device in found.items() if not _NOT_PHYSICAL.match(name) and not _is_part(name, found)
    )


def read_block_devices(lines: Iterable[str]) -> Iterator[BlockDevice]:
    """Each block device in lines of /proc/diskstats.

    Raises:
        ParseError: a line has an unknown shape.
    """
    for line in lines:
        try:
            major, minor, name, *numbers = line.split()
            counters = tuple(natural_number(numbers[place]) for place in range(_DISK_FIELDS))
        except (IndexError, ValueError):
            raise _unknown("/proc/diskstats", line) from None
        yield BlockDevice(number=f"{major}:{minor}", name=name, counters=counters)


def _is_part(name: str, devices: Collection[str]) -> bool:
    """Whether it is a partition: sda1 of sda, nvme0n1p1 of nvme0n1 (behind a digit the kernel writes a p)."""
    stem = re.sub(r"\d+$", "", name)
    device = stem.removesuffix("p") if re.search(r"\dp$", stem) else stem
    return device != name and device in devices


PROCESSES: Final = "/proc/[0-9]*/stat"
TICKS: Final = "getconf CLK_TCK"

DEFAULT_TICKS: Final = 100
"""USER_HZ on every architecture that PostgreSQL is built for, for hosts without getconf."""
_HEADING = re.compile(r"^==> (?P<name>\S.*) <==$", re.MULTILINE)
# The name may hold spaces, parentheses and even line ends: it ends where nothing but a state and numbers follows.
_PROCESS = re.compile(r"^(?P<pid>\d+) \((?:.|\n){0,80}?\) [A-Za-z] (?P<numbers>-?\d+(?: -?\d+){18,})$", re.MULTILINE)
_PPID, _UTIME, _CSTIME, _START = 0, 10, 13, 18
"""Places of fields 4, 14, 17 and 22 of /proc/PID/stat among the numbers that follow the state (field 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTime:
    """One process: CPU time in ticks, its own and that of the children it has waited for; `start` tells reused pids."""

    pid: int
    parent: int
    own: int
    waited: int
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Counters of one moment; None or absent where the host has no such file.

    `counters` are those of `counters.read_counters`, `disks` the lines of /proc/diskstats of whole physical devices,
    `cpus` how many CPUs there are, 0 where that is not known.
    """

    uptime: float | None
    ticks: int
    cpus: int
    counters: Counters
    disks: Mapping[str, tuple[int, ...]]
    processes: Mapping[int, ProcessTime]

    def growth(self, before: Snapshot, *names: str) -> float | None:
        """The sum of what came to some counters since an earlier capture; None if one is missing or the sum fell."""
        if not self.counters.keys() & before.counters.keys() >= set(names):
            return None
        grown = sum(self.counters[name] for name in names) - sum(before.counters[name] for name in names)
        return grown if grown >= 0 else None


def render_heading(name: str) -> bytes:
    """The line above a section of a capture."""
    return f"==> {name} <==\n".encode()


_FURTHER: Final = "machine of clients"
_BETWEEN = re.compile(rf"^==> {_FURTHER} \d+ <==\n".encode(), re.MULTILINE)
"""No process can forge it in a capture: names of processes have at most 15 bytes."""


def join_captures(captures: Sequence[bytes]) -> bytes:
    """Captures of several machines as one text; empty where there is none."""
    return b"".join(
        content if not number else render_heading(f"{_FURTHER} {number + 1}") + content
        for number, content in enumerate(captures)
    )


def split_captures(joined: bytes) -> tuple[bytes, ...]:
    """What `join_captures` joined, at least one."""
    return tuple(_BETWEEN.split(joined))


def parse_snapshot(capture: bytes) -> Snapshot:
    """A capture as counters.

    Raises:
        ParseError: a section has an unknown shape; the message quotes the line.
    """
    sections = _sections(capture.decode("utf-8", "replace"))
    lines = {name.removeprefix("/proc/"): text.splitlines() for name, text in sections.items()}
    return Snapshot(
        uptime=_uptime(sections.get("/proc/uptime", "")),
        ticks=_ticks(sections.get(TICKS, "")),
        cpus=len(re.findall(r"^cpu\d", sections.get("/proc/stat", ""), re.MULTILINE)),
        counters=read_counters({name: rows for name, rows in lines.items() if name != "meminfo"}),
        disks=find_disks(lines.get("diskstats", ())),
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


def _uptime(text: str) -> float | None:
    if not text:
        return None
    match = re.match(r"(\d+\.\d+) \d+\.\d+\s", text)
    if match is None:
        raise _unknown("/proc/uptime", text)
    return float(match[1])


def _ticks(text: str) -> int:
    if not text:
        return DEFAULT_TICKS
    if not re.fullmatch(r"[1-9][0-9]{0,9}", text.strip()):
        raise _unknown(TICKS, text)
    return int(text)


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
