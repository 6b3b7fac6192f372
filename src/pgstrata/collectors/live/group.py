"""CPU time that limits of control groups withhold from a process. Pure. Shapes: cgroups(7), both versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

_MOUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"),
    "cpu": ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"),
}
"""Where the hierarchy without a controller's name (version 2) and that of cpu (version 1) are mounted."""
_FIELDS: Final[Mapping[str, float]] = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
"""Names of the counter, and its unit in seconds."""
_DEEPEST: Final = 20
_MEMBERSHIP: Final = 3


def group_files(memberships: str) -> tuple[str, ...]:
    """Files cpu.stat of a process's group and of all above it, whose limits hold for it, too; some may not exist.

    Args:
        memberships: /proc/PID/cgroup.
    """
    return tuple(dict.fromkeys(_files(memberships)))


def _files(memberships: str) -> Iterator[str]:
    for line in memberships.splitlines():
        words = line.split(":", 2)
        if len(words) != _MEMBERSHIP or not words[2].startswith("/"):
            continue
        names = [part for part in words[2].split("/") if part][:_DEEPEST]
        if ".." in names:
            continue
        for controller in words[1].split(","):
            for mount in _MOUNTS.get(controller, ()):
                for depth in range(len(names), 0, -1):
                    yield "/".join((mount, *names[:depth], "cpu.stat"))


def throttled_seconds(contents: Mapping[str, bytes]) -> float | None:
    """CPU time withheld since the groups were made, summed over groups and CPUs; None where no group has a limit.

    Args:
        contents: of `group_files`, those that could be read.
    """
    found = [
        int(words[1]) * _FIELDS[words[0]]
        for text in contents.values()
        for line in text.decode("ascii", "replace").splitlines()
        if len(words := line.split()) == 2 and words[0] in _FIELDS and words[1].isdecimal()  # noqa: PLR2004 - a pair
    ]
    return sum(found) if found else None
