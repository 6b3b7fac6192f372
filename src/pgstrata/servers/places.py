"""The folders that pgstrata uses on a host, and the user that its servers run as.

What belongs here: names, owners and modes of folders. What is put into them belongs to the rooms that do it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.errors import HostNotFitError, UsageError
from pgstrata.system import files
from pgstrata.system.users import UserIds
from pgstrata.system.ways import find_owner

SOCKET_PATH_LIMIT: Final = 107
"""Bytes in the path of a unix socket (sun_path, with its final NUL)."""

_ROOT_STATE: Final = "/var/lib/pgstrata"
HOST_LEDGER: Final = f"{_ROOT_STATE}/ledger"
"""What is changed on a host, whoever changed it: one place for all users, whatever their state folder."""

_SOCKET_RESERVE: Final = 48  # "/" + name of a run's folder + "/.s.PGSQL.65535"
_MEMORY: Final = "/dev/shm"  # noqa: S108 - shared by all users, so a folder of our own is made below it
_SHORT: Final = "/tmp"  # noqa: S108 - the only writable place with a short name on every system

_OTHER_PLACES: Final = "choose other places with PGSTRATA_CACHE, PGSTRATA_STATE, PGSTRATA_DATA, PGSTRATA_RUN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where things live on the coordinator.

    `cache` holds what can be fetched again and is readable by everybody; `state` what is remembered of the host;
    `data` datasets and clones, owned by the server's user; in `storage` root makes file systems, so nobody else may
    write there; `run` sockets, so its name is short; `memory` is scratch space that is backed by memory, or `run` where
    there is none.
    """

    cache: str
    state: str
    data: str
    storage: str
    run: str
    memory: str


def find_places(environ: Mapping[str, str], *, uid: int, home: str, memory_backed: bool) -> Places:
    """The folders for a user, from the environment; nothing is created.

    PGSTRATA_CACHE, PGSTRATA_STATE, PGSTRATA_DATA, PGSTRATA_STORAGE and PGSTRATA_RUN override. As root nothing lies
    below root's home, because the server's unprivileged user must be able to enter. Where root chose a folder for data,
    file systems are made beside it, on the same disk; an ordinary user's own folders are never for root.

    Raises:
        UsageError: one of the variables is not an absolute path, or that for sockets is too long.
    """
    cache, state = "/var/cache/pgstrata", _ROOT_STATE
    if uid != 0:
        cache = f"{_xdg(environ, 'XDG_CACHE_HOME', f'{home}/.cache')}/pgstrata"
        state = f"{_xdg(environ, 'XDG_STATE_HOME', f'{home}/.local/state')}/pgstrata"
    cache = absolute_path(environ, "PGSTRATA_CACHE", cache)
    state = absolute_path(environ, "PGSTRATA_STATE", state)
    data = absolute_path(environ, "PGSTRATA_DATA", f"{state}/data" if uid == 0 else f"{cache}/data")
    storage = f"{_ROOT_STATE if uid else state}/storage"
    if uid == 0 and environ.get("PGSTRATA_DATA"):
        storage = f"{data}-storage"
    run = absolute_path(environ, "PGSTRATA_RUN", _run_place(environ, uid))
    _refuse_unfit_for_sockets(run)
    return Places(
        cache=cache,
        state=state,
        data=data,
        storage=absolute_path(environ, "PGSTRATA_STORAGE", storage),
        run=run,
        memory=f"{_MEMORY}/pgstrata-{uid}" if memory_backed else run,
    )


def _xdg(environ: Mapping[str, str], name: str, default: str) -> str:
    # The XDG specification says that relative paths are to be ignored.
    value = environ.get(name, "")
    return value.rstrip("/") if value.startswith("/") and value != "/" else default


def absolute_path(environ: Mapping[str, str], name: str, default: str) -> str:
    """The path that a variable names; UsageError: it is not absolute."""
    value = environ.get(name, "")
    if not value:
        return default
    if not value.startswith("/"):
        raise UsageError(f"{value!r} is not an absolute path", where=name, remedy=f"set {name} to an absolute path")
    return value.rstrip("/") or "/"


def _run_place(environ: Mapping[str, str], uid: int) -> str:
    short = f"{_SHORT}/pgstrata-{uid}"
    if uid == 0:
        return short  # root's own runtime folder is closed to the server's user
    runtime = _xdg(environ, "XDG_RUNTIME_DIR", "")
    candidate = f"{runtime}/pgstrata"
    return candidate if runtime and len(os.fsencode(candidate)) <= SOCKET_PATH_LIMIT - _SOCKET_RESERVE else short


