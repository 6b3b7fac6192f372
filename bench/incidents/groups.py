"""A control group of our own for the server, of version 1 or 2, and the limits set in it. No other group is touched."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from incidents.ledger import Ledger, remove_group

NAME: Final = "pgsi"
_ROOT: Final = Path("/sys/fs/cgroup")
PERIOD: Final = 100_000
"""Microseconds of a quota's period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Groups with the server in them: `cpu` and `io` are None where this machine does not let us limit it."""

    cpu: Path | None
    io: Path | None
    device: str

    def limit_cpu(self, microseconds: int | None) -> None:
        """So much CPU time in each period; None lifts it."""
        assert self.cpu is not None
        if (self.cpu / "cpu.max").exists():
            (self.cpu / "cpu.max").write_text(f"{microseconds or 'max'} {PERIOD}")
        else:
            (self.cpu / "cpu.cfs_quota_us").write_text(str(microseconds or -1))

    def limit_io(self, operations: int | None) -> None:
        """So many reads, and so many writes, each second on the device of the data; None lifts it."""
        assert self.io is not None
        if (self.io / "io.max").exists():
            text = str(operations or "max")
            (self.io / "io.max").write_text(f"{self.device} riops={text} wiops={text}")
            return
        for name in ("read", "write"):
            (self.io / f"blkio.throttle.{name}_iops_device").write_text(f"{self.device} {operations or 0}")


@contextmanager
def own_groups(ledger: Ledger, pids: Sequence[int], data: Path) -> Iterator[Limits]:
    """Put the server's processes into groups of its own; those forked later are in them by birth."""
    made: list[Path] = []
    cpu = _make(ledger, made, "cpu", "cpu.cfs_quota_us", "cpu.max")
    io = _make(ledger, made, "blkio", "blkio.throttle.write_iops_device", "io.max")
    try:
        for group in made:
            for pid in pids:
                with suppress(OSError):
                    (group / "cgroup.procs").write_text(str(pid))
        yield Limits(cpu=cpu, io=io, device=device_of(data))
    finally:
        for group in made:
            remove_group(group)


def _make(ledger: Ledger, made: list[Path], controller: str, old: str, new: str) -> Path | None:
    """A group with that controller, or None: no right to make one, or the controller is not given to groups below."""
    for parent, file in ((_ROOT / controller, old), (_ROOT, new), (_ROOT / "unified", new)):
        path = parent / f"{NAME}-{os.getpid()}"
        if path in made:
            return path if (path / file).exists() else None
        if not (parent / "cgroup.procs").exists():
            continue
        ledger.group(path)
        try:
            path.mkdir()
        except OSError:
            continue
        if (path / file).exists():
            made.append(path)
            return path
        path.rmdir()
    return None


def device_of(path: Path) -> str:
    """MAJOR:MINOR of the whole disk on which a path lies: a partition has no limits of its own."""
    number = path.stat().st_dev
    device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if (device / "partition").exists():
        return (device.resolve().parent / "dev").read_text().strip()
    return device.name
