"""Who could put something else where root is about to work: whoever may write into a folder on the way there."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from pgstrata.errors import HostNotFitError
from pgstrata.ports.host import Command, Host
from pgstrata.system.commands import owners

ROOT: Final = "root"
_WRITABLE: Final = 0o022
_STICKY: Final = 0o1000
_LINK: Final = "symbolic link"


def find_keeper(host: Host, path: str) -> str:
    """Whose a path is: root's if no other user may exchange it or a part of it, else the first other owner on the way.

    Links on the way count with their owners, and with the folders that they lead to. A sticky folder, such as /tmp, in
    which only owners rename and remove, is like one that nobody else may write into.

    Raises:
        HostNotFitError: users may exchange it who own nothing on the way.
        CommandFailedError: it is not there.
    """
    resolved = host.run(Command(argv=("readlink", "-f", "--", path))).text.rstrip("\n")
    steps = [*reversed(_way(path)), *reversed(_way(resolved))]
    for step, line in zip(steps, host.run(Command(argv=owners(*steps))).text.splitlines(), strict=True):
        owner, mode, kind = line.split(maxsplit=2)
        if owner != ROOT:
            return owner
        rights = int(mode, 8)
        if kind != _LINK and rights & _WRITABLE and not rights & _STICKY:
            raise HostNotFitError(
                "other users than its owner may write there",
                where=f"{host.name}: {step}",
                remedy="take that right from group and others (chmod go-w), or name another folder",
            )
    return ROOT


def _way(path: str) -> list[str]:
    return [path, *map(str, PurePosixPath(path).parents)]
