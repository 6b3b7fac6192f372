"""Whose is a path: which user besides root could put something else in its place.

Root works in a folder as itself only where that is nobody; elsewhere it works as that user, who can then do no more
harm than without pgstrata.
"""

from __future__ import annotations

import posixpath
from pathlib import PurePosixPath
from typing import Final

from pgstrata.errors import HostNotFitError
from pgstrata.ports.host import Command, Host
from pgstrata.system.commands import owners

ROOT: Final = "root"
_WRITABLE: Final = 0o022
_STICKY: Final = 0o1000
_LINK: Final = "symbolic link"
_MOST_LINKS: Final = 40
"""As many as the kernel follows (path_resolution(7))."""


def find_keeper(host: Host, path: str) -> str:
    """The first owner other than root of the path, of a folder above it, or of a link that leads to it; root if none.

    A sticky folder such as /tmp counts as if only its owner could write: others can add names, but not exchange any.

    Args:
        host: where the path is.
        path: absolute.

    Raises:
        HostNotFitError: a folder of root's can be written by others, so that the path may be exchanged by anybody.
        CommandFailedError: the path does not exist.
    """
    for _ in range(_MOST_LINKS):
        way = [*reversed(PurePosixPath(path).parents), PurePosixPath(path)]
        said = host.run(Command(argv=owners(*map(str, way)))).text.splitlines()
        for step, line in zip(way, said, strict=True):
            owner, mode, kind = line.split(maxsplit=2)
            if owner != ROOT:
                return owner
            if kind == _LINK:
                target = host.run(Command(argv=("readlink", "--", str(step)))).text.rstrip("\n")
                path = posixpath.normpath(step.parent / target / PurePosixPath(path).relative_to(step))
                break
            if int(mode, 8) & _WRITABLE and not int(mode, 8) & _STICKY:
                raise HostNotFitError(
                    "users other than its owner may write there",
                    where=f"{host.name}: {step}",
                    remedy="take that right from them (chmod go-w), or name another folder",
                )
        else:
            return ROOT
    raise HostNotFitError("too many symbolic links", where=f"{host.name}: {path}", remedy="name another folder")
