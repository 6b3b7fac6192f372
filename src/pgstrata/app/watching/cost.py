"""What a recorder costs: CPU and memory of this process and of its psql, bytes of the archive."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pgstrata.system.users import acting_as_itself

_PARENT, _USER, _SYSTEM, _PAGES = 1, 11, 12, 21
"""Fields of /proc/PID/stat behind the name of the program, see proc_pid_stat(5)."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of CPU since this process began, bytes in memory now, bytes on disk now."""

    cpu: float
    resident: int
    archive: int


@dataclass(slots=True)
class CostReader:
    """Reads what it costs; CPU never goes backwards.

    Args:
        archive: the folder of the archive.
        psql: the process id of the present psql, if there is one.
    """

    archive: Path
    psql: Callable[[], int | None]
    _cpu: float = field(default=0.0)

    def read(self) -> Cost:
        """What it is now."""
        own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
        here, psql = process_cost(os.getpid()), self.psql()
        child = None if psql is None else process_cost(psql, parent=os.getpid())
        # a psql that is ending is for a moment neither here nor among those that have ended
        self._cpu = max(self._cpu, cpu + (child.cpu if child else 0.0))
        return Cost(
            cpu=self._cpu,
            resident=sum(process.resident for process in (here, child) if process),
            archive=_size(self.archive),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessCost:
    """Seconds of CPU since the process began, bytes in memory now."""

    cpu: float
    resident: int


def process_cost(pid: int, *, parent: int | None = None) -> ProcessCost | None:
    """What a process of this machine costs; None where it has ended, or is the child of another than `parent`."""
    try:
        words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        found = [int(words[place]) for place in (_PARENT, _USER, _SYSTEM, _PAGES)]
    except (OSError, ValueError, IndexError):
        return None
    if parent is not None and found[0] != parent:
        return None
    return ProcessCost(cpu=(found[1] + found[2]) / _TICKS, resident=found[3] * _PAGE)


def _size(folder: Path) -> int:
    """Bytes that the files of a folder take on disk."""
    total = 0
    with acting_as_itself(), suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total
