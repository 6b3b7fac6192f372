"""The control group that a server runs in: its limits, what they withheld, what it used and what it waited for. Pure.

Shapes: cgroups(7), both versions, and of the kernel's documentation admin-guide/cgroup-v2, admin-guide/cgroup-v1 and
scheduler/sched-bwc.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.model.archive import ArchiveEvent, EventKind
from pgstrata.model.mounts import parse_mounts

MOUNTS: Final = "/proc/self/mountinfo"
"""Tells where hierarchies are mounted, and which part of them is seen there."""
_DEEPEST: Final = 20
_MEMBERSHIP: Final = 3
_NUMBER: Final = re.compile(r"[0-9]{1,20}", re.ASCII)
_PRESSURE: Final = re.compile(r"^some .*\btotal=([0-9]{1,20})$", re.MULTILINE | re.ASCII)
_MICRO, _NANO = 1e-6, 1e-9
_CPU, _CPU_1 = ("cpu.stat", "cpu.max"), ("cpu.stat", "cpu.cfs_quota_us", "cpu.cfs_period_us")
_OWN: Final = ("cpu.pressure", "io.pressure", "memory.pressure", "io.stat", "memory.events")
_MEMORY_1: Final = ("memory.failcnt", "memory.oom_control")
_BLKIO_1: Final = ("blkio.throttle.io_service_bytes",)
_NAMED: Final[Mapping[str, Mapping[str, tuple[str, float]]]] = {
    "cpu.stat": {
        "nr_periods": ("periods", 1.0), "nr_throttled": ("held", 1.0), "throttled_usec": ("throttled", _MICRO),
        "throttled_time": ("throttled", _NANO),
    },
    "memory.events": {"high": ("full", 1.0), "max": ("full", 1.0), "oom_kill": ("killed", 1.0)},
    "memory.oom_control": {"oom_kill": ("killed", 1.0)},
}  # fmt: skip
"""Files with a name and a number in each line: pgstrata's name for it, and the unit in base units."""
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "cpu.max": ("quota", "period"),
    "cpu.cfs_quota_us": ("quota",),
    "cpu.cfs_period_us": ("period",),
    "memory.failcnt": ("full",),
}
"""Files with one line: names of its words. A word that is no number stands for no limit."""
_MOVED: Final = {"rbytes": "read", "wbytes": "written", "Read": "read", "Write": "written"}

Counts = Mapping[tuple[str, str], float]
"""Counters and levels by name and folder, in base units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlGroup:
    """Folders of a process's groups: its own first, then those above it, whose limits hold for it, too.

    `unified` is the hierarchy of version 2, the others are those of controllers of version 1; empty: not seen.
    """

    unified: tuple[str, ...] = ()
    cpu: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    blkio: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Files that tell of it; some may not exist."""
        read = (
            (self.unified, _CPU), (self.unified[:1], _OWN), (self.cpu, _CPU_1), (self.memory[:1], _MEMORY_1),
            (self.blkio[:1], _BLKIO_1),
        )  # fmt: skip
        return tuple(f"{folder}/{name}" for folders, names in read for folder in folders for name in names)


def find_group(memberships: str, mounts: str) -> ControlGroup:
    """The groups of a process.

    In a container, its own group is often where the hierarchy is mounted, whatever path the kernel gives.

    Args:
        memberships: /proc/PID/cgroup.
        mounts: `MOUNTS`, read in the same place.
    """
    paths: dict[str, str] = {}
    for line in memberships.splitlines():
        words = line.split(":", 2)
        if len(words) == _MEMBERSHIP and words[2].startswith("/") and ".." not in words[2].split("/"):
            paths |= dict.fromkeys(words[1].split(","), words[2])
    seen = list(_read_mounts(mounts))

    def folders(controller: str) -> tuple[str, ...]:
        path = paths.get(controller)
        tried = (_below(path, root, point) for controllers, root, point in seen if controller in controllers and path)
        return next(filter(None, tried), ())

    return ControlGroup(
        unified=folders(""), cpu=folders("cpu"), memory=folders("memory"), blkio=folders("blkio")
    )  # fmt: skip


def _read_mounts(text: str) -> Iterator[tuple[Collection[str], str, str]]:
    """Hierarchies: their controllers (of version 2 one without a name), what of them is mounted, and where."""
    for mount in parse_mounts(text, lenient=True):
        if mount.kind in {"cgroup", "cgroup2"}:
            yield ("",) if mount.kind == "cgroup2" else mount.super_options, mount.root, mount.path


def _below(path: str, root: str, point: str) -> tuple[str, ...]:
    """The folders of a group and of those above it, its own first; none where the mount does not show it."""
    names, top = ([part for part in each.split("/") if part] for each in (path, root))
    if names[: len(top)] != top:
        return ()
    inside = names[len(top) :]
    found = ("/".join((point.rstrip("/"), *inside[:depth])) for depth in range(len(inside), -1, -1))
    return tuple(found)[:_DEEPEST]


