"""Where a host has its cgroup controllers: pure readers of /proc/self/mountinfo and /proc/PID/cgroup.

Version 1 mounts each controller (or a few together) as a tree of its own; version 2 has one tree for all; hybrid hosts
have both, each controller in one of them. Formats: proc_pid_mountinfo(5), cgroups(7).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from pgstrata.errors import ParseError

_FIRST_OPTIONAL: Final = 6


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
    for line in mountinfo.splitlines():
        hierarchy = _parse_mount(line, known)
        # Seen from a namespace, what lies outside has a root of /..: nothing of ours can be there.
        if hierarchy is None or hierarchy.root.startswith("/.."):
            continue
        before = found.get(hierarchy.controllers)
        if before is None or (before.read_only and not hierarchy.read_only):
            found[hierarchy.controllers] = hierarchy
    return tuple(found.values())


def _parse_mount(line: str, known: Collection[frozenset[str]]) -> Hierarchy | None:
    fields = line.split(" ")
    if "-" not in fields[_FIRST_OPTIONAL:]:
        raise ParseError(f"not a line of /proc/self/mountinfo: {line!r}")
    end = fields.index("-", _FIRST_OPTIONAL)
    root, folder, options = (_unescape(field) for field in fields[3:6])
    kind, own = fields[end + 1], fields[-1].split(",")
    hierarchy = Hierarchy(version=2, folder=folder, root=root, read_only="ro" in options.split(",") or "ro" in own)
    if kind == "cgroup2":
        return hierarchy
    if kind != "cgroup":
        return None
    controllers = next((names for names in known if names <= frozenset(own)), None)
    return replace(hierarchy, version=1, controllers=controllers) if controllers else None


def _unescape(field: str) -> str:
    """Space, tab, newline and backslash are written as three octal digits (proc_pid_mountinfo(5))."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


def find_hierarchy(
    hierarchies: Collection[Hierarchy], controller: Controller, unified: Collection[str]
) -> Hierarchy | None:
    """The tree in which a controller is at work; `unified` is what cgroup.controllers of version 2 says."""
    for hierarchy in hierarchies:
        if controller.old_name in hierarchy.controllers or (hierarchy.version == 2 and controller in unified):  # noqa: PLR2004
            return hierarchy
    return None
