"""The user that a local host works as: its ids, its environment, and acting as it within this process."""

from __future__ import annotations

import os
import pwd
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Self

from pgstrata.errors import HostNotFitError
from pgstrata.system.users import UserIds, acting_as

# A password is meant for libpq alone, which is told it otherwise; LANGUAGE would be stronger than the locale.
_FOR_NOBODY: Final = frozenset({"LANGUAGE", "PGPASSWORD"})
# Messages of the operating system are recognised by their text, and sorting must not depend on who started pgstrata.
_LOCALE: Final = {"LC_ALL": "C.UTF-8"}
_DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAccount:
    """A user of this machine; `other` says that it is not the one that this process runs as.

    `hidden` are variables of this process's environment that programs do not get.
    """

    name: str
    ids: UserIds
    home: str
    other: bool
    hidden: frozenset[str] = frozenset()

    @classmethod
    def load(cls, user: str | None, hidden: frozenset[str] = frozenset()) -> Self:
        """Look up a user, or the one that this process runs as. HostNotFitError if it is not there or not allowed."""
        if user is None:
            return cls._current(hidden)
        try:
            entry = pwd.getpwnam(user)
        except KeyError:
            remedy = f"create it (adduser --system {user}) or name another user"
            raise HostNotFitError(f"there is no user {user}", where="local", remedy=remedy) from None
        if entry.pw_uid == os.geteuid():
            return cls._current(hidden)
        if os.geteuid() != 0:
            remedy = f"start pgstrata as root or as {user}"
            raise HostNotFitError(f"only root can work as the user {user}", where="local", remedy=remedy)
        return cls(name=user, ids=UserIds.of(user), home=entry.pw_dir, other=True)

    @classmethod
    def _current(cls, hidden: frozenset[str]) -> Self:
        uid = os.geteuid()
        try:
            entry = pwd.getpwuid(uid)
            name, home = entry.pw_name, entry.pw_dir
        except KeyError:  # containers run as ids without a name
            name, home = str(uid), os.environ.get("HOME", "/")
        return cls(name=name, ids=UserIds(uid=uid, gid=os.getegid()), home=home, other=False, hidden=hidden)

    def environment(self) -> dict[str, str]:
        """The environment that programs start from.

        Another user gets a fresh one: what is in root's, such as tokens and paths into its home, is not for it.
        """
        if not self.other:
            return {**own_environment(self.hidden), **_LOCALE}
        kept = {name: os.environ[name] for name in ("TZ",) if name in os.environ}
        return {
            **kept,
            **_LOCALE,
            "PATH": os.environ.get("PATH", _DEFAULT_PATH),
            "HOME": self.home,
            "USER": self.name,
            "LOGNAME": self.name,
            "SHELL": "/bin/sh",
        }

    def acting(self) -> AbstractContextManager[None]:
        """Do what follows as this user (`users.acting_as`)."""
        return acting_as(self.ids if self.other else None)


def own_environment(hidden: frozenset[str] = frozenset()) -> dict[str, str]:
    """The environment of this process without the variables that programs do not get."""
    return {name: text for name, text in os.environ.items() if name not in hidden | _FOR_NOBODY}
