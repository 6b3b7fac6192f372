"""What tells a process of a host from a later one that has the same id: when it started, and in which boot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pgstrata.ports.host import Host

BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_START_TIME_FIELD: Final = 19  # field 22 of /proc/PID/stat, counted from the state that follows the name (proc(5))


def start_times(host: Host, pids: Sequence[int]) -> Mapping[int, str]:
    """When processes started, in ticks since boot, by id; those that have ended are left out."""
    paths = {f"/proc/{pid}/stat": pid for pid in pids}
    found: dict[int, str] = {}
    for path, content in host.read_files(tuple(paths)).items():
        fields = content.decode("utf-8", "replace").rpartition(")")[2].split()
        if len(fields) > _START_TIME_FIELD and fields[0] not in ("Z", "X"):
            found[paths[path]] = fields[_START_TIME_FIELD]
    return found


def observe_boot(host: Host) -> str:
    """The id of the boot that a host runs."""
    return host.read(BOOT_ID).decode().strip()
