"""Counters of a host by names of our own, from the lines of the kernel's files. Pure.

Shapes: proc(5) and the kernel's Documentation/admin-guide/iostats.rst. Memory is in bytes, CPU time in ticks, pressure
in microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.collectors.lines import natural_number
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
"""Of /proc/diskstats after the name, in all kernels since 2.6."""
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
                raise _unknown(file, line) from None
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
    found = {device.name: device.counters for device in read_block_devices(lines)}
    return {name: disk for name, disk in found.items() if not _NOT_PHYSICAL.match(name) and not _is_part(name, found)}


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
            raise _unknown("diskstats", line) from None
        yield BlockDevice(number=f"{major}:{minor}", name=name, counters=counters)


def _is_part(name: str, devices: Collection[str]) -> bool:
    """Whether it is a partition: sda1 of sda, nvme0n1p1 of nvme0n1 (behind a digit the kernel writes a p)."""
    stem = re.sub(r"\d+$", "", name)
    device = stem.removesuffix("p") if re.search(r"\dp$", stem) else stem
    return device != name and device in devices


def _unknown(file: str, line: str) -> ParseError:
    return ParseError(f"unknown shape of a line: {line[:200]!r}", where=f"/proc/{file}")
