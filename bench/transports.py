"""Time of operations through a shell, as a ratio to Python: why this machine is not reached through a shell."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from figures import Figure

from pgstrata.hosts.local import LocalHost
from pgstrata.hosts.shell import ShellHost
from pgstrata.ports.host import Command, Host

ROUNDS = 60
FILES = 67
"""So many files below /proc are read before and after each run of eight clients."""

Work = Callable[[Host], object]


def measure_transports() -> Sequence[Figure]:
    """Medians of alternated rounds."""
    with tempfile.TemporaryDirectory(prefix="pgstrata-bench-") as folder, closing(ShellHost(name="a shell")) as shell:
        hosts = LocalHost(), shell
        return [
            Figure(name=f"transports: {name}, shell / Python", value=_ratio(work, hosts), goal=goal, low_is_good=False)
            for name, (work, goal) in _works(Path(folder)).items()
        ]


def _works(folder: Path) -> dict[str, tuple[Work, float]]:
    """Each with the least ratio that justifies a separate host class."""
    several = tuple(f"/proc/sys/kernel/{path.name}" for path in sorted(Path("/proc/sys/kernel").iterdir()))
    readable = tuple(path for path in several if os.access(path, os.R_OK) and not Path(path).is_dir())
    return {
        "the clock": (lambda host: host.clock(), 2.0),
        "one file": (lambda host: host.read_files(("/proc/uptime",)), 2.0),
        f"{FILES} files of /proc": (lambda host: host.read_files(readable[:FILES]), 2.0),
        "a file written": (lambda host: host.write(str(folder / "file"), b"text"), 2.0),
        "a command": (lambda host: host.run(Command(argv=("true",))), 0.5),
    }


def _ratio(work: Work, hosts: tuple[Host, Host]) -> float:
    ratios = []
    for _ in range(ROUNDS):
        direct, through = (_seconds(work, host) for host in hosts)
        ratios.append(through / direct)
    return statistics.median(ratios)


def _seconds(work: Work, host: Host) -> float:
    begun = time.perf_counter()
    work(host)
    return time.perf_counter() - begun
