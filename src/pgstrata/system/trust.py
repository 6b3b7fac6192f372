"""Which user could replace a path before root uses it: any user who may write to a folder on the way to it.

Root works in a folder as itself only if no other user could; elsewhere it works as that user, who then can do no more
than without pgstrata. Access control lists are not looked at.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath
from typing import Final

from pgstrata.errors import HostNotFitError
from pgstrata.ports.host import Command, Host
from pgstrata.system.commands import owners

ROOT: Final = "root"
_STICKY: Final = 0o1000
_ENTER: Final = 0o011
_LINK: Final = "symbolic link"
_MOST_LINKS: Final = 40
"""As many as the kernel follows (path_resolution(7))."""


def find_keeper(host: Host, path: str, *, adding: bool) -> str:
    """The user other than root who could replace a path: the owner of a folder or link on the way to it; else root.

    Every link on the way counts, with its owner and with the way to its target. Other users cannot replace what is in
    a sticky folder such as /tmp, but they can add files there. Nobody reaches what is below a folder of root that is
    closed to all others, whosever it is.

    Args:
        host: where the path is.
        path: absolute.
        adding: whether other users may be able to add files to the path itself.

    Raises:
        HostNotFitError: several users could replace it.
        CommandFailedError: the path does not exist.
    """
    others: list[str] = []
    if ".." in PurePosixPath(path).parts:
        raise _replaceable(host, path, "the path has .. in it")
    for _ in range(_MOST_LINKS):
        way = [*reversed(PurePosixPath(path).parents), PurePosixPath(path)]
        said = host.run(Command(argv=owners(*map(str, way)))).text.splitlines()
        closed = False
        for step, line in zip(way, said, strict=True):
            owner, mode, kind = line.split(maxsplit=2)
            if owner not in {ROOT, *others} and not closed:
                others.append(owner)
            if kind == _LINK:
                target = host.run(Command(argv=("readlink", "--", str(step)))).text.rstrip("\n")
                if re.search(r"[^./][^/]*/+\.\.(/|$)", target):
                    raise _replaceable(host, str(step), "this link leads up a folder after going down")
                path = posixpath.normpath(step.parent / target / PurePosixPath(path).relative_to(step))
                break
            sticky_is_enough = adding or step != way[-1]
            if not closed and _is_open(owner, int(mode, 8), sticky_is_enough=sticky_is_enough):
                raise _replaceable(host, str(step), "other users may write to this folder")
            closed = closed or (owner == ROOT and not int(mode, 8) & _ENTER)
        else:
            if len(others) > 1:
                raise _replaceable(host, path, f"it or folders above it belong to {' and '.join(others)}")
            return others[0] if others else ROOT
    raise _replaceable(host, path, "there are too many symbolic links")


def require_root_keeps(host: Host, path: str, *, remedy: str) -> None:
    """HostNotFitError unless root alone could replace a path that exists, and add files to it."""
    keeper = find_keeper(host, path, adding=False)
    if keeper != ROOT:
        raise HostNotFitError(
            f"the user {keeper} could replace it while root uses it", where=f"{host.name}: {path}", remedy=remedy
        )


def as_keeper(host: Host, path: str, *, adding: bool = False) -> Host:
    """A host of root's as the user who could replace a path (`find_keeper`); itself for any other user."""
    keeper = find_keeper(host, path, adding=adding) if host.user == ROOT else host.user
    return host if keeper == host.user else host.as_user(keeper)


def _is_open(owner: str, mode: int, *, sticky_is_enough: bool) -> bool:
    """Whether others than the owner may replace what is there; a user's own group has often no other member."""
    writable = mode & (0o022 if owner == ROOT else 0o002)
    return bool(writable) and not (sticky_is_enough and mode & _STICKY)


def _replaceable(host: Host, path: str, what: str) -> HostNotFitError:
    return HostNotFitError(
        f"{what}, so root cannot safely use it",
        where=f"{host.name}: {path}",
        remedy="give these folders to one user, who alone may write there (chown, chmod go-w), or choose another one",
    )