def _refuse_unfit_for_sockets(run: str) -> None:
    longest = len(os.fsencode(run)) + _SOCKET_RESERVE
    if longest > SOCKET_PATH_LIMIT:
        raise UsageError(
            f"the path of a unix socket below this folder could have {longest} bytes; {SOCKET_PATH_LIMIT} are possible",
            where=f"PGSTRATA_RUN={run}",
            remedy=f"name a folder whose path has at most {SOCKET_PATH_LIMIT - _SOCKET_RESERVE} bytes, such as /srv/pg",
        )
    if "," in run:
        raise UsageError(
            "a folder for sockets cannot have a comma in its name",
            where=f"PGSTRATA_RUN={run}",
            remedy="PostgreSQL takes it for the end of the name: choose another one",
        )


def server_user(uid: int, environ: Mapping[str, str], *, known: Callable[[str], bool]) -> str | None:
    """The user that servers run as: None for an ordinary user, who runs them as themself.

    PostgreSQL refuses to run as root, and initdb needs a user with a name. `known` says whether there is such a user.

    Raises:
        UsageError: PGSTRATA_USER names nobody, or root.
        HostNotFitError: there is no unprivileged user at all.
    """
    if uid != 0:
        return None
    chosen = environ.get("PGSTRATA_USER", "")
    if chosen:
        if chosen == "root" or not known(chosen):
            what = "PostgreSQL refuses to run as root" if chosen == "root" else f"there is no user {chosen!r}"
            raise UsageError(what, where="PGSTRATA_USER", remedy="name an existing unprivileged user")
        return chosen
    for name in ("postgres", "nobody"):
        if known(name):
            return name
    raise HostNotFitError(
        "pgstrata runs as root and there is no unprivileged user to run servers as",
        remedy="create one (useradd --system postgres), or name one in PGSTRATA_USER",
    )


def make_places(places: Places, *, uid: int, server: UserIds | None) -> None:
    """Create the folders with their owners and modes.

    Args:
        places: the folders.
        uid: the user that pgstrata runs as.
        server: the user that servers run as, where that is another one.

    Raises:
        HostNotFitError: a folder cannot be created, or one of them belongs to somebody else; as root, others could
            replace the cache or the state.
    """
    owner = server.uid if server else uid
    for path in (places.cache, places.state):
        _refuse_replaceable(path)
        _make(path, mode=0o755 if server else 0o700, owner=uid, server=None)
    for path in dict.fromkeys((places.data, places.run, places.memory)):
        _make(path, mode=0o700, owner=owner, server=server)
    files.open_folder(Path(places.cache))


def _refuse_replaceable(path: str) -> None:
    """What root fetches, remembers and starts must be what root put there."""
    remedy = "choose a folder to which root alone can write, as to all folders above it"
    try:
        owner = find_owner(Path(path))
    except PermissionError as error:
        raise HostNotFitError(error.strerror or str(error), where=path, remedy=remedy) from error
    except OSError as error:
        raise _cannot_be_made(path, error) from error
    if owner is not None:
        raise HostNotFitError(f"the user {owner.name} could replace this folder of root's", where=path, remedy=remedy)


def _make(path: str, *, mode: int, owner: int, server: UserIds | None) -> None:
    # the server's user has to pass
    parents = 0o755 if server is not None or mode & 0o005 else 0o700
    try:
        facts = files.ensure_folder(Path(path), mode=mode, owner=server, parents=parents)
    except OSError as error:
        raise _cannot_be_made(path, error) from error
    if facts is not None and facts.st_uid != owner:
        _refuse_foreign(path, facts, owner)


def _cannot_be_made(path: str, error: OSError) -> HostNotFitError:
    return HostNotFitError(f"the folder cannot be created: {error.strerror}", where=path, remedy=_OTHER_PLACES)


def _refuse_foreign(path: str, facts: os.stat_result, owner: int) -> None:
    # In a folder that everybody may write to, somebody else could have put this one there, or a link to it.
    kind = "a symbolic link" if stat.S_ISLNK(facts.st_mode) else f"owned by user {facts.st_uid}"
    raise HostNotFitError(
        f"the folder is {kind}, not owned by user {owner}",
        where=path,
        remedy=f"remove it, or {_OTHER_PLACES}",
    )