# ------------------------------------------------------------------------------------------------------- counters


def count_group(contents: Mapping[str, bytes], disks: Collection[str]) -> Counts:
    """What the files say that could be read; lines of unknown shapes say nothing.

    Args:
        contents: of `ControlGroup.files`.
        disks: numbers of devices whose bytes count, such as 8:0; empty: all. Layers pass bytes on to those below them.
    """
    found: dict[tuple[str, str], float] = {}
    for path, content in contents.items():
        folder, _, file = path.rpartition("/")
        for name, value in _count(file, content.decode("utf-8", "replace"), disks):
            found[name, folder] = found.get((name, folder), 0.0) + value
    for (name, folder), quota in tuple(found.items()):
        if name == "quota" and (period := found.get(("period", folder), 0.0)) > 0:
            found["limit", folder] = quota / period
    return found


def _count(file: str, text: str, disks: Collection[str]) -> Iterator[tuple[str, float]]:
    rows = [line.split() for line in text.splitlines()]
    if file in _NAMED:
        pairs = {row[0]: float(row[1]) for row in rows if len(row) == 2 and _NUMBER.fullmatch(row[1])}  # noqa: PLR2004
        yield from ((ours, pairs[name] * unit) for name, (ours, unit) in _NAMED[file].items() if name in pairs)
    elif file in _WORDS:
        words = zip(_WORDS[file], (rows or [[]])[0], strict=False)
        yield from ((name, float(word)) for name, word in words if _NUMBER.fullmatch(word))
        if file.startswith("cpu."):
            yield "limited", 0.0
    elif file.endswith(".pressure"):
        yield from ((file, float(found) * _MICRO) for found in _PRESSURE.findall(text))
    elif file in {"io.stat", *_BLKIO_1}:
        yield from _count_bytes(rows, disks)


def _count_bytes(rows: list[list[str]], disks: Collection[str]) -> Iterator[tuple[str, float]]:
    """Lines such as "8:0 rbytes=4096 wbytes=0 ..." of version 2, and "8:0 Read 4096" of version 1.

    A group that has moved nothing has no line.
    """
    yield from (("read", 0.0), ("written", 0.0))
    for device, *words in (row for row in rows if row):
        if disks and device not in disks:
            continue
        pairs = [word.split("=") for word in words] if "=" in "".join(words) else [words]
        for pair in pairs:
            if len(pair) == 2 and pair[0] in _MOVED and _NUMBER.fullmatch(pair[1]):  # noqa: PLR2004
                yield _MOVED[pair[0]], float(pair[1])


def group_rates(before: Counts, now: Counts, seconds: float) -> Mapping[str, float]:
    """What came to the counters of a group, by the names of rates and levels; those that are not known are left out."""
    grown = {key: now[key] - before[key] for key in now if key in before and now[key] >= before[key]}
    found: dict[str, float] = {}
    for name, ours in _RATES.items():
        parts = [growth for (each, _), growth in grown.items() if each == name]
        if parts:
            found[ours] = sum(parts) / seconds
    limit = limit_of(now)
    if limit is not None:
        found["cpu_limit"] = limit
        shares = [
            grown.get(("held", folder), 0.0) / periods
            for (name, folder), periods in grown.items()
            if name == "periods" and periods > 0
        ]
        found["cpu_limit_reached"] = min(1.0, max(shares, default=0.0))
    return found


_RATES: Final[Mapping[str, str]] = {
    "throttled": "cpu_throttled",
    "cpu.pressure": "group_cpu_stalled",
    "io.pressure": "group_io_stalled",
    "memory.pressure": "group_memory_stalled",
    "read": "group_read",
    "written": "group_written",
    "full": "memory_limit_reached",
}
"""Counters, and the rates that they give."""


def limit_of(counts: Counts) -> float | None:
    """CPUs that the lowest limit allows; None without one."""
    return min((value for (name, _), value in counts.items() if name == "limit"), default=None)


def group_events(before: Counts, now: Counts) -> Iterator[ArchiveEvent]:
    """Events between two looks: a changed CPU limit, and processes killed for lack of memory. Their moment is 0."""
    looked = all(any(name == "limited" for name, _ in counts) for counts in (before, now))
    limits = tuple(map(limit_of, (before, now)))
    if looked and limits[0] != limits[1]:
        detail = " to ".join("no limit" if each is None else f"{each:g} CPU" for each in limits)
        yield ArchiveEvent(moment=0, kind=EventKind.LIMIT, detail=detail)
    killed = sum(
        value - before[key] for key, value in now.items() if key[0] == "killed" and value > before.get(key, value)
    )
    if killed:
        yield ArchiveEvent(moment=0, kind=EventKind.OUT_OF_MEMORY, times=int(killed))
