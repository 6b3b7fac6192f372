"""The installation of a server copied to other storage, for it to be started from there."""

from __future__ import annotations

from typing import Final

from pgstrata.errors import CommandFailedError, HostNotFitError, LevelNotTakenError
from pgstrata.layers.storage.stack import Observed
from pgstrata.model.server import Build
from pgstrata.ports.host import Command, Host
from pgstrata.ports.server import RunningServer, Sql
from pgstrata.system.storage import Place
from pgstrata.units import render_bytes

# A file system keeps records of its own, and small files take whole blocks.
_ROOM: Final = 1.2
# Servers with all their extensions and debugging symbols take less.
_MOST: Final = 1024**3
_TIMEOUT: Final = 600.0
_LAST_LINES: Final = 5
# The view pg_config is there from 9.6 on.
_FOLDERS_FROM: Final = 90600
_FOLDERS_SQL: Final = (
    "SELECT name, setting FROM pg_config WHERE name IN ('BINDIR', 'PKGLIBDIR', 'SHAREDIR') ORDER BY name"
)
_RELOCATABLE: Final = "use a build that can be moved, as those of the catalogue can, or take storage.installation out"


def installed_bytes(host: Host, build: Build, where: str) -> int:
    """What a file system must hold for a copy of an installation.

    HostNotFitError where it is more than a server alone, as /usr is.
    """
    # what cannot be read is told when it is copied
    argv = ("du", "-s", "--block-size=1", f"{build.prefix}/")
    said = host.run(Command(argv=argv), timeout=_TIMEOUT, check=False).text.split()
    size = int(said[0]) if said else 0
    if size > _MOST:
        raise HostNotFitError(
            f"{build.prefix} takes {render_bytes(size)}: all of it would be copied for each run",
            where=where,
            remedy="name an installation that lies in a folder of its own",
        )
    return round(size * _ROOM)


def install(host: Host, build: Build, place: Place, where: str) -> str:
    """Copy an installation and start its postgres for its version; the new prefix.

    Everything is written back before anything is measured; what was copied is in the page cache afterwards.

    Raises:
        HostNotFitError: it cannot be copied, or the copy does not start.
        DiskFullError: it does not fit.
    """
    prefix = f"{place.data}/installation"
    try:
        host.run(Command(argv=("cp", "-a", "--", f"{build.prefix}/.", prefix)), timeout=_TIMEOUT)
        host.run(Command(argv=("sync", "-f", prefix)), timeout=_TIMEOUT)
    except CommandFailedError as error:
        raise HostNotFitError(
            f"the installation in {build.prefix} cannot be copied",
            where=where,
            details=(error.what, *error.details),
            remedy=f"all of it must be readable by {host.user}, the user that servers run as",
        ) from error
    moved = build.moved(prefix)
    version = Command(argv=(moved.program("postgres"), "--version"), environment=moved.process_environment, folder="/")
    done = host.run(version, timeout=_TIMEOUT, check=False)
    if done.code:
        raise HostNotFitError(
            f"a copy of the installation in {build.prefix} does not start (status {done.code})",
            where=where,
            details=done.last_words(_LAST_LINES),
            remedy=f"{_RELOCATABLE}; noexec in storage.mount prevents it too",
        )
    return prefix


def assert_installation(server: RunningServer, former: str, seen: Observed, sql: Sql, where: str) -> None:
    """LevelNotTakenError where the server runs another program than it should, or takes files of the former prefix.

    `former` is the prefix of which the installation is a copy, empty where it is none.
    """
    inside, real = seen.facts["inside"], seen.facts["real"]
    if inside != real:
        raise LevelNotTakenError(
            f"the server runs {inside}, it should run {real}",
            where=where,
            remedy="name an installation whose bin/postgres is the server itself",
        )
    if not former:
        return
    kept = seen.facts.get("kept", "")
    if not kept and server.build.version.number >= _FOLDERS_FROM:
        folders = {row["name"]: row["setting"] for row in sql.query(server.address, _FOLDERS_SQL).records()}
        kept = next((folder for folder in folders.values() if f"{folder}/".startswith(f"{former}/")), "")
    if kept:
        raise LevelNotTakenError(f"the server was copied and still takes {kept}", where=where, remedy=_RELOCATABLE)
