"""Users of this machine by their numbers, and doing something as one of them."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Final, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class UserIds:
    """Numbers of a user and its groups; `groups` are the supplementary ones."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The user's name, or the number where there is none."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return str(self.uid)

    @classmethod
    def of(cls, name: str) -> Self:
        """The ids of a user by name; KeyError if there is none."""
        entry = pwd.getpwnam(name)
        return cls(uid=entry.pw_uid, gid=entry.pw_gid, groups=tuple(os.getgrouplist(name, entry.pw_gid)))


_acting: Final[list[UserIds]] = []
_changing: Final = RLock()
"""Held while the ids of this process are not its own."""


def is_acting() -> bool:
    """Whether this process acts as another user at the moment."""
    return bool(_acting)


@contextmanager
def acting_as(user: UserIds | None) -> Iterator[None]:
    """Do what follows as another user, so that the kernel checks its rights and it owns what it makes; needs root.

    The ids of the whole process change: this relies on the coordinator doing one thing at a time, on `is_acting`
    where it could turn to another one, and on `acting_as_itself` in threads beside it. None changes nothing.
    """
    if user is None:
        yield
        return
    with _changing:
        gid, groups = os.getegid(), os.getgroups()
        _acting.append(user)
        try:
            os.setgroups(user.groups)
            os.setegid(user.gid)
            os.seteuid(user.uid)
            yield
        finally:
            os.seteuid(0)
            os.setegid(gid)
            os.setgroups(groups)
            _acting.pop()


def acting_as_itself() -> AbstractContextManager[object]:
    """For threads: do what follows while the process has its own ids. Briefly, as it may keep the coordinator waiting.

    What opens a file or starts a program needs it, in a process whose coordinator acts as other users.
    """
    return _changing
