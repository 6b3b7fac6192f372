"""Where a host has its cgroup controllers: pure readers of /proc/self/mountinfo and /proc/PID/cgroup.

Version 1 mounts each controller (or a few together) as a tree of its own; version 2 has one tree for all; hybrid hosts
have both, each controller in one of them. Formats: proc_pid_mountinfo(5), cgroups(7).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from pgstrata.errors import ParseError
from pgstrata.model.mounts import Mount, parse_mounts


class Controller(StrEnum):
    """What a group can limit, by its name in version 2."""

    CPU = "cpu"
    MEMORY = "memory"
    IO = "io"

    @property
    def old_name(self) -> str:
        """Its name in version 1."""
        return "blkio" if self is Controller.IO else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """A tree of groups: `folder` is where its part below `root` is mounted (a container may see a part only).

    `version` is 1 or 2. `controllers` are the names as /proc/PID/cgroup has them, none in version 2.
    """

    version: int
    folder: str
    root: str
    controllers: frozenset[str] = frozenset()
    read_only: bool = False

    def locate(self, group: str) -> str:
        """The folder of a group that /proc/PID/cgroup names; the nearest that is mounted where it lies outside."""
        root = self.root.rstrip("/")
        inside = group.removeprefix(root) if group == root or group.startswith(f"{root}/") else ""
        return f"{self.folder.rstrip('/')}{inside.rstrip('/')}" or "/"

    def name(self, folder: str) -> str:
        """How /proc/PID/cgroup names the group that has this folder."""
        return f"{self.root.rstrip('/')}{folder.removeprefix(self.folder)}" or "/"


def parse_memberships(text: str) -> dict[frozenset[str], str]:
    """Group of a process by the controllers of each hierarchy; no controllers at all: that of version 2.

    Args:
        text: /proc/PID/cgroup.

    Raises:
        ParseError: a line has another shape.
    """
    found = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, colon, group = rest.partition(":")
        if not number.isdecimal() or not colon or not group.startswith("/"):
            raise ParseError(f"not a line of /proc/PID/cgroup: {line!r}")
        found[frozenset(controllers.split(",")) - {""}] = group.removesuffix(" (deleted)")
    return found


def parse_hierarchies(mountinfo: str, memberships: str) -> tuple[Hierarchy, ...]:
    """All hierarchies that are mounted, each once; one that can be written goes before one that cannot.

    Args:
        mountinfo: /proc/self/mountinfo.
        memberships: /proc/self/cgroup, which says which controllers are one hierarchy.

    Raises:
        ParseError: a line has another shape.
    """
    known = [controllers for controllers in parse_memberships(memberships) if controllers]
    found: dict[frozenset[str], Hierarchy] = {}
    for hierarchy in (_hierarchy(mount, known) for mount in parse_mounts(mountinfo)):
        # Seen from a namespace, what lies outside has a root of /..: nothing of ours can be there.
        if hierarchy is None or hierarchy.root.startswith("/.."):
            continue
        before = found.get(hierarchy.controllers)
        if before is None or (before.read_only and not hierarchy.read_only):
            found[hierarchy.controllers] = hierarchy
    return tuple(found.values())


def _hierarchy(mount: Mount, known: Collection[frozenset[str]]) -> Hierarchy | None:
    if mount.kind not in {"cgroup", "cgroup2"}:
        return None
    own, unified = frozenset(mount.super_options), mount.kind == "cgroup2"
    controllers = frozenset[str]() if unified else next((names for names in known if names <= own), None)
    if controllers is None:
        return None
    return Hierarchy(
        version=2 if unified else 1,
        folder=mount.path,
        root=mount.root,
        controllers=controllers,
        read_only=mount.read_only,
    )


def find_hierarchy(
    hierarchies: Collection[Hierarchy], controller: Controller, unified: Collection[str]
) -> Hierarchy | None:
    """The tree in which a controller is at work; `unified` is what cgroup.controllers of version 2 says."""
    for hierarchy in hierarchies:
        if controller.old_name in hierarchy.controllers or (hierarchy.version == 2 and controller in unified):  # noqa: PLR2004
            return hierarchy
    return None
