"""What is mounted where on a host, as its kernel says: proc_pid_mountinfo(5)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import ParseError

_LINE: Final = re.compile(
    r"\d+ \d+ (?P<device>[^ ]+) (?P<root>[^ ]+) (?P<path>[^ ]+) (?P<options>[^ ]+)(?: [^ ]+)*? - "
    r"(?P<kind>[^ ]+) (?P<source>[^ ]*) (?P<super>.+)",
    re.DOTALL,
)
"""Spaces in paths are escaped; in options that a file system writes itself they may not be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """Where a file system, or its part below `root`, is mounted; `device` such as 8:1.

    `options` are those of the mount, `super_options` those of the file system.
    """

    path: str
    root: str
    device: str
    kind: str
    source: str
    options: tuple[str, ...]
    super_options: tuple[str, ...]

    @property
    def read_only(self) -> bool:
        """Whether the mount or its file system is."""
        return "ro" in self.options + self.super_options


def parse_mounts(mountinfo: str, *, lenient: bool = False) -> Iterator[Mount]:
    """Each line of /proc/self/mountinfo; with `lenient`, lines of another shape are left out.

    Raises:
        ParseError: a line has another shape.
    """
    # splitlines would also split at characters that a path may contain
    for line in filter(None, mountinfo.split("\n")):
        match = _LINE.fullmatch(line)
        if match is None and lenient:
            continue
        if match is None:
            raise ParseError(f"not a line of /proc/self/mountinfo: {line!r}")
        yield Mount(
            path=_unescape(match["path"]),
            root=_unescape(match["root"]),
            device=match["device"],
            kind=match["kind"],
            source=match["source"],
            options=tuple(match["options"].split(",")),
            super_options=tuple(match["super"].split(",")),
        )


def find_mount(mountinfo: str, path: str) -> Mount | None:
    """The mount that a path lies on: the deepest, and of several on one place the last, which hides the others."""
    best: Mount | None = None
    for mount in parse_mounts(mountinfo):
        inside = mount.path == "/" or f"{path}/".startswith(f"{mount.path}/")
        if inside and (best is None or len(mount.path) >= len(best.path)):
            best = mount
    return best


def _unescape(field: str) -> str:
    """Space, tab, newline and backslash are written as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
