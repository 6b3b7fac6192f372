"""What `seconds.sh` wrote down, as typed rows. Pure. Shapes: proc(5)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pgstrata.collectors.lines import whole_lines, whole_number
from pgstrata.errors import ParseError
from pgstrata.model.storage import Role

SAMPLES: Final = "seconds.samples"
"""Evidence name of what the script wrote."""
_NANOSECONDS: Final = 1e9
_FILE: Final = re.compile(r"/proc/(?:(?P<pid>\d+)/)?(?P<name>[a-z]+(?:/[a-z]+)?):(?P<line>.*)")
_STAT: Final = re.compile(r"\d+ \((?P<name>.*)\) [A-Za-z] (?P<numbers>-?\d+(?: -?\d+){18,})$")
_PPID, _MINOR, _MAJOR, _USER, _SYSTEM, _START = 0, 6, 8, 10, 11, 18
"""Places of fields 4, 10, 12, 14, 15 and 22 of /proc/PID/stat among the numbers that follow the state (field 3)."""


@dataclass(slots=True, kw_only=True)
class ProcessSample:
    """One process at one moment, counted since it began; what its host does not tell is None.

    `cpu` and `queue` are seconds on a CPU and ready without one; `user` and `system` are in ticks; `read` and `written`
    are bytes that reached a device, or were meant to.
    """

    pid: int
    name: str | None = None
    parent: int | None = None
    start: int | None = None
    cpu: float | None = None
    queue: float | None = None
    user: int | None = None
    system: int | None = None
    faults: int | None = None
    voluntary: int | None = None
    involuntary: int | None = None
    read: int | None = None
    written: int | None = None


@dataclass(slots=True, kw_only=True)
class HostSample:
    """The host and the server's processes at one moment; `moment` in seconds since the host's boot.

    `lines` are those of each file of the kernel, as they were.
    """

    moment: float
    lines: dict[str, list[str]] = field(default_factory=dict)
    processes: dict[int, ProcessSample] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """All samples of a run, in order of time.

    `wall` is the host's wall clock in seconds, at about the first sample; `titles` are of processes, by their pid.
    `devices` are the numbers of the block devices (8:1) on which the data lie, and the WAL if it lies apart.
    """

    wall: float | None
    titles: Mapping[int, str]
    samples: Sequence[HostSample]
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def parse_seconds(text: bytes) -> Seconds:
    """Sample by sample; a last line without its end is left out.

    Raises:
        ParseError: a line has an unknown shape; the message quotes it.
    """
    wall = None
    titles: dict[int, str] = {}
    devices: dict[str, tuple[str, ...]] = {}
    samples: list[HostSample] = []
    for line in whole_lines(text):
        try:
            kind, _, rest = line.partition(" ")
            if kind == "@":
                samples.append(HostSample(moment=_finite(rest)))
            elif kind == "wall":
                # date of small systems knows no fractions and says %N
                wall = _finite(rest.removesuffix(".%N"))
            elif kind == "title":
                pid, _, title = rest.partition(" ")
                titles[whole_number(pid)] = title
            elif kind == "device":
                subject, *numbers = rest.split()
                devices[Role(subject).value] = tuple(numbers)
            else:
                _read_line(samples[-1], line)
        except (IndexError, ValueError):
            raise ParseError(f"unknown shape of a line: {line[:200]!r}", where=SAMPLES) from None
    return Seconds(wall=wall, titles=titles, samples=samples, devices=devices)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _read_line(sample: HostSample, line: str) -> None:
    match = _FILE.fullmatch(line)
    if match is None:
        raise ValueError(line)
    if match["pid"] is None:
        sample.lines.setdefault(match["name"], []).append(match["line"])
        return
    pid = whole_number(match["pid"])
    _read_process(sample.processes.setdefault(pid, ProcessSample(pid=pid)), match["name"], match["line"])


def _read_process(process: ProcessSample, name: str, line: str) -> None:
    if name == "stat":
        found = _STAT.fullmatch(line)
        if found is None:
            raise ValueError(line)
        numbers = [whole_number(word) for word in found["numbers"].split()]
        process.name, process.parent, process.start = found["name"], numbers[_PPID], numbers[_START]
        process.user, process.system = numbers[_USER], numbers[_SYSTEM]
        process.faults = numbers[_MINOR] + numbers[_MAJOR]
    elif name == "schedstat":
        cpu, queue, _ = line.split()
        process.cpu, process.queue = whole_number(cpu) / _NANOSECONDS, whole_number(queue) / _NANOSECONDS
    else:
        key, _, value = line.partition(":")
        attribute = _COUNTERS.get(key)
        if attribute is not None:
            setattr(process, attribute, whole_number(value.strip()))


_COUNTERS: Final[Mapping[str, str]] = {
    "voluntary_ctxt_switches": "voluntary",
    "nonvoluntary_ctxt_switches": "involuntary",
    "read_bytes": "read",
    "write_bytes": "written",
}
