"""What root does at a path of this machine where another user could put something else: it is done as that user.

Who looks at a path first and then uses it may find another file there: whoever owns a folder on the way to it can put a
link in its place in between. As that user, no more can be read, changed or removed than that user could anyway.
"""

from __future__ import annotations

import errno
import os
import posixpath
import pwd
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from pgstrata.errors import HostNotFitError
from pgstrata.system.users import UserIds, acting_as

_MOST_LINKS: Final = 40
"""As many as the kernel follows (path_resolution(7))."""
_NO_GROUP: Final = 65534
NOBODY: Final = UserIds(uid=65534, gid=_NO_GROUP)
"""The user without rights."""
_ENTER: Final = 0o011
_GROUP, _OTHERS = stat.S_IWGRP, stat.S_IWOTH

_Arguments = ParamSpec("_Arguments")
_Returned = TypeVar("_Returned")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A folder on the way: `closed` if no other user reaches what is in it, `shared` if all may add files to it."""

    path: str
    closed: bool = False
    shared: bool = False


def find_owner(path: Path, *, making: bool = True) -> UserIds | None:
    """The user as whom root has to use a path: the first other owner of a folder or link on the way to it.

    None if there is none, or if this process is not root: then it can be used as it is, and nobody else can change
    where it leads. What is at the path itself counts if it is a link, or in a folder where all may add files, such as
    /tmp. What is missing there anybody could add the next moment: it is looked for as `NOBODY`. Nobody else reaches
    what is below a folder of root that is closed to all others, and `..` leads out of it.

    Args:
        path: absolute, or from the folder that this process works in.
        making: whether what is done makes what is missing at the path, and never uses what is there meanwhile.

    Raises:
        PermissionError: others than one user could replace it.
        OSError: there are too many links, or it cannot be looked at.
    """
    if os.geteuid() != 0:
        return None
    top = [_look_at_folder(_Step(path="/"), os.lstat("/"))]
    rest, way, links = _parts(posixpath.join(Path.cwd(), path)), list(top), 0
    while rest:
        name = rest.pop(0)
        if name == "..":
            way = way[:-1] or way
            continue
        inside = way[-1]
        step = posixpath.join(inside.path, name)
        try:
            facts = os.lstat(step)
        except NotADirectoryError:
            return None
        except FileNotFoundError:
            return NOBODY if inside.shared and (rest or not making) else None
        if facts.st_uid and not inside.closed and (inside.shared or stat.S_ISLNK(facts.st_mode)):
            return _user(facts.st_uid)
        if stat.S_ISLNK(facts.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            rest = _parts(posixpath.join(inside.path, Path(step).readlink())) + rest
            way = list(top)
            continue
        if rest and stat.S_ISDIR(facts.st_mode) and not inside.closed:
            if facts.st_uid:
                return _user(facts.st_uid)
            if _is_open(facts):
                what = f"root does not use it, because other users may write to {step}"
                raise PermissionError(errno.EPERM, what, str(path))
        way.append(_look_at_folder(replace(inside, path=step), facts))
    return None


def _look_at_folder(step: _Step, facts: os.stat_result) -> _Step:
    closed = step.closed or not facts.st_mode & _ENTER
    shared = not closed and bool(facts.st_mode & stat.S_ISVTX and facts.st_mode & (_GROUP | _OTHERS))
    return replace(step, closed=closed, shared=shared)


def find_reader(folder: str) -> UserIds | None:
    """The user as whom root reads what is in a folder (`find_owner`). HostNotFitError: several could replace it."""
    try:
        return find_owner(Path(folder, "content"), making=False)
    except PermissionError as error:
        remedy = "let one user alone write there (chmod go-w), or choose another folder"
        raise HostNotFitError(error.strerror or str(error), where=folder, remedy=remedy) from error


def _parts(path: str) -> list[str]:
    """The steps of an absolute path; `..` is a step like any other."""
    return [part for part in path.split("/") if part not in {"", "."}]


def _is_open(facts: os.stat_result) -> bool:
    """Whether others may replace what is in a folder of root's; in a sticky one they cannot."""
    by_group = facts.st_mode & _GROUP and facts.st_gid
    return bool(by_group or facts.st_mode & _OTHERS) and not facts.st_mode & stat.S_ISVTX


def _user(uid: int) -> UserIds:
    try:
        return UserIds.of(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return UserIds(uid=uid, gid=_NO_GROUP)


def as_owner(function: Callable[_Arguments, _Returned]) -> Callable[_Arguments, _Returned]:
    """Root calls the function as the user of whom `find_owner` says so for one of the paths among its arguments.

    The function follows no link at a path. It makes what it writes to, or opens a file of that user's.
    """
    return _acting(function, find_owner)


def as_owner_of(function: Callable[_Arguments, _Returned]) -> Callable[_Arguments, _Returned]:
    """As `as_owner`, for a function that uses what is there already."""
    return _acting(function, partial(find_owner, making=False))


def as_owner_inside(function: Callable[_Arguments, _Returned]) -> Callable[_Arguments, _Returned]:
    """As `as_owner`, for a function that uses what is in the folders among its arguments."""
    return _acting(function, lambda folder: find_owner(folder / "content", making=False))


def _acting(
    function: Callable[_Arguments, _Returned], find: Callable[[Path], UserIds | None]
) -> Callable[_Arguments, _Returned]:
    @wraps(function)
    def call(*arguments: _Arguments.args, **keywords: _Arguments.kwargs) -> _Returned:
        owners = [find(each) for each in arguments if isinstance(each, Path)]
        with acting_as(next((owner for owner in owners if owner), None)):
            return function(*arguments, **keywords)

    return call
