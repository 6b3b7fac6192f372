"""The server's host second by second, from files of the kernel. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pgstrata.collectors.live.group import Counts, count_group, group_events, group_rates
from pgstrata.collectors.procfs.samples import HostSample
from pgstrata.collectors.procfs.series import rates, sum_disks
from pgstrata.collectors.procfs.snapshot import DEFAULT_TICKS, Counters, read_counters, whole_disks
from pgstrata.model.archive import ArchiveEvent

_DISKS: Final = "/proc/diskstats"
FILES: Final = (
    *(f"/proc/{name}" for name in ("stat", "vmstat", "meminfo")),
    _DISKS,
    *(f"/proc/pressure/{name}" for name in ("cpu", "io", "memory")),
)
STATUSES: Final = "/proc/[0-9]*/status"
_PROGRAMS: Final = frozenset({b"postgres", b"postmaster"})
_WANTED: Final = {
    "stat": ("cpu ", "ctxt ", "procs_"),
    "vmstat": ("pgfault ", "pgmajfault "),
    "meminfo": ("MemTotal:", "MemAvailable:", "Dirty:", "Writeback:"),
}


@dataclass(slots=True)
class HostReader:
    """Keeps the last look; `seconds` have passed between the last two, in which `events` happened to the group."""

    seconds: float = 0.0
    events: tuple[ArchiveEvent, ...] = ()
    _last: Counters | None = None
    _group: Counts = field(default_factory=dict)
    _moment: float = 0.0
    ticks: int = field(default=DEFAULT_TICKS)

    def read(self, contents: Mapping[str, bytes], moment: float) -> Mapping[str, float] | None:
        """Rates since the last look, in base units; None at the first, or where nothing can be read.

        Args:
            contents: of `FILES` and of those of the server's control group, those that could be read.
            moment: seconds of a clock that does not jump.
        """
        now = _count({path: content for path, content in contents.items() if path in FILES})
        group = _count_group(contents)
        last, before, last_group = self._last, self._moment, self._group
        self._last, self._moment, self._group, self.seconds = now, moment, group, moment - before
        self.events = () if last is None else tuple(group_events(last_group, group))
        if last is None or not now or moment <= before:
            return None
        found = {**rates(last, now, self.seconds, self.ticks), **group_rates(last_group, group, self.seconds)}
        return {name: value for name, value in found.items() if value == value}  # noqa: PLR0124 - NaN is left out


def find_contained(statuses: bytes, backend: int) -> int | None:
    """The id on its host of a server's process that has the id `backend` in its container.

    Args:
        statuses: files of `STATUSES`, one after the other.
        backend: what the server says of itself.

    Returns:
        None where there is none, or where processes of several containers have that id.
    """
    found: list[int] = []
    name = b""
    for line in statuses.splitlines():
        key, _, value = line.partition(b":")
        if key == b"Name":
            name = value.strip()
        elif key == b"NSpid" and name in _PROGRAMS:
            ids = value.split()
            if len(ids) > 1 and ids[0].isdigit() and ids[-1] == str(backend).encode():
                found.append(int(ids[0]))
    return found[0] if len(found) == 1 else None


def _count_group(contents: Mapping[str, bytes]) -> Counts:
    files = {path: content for path, content in contents.items() if path not in FILES}
    if not files:
        return {}
    lines = contents.get(_DISKS, b"").decode("utf-8", "replace").splitlines()
    return count_group(files, frozenset(device.number for device in whole_disks(lines)))


def _count(contents: Mapping[str, bytes]) -> Counters:
    lines: dict[str, list[str]] = {}
    for path, content in contents.items():
        name = path.removeprefix("/proc/")
        wanted = _WANTED.get(name)
        text = content.decode("utf-8", "replace").splitlines()
        lines[name] = [line for line in text if wanted is None or line.startswith(wanted)]
    sample = HostSample(moment=0.0, lines=lines)
    return {**read_counters(lines), **sum_disks(sample)}
