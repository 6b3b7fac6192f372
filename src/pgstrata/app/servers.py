"""Check the servers of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgstrata.app.machine import Machine
from pgstrata.errors import UsageError
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.model.server import Build
from pgstrata.servers.inspect import ProgramCheck


def check_levels(machine: Machine, levels: Sequence[str]) -> Iterator[tuple[str, Build, tuple[ProgramCheck, ...]]]:
    """The named levels, or all that are fetched or installed: what each is made of, and whether its programs start."""
    for level in tuple(levels) or tuple(row.level for row in machine.servers.list() if row.fetched):
        build = machine.servers.resolve(_spec(level))
        yield level, build, machine.servers.check(build)


def _spec(level: str) -> ServerSpec:
    if level == "embedded":
        return ServerSpec(kind=ServerKind.EMBEDDED)
    if level.isdecimal():
        return ServerSpec(kind=ServerKind.CATALOGUE, value=level)
    if level.startswith("maven:"):
        return ServerSpec(kind=ServerKind.MAVEN, value=level.removeprefix("maven:"))
    if level.startswith("build:"):
        return ServerSpec(kind=ServerKind.BUILD, value=level.removeprefix("build:"))
    prefix = level.removeprefix("prefix:")
    if not prefix.startswith("/"):
        raise UsageError(
            f"{level!r} is not a server that can be checked",
            remedy="use embedded, a major version, maven:MAJOR, build:/DIR or prefix:/DIR",
        )
    return ServerSpec(kind=ServerKind.PREFIX, value=prefix)
