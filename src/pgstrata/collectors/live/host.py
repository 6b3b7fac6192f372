"""The server's host second by second, from files of the kernel. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pgstrata.collectors.live.group import throttled_seconds
from pgstrata.collectors.procfs.samples import HostSample
from pgstrata.collectors.procfs.series import rates, sum_disks
from pgstrata.collectors.procfs.snapshot import DEFAULT_TICKS, Counters, read_counters

FILES: Final = tuple(
    f"/proc/{name}"
    for name in ("stat", "vmstat", "meminfo", "diskstats", "pressure/cpu", "pressure/io", "pressure/memory")
)
_THROTTLED: Final = "cpu_throttled"
_WANTED: Final = {
    "stat": ("cpu ", "ctxt ", "procs_"),
    "vmstat": ("pgfault ", "pgmajfault "),
    "meminfo": ("MemTotal:", "MemAvailable:", "Dirty:", "Writeback:"),
}


@dataclass(slots=True)
class HostReader:
    """Keeps the last look; `seconds` have passed between the last two."""

    seconds: float = 0.0
    _last: Counters | None = None
    _moment: float = 0.0
    _throttled: float | None = None
    ticks: int = field(default=DEFAULT_TICKS)

    def read(self, contents: Mapping[str, bytes], moment: float) -> Mapping[str, float] | None:
        """Rates since the last look, in base units; None at the first, or where nothing can be read.

        Args:
            contents: of `FILES` and of the server's `group_files`, those that could be read.
            moment: seconds of a clock that does not jump.
        """
        now = _count({path: content for path, content in contents.items() if path in FILES})
        last, before = self._last, self._moment
        self._last, self._moment, self.seconds = now, moment, moment - before
        withheld = self._grown_throttling(contents)
        if last is None or not now or moment <= before:
            return None
        found = dict(rates(last, now, moment - before, self.ticks))
        if withheld is not None:
            found[_THROTTLED] = withheld / (moment - before)
        return {name: value for name, value in found.items() if value == value}  # noqa: PLR0124 - NaN is left out

    def _grown_throttling(self, contents: Mapping[str, bytes]) -> float | None:
        """CPU seconds that limits withheld since the last look."""
        now = throttled_seconds({path: content for path, content in contents.items() if path not in FILES})
        before, self._throttled = self._throttled, now
        return None if now is None or before is None or now < before else now - before


def _count(contents: Mapping[str, bytes]) -> Counters:
    lines: dict[str, list[str]] = {}
    for path, content in contents.items():
        name = path.removeprefix("/proc/")
        wanted = _WANTED.get(name)
        text = content.decode("utf-8", "replace").splitlines()
        lines[name] = [line for line in text if wanted is None or line.startswith(wanted)]
    sample = HostSample(moment=0.0, lines=lines)
    return {**read_counters(lines), **sum_disks(sample)}
