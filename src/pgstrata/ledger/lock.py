"""One pgstrata at a time on a host: a lock that dies with its owner, and the owner's identity for who comes second.

The lock is held by a process on the host that does nothing else and dies with pgstrata, however that dies. The file is
one for all users of the host, where there is a folder for such files.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

from pgstrata.errors import HostNotFitError
from pgstrata.ledger.entries import moment, observe_owner
from pgstrata.model.changes import ChangeOwner
from pgstrata.model.codec import parse_json
from pgstrata.ports.host import Clock, Command, Host, Process, StopSignal, start_times
from pgstrata.system import commands
from pgstrata.units import printable

LOCK_VARIABLE: Final = "PGSTRATA_LOCK"
"""Names another file: whoever measures twice at a time on one host has to say so."""

_FOLDER: Final = "/run/lock"
_NAME: Final = "pgstrata.lock"
_PATIENCE: Final = 5.0
_LONG_PATIENCE: Final = 60.0
"""For a process on the host to take the lock, on a busy machine too; another user can make it wait for ever."""
_POLL: Final = 0.01


class HostHeldError(HostNotFitError):
    """Another pgstrata is at work on the host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLock:
    """Held until `release`; the kernel releases it too when pgstrata dies."""

    path: str
    process: Process

    def release(self) -> None:
        """Give the host free; nothing happens the second time."""
        self.process.signal(StopSignal.KILL)
        with suppress(TimeoutError):  # it was killed: the kernel sees to the rest
            self.process.wait(_PATIENCE)


def find_lock_file(host: Host, state: str) -> str:
    """The file of a host's lock: in /run/lock where everybody may write there, else in the state folder."""
    mode = host.run(Command(argv=("stat", "-c", "%a", _FOLDER)), check=False).text.strip()
    return f"{_FOLDER}/{_NAME}" if mode[-1:] in set("2367") else f"{state}/{_NAME}"


def hold_host(host: Host, path: str, study: str, clock: Clock) -> HostLock:
    """Take the lock of a host.

    Args:
        host: a transport as the user of pgstrata.
        path: the file of the lock.
        study: what the host is taken for, for the one who comes second.
        clock: the time, and waiting for a killed pgstrata that is just ending.

    Raises:
        HostHeldError: another pgstrata is at work.
        HostNotFitError: the file cannot be used, or flock is missing.
    """
    identity = _render_identity(observe_owner(host, study), moment(clock.wall()).isoformat(timespec="seconds"))
    deadline = clock.monotonic() + _PATIENCE
    while True:
        process = host.spawn(
            Command(argv=commands.hold_lock(path, identity).argv),
            stdout="/dev/null",
            stderr="/dev/null",
            on_parent_death=StopSignal.KILL,
        )
        code = _await(host, process, path, identity, clock)
        if code is None:
            return HostLock(path=path, process=process)
        holder = _read(host, path)
        if code != commands.LOCK_TAKEN:
            raise _unusable(path, code)
        # one that was killed this moment gives the lock free in the next
        alive = _alive(host, holder)
        if alive or clock.monotonic() > deadline:
            raise _held(host, path, holder, alive=alive)
        clock.sleep(_POLL)


def _await(host: Host, process: Process, path: str, identity: str, clock: Clock) -> int | None:
    """None when the lock is held, or the exit code of who could not take it (LOCK_UNUSABLE: nor in time)."""
    deadline = clock.monotonic() + _LONG_PATIENCE
    while True:
        if _read(host, path) == identity:
            return None
        if (ending := process.poll()) is not None:
            return ending.code
        if clock.monotonic() > deadline:
            process.signal(StopSignal.KILL)
            return commands.LOCK_UNUSABLE
        clock.sleep(_POLL)


def _read(host: Host, path: str) -> str:
    # not by `Host.read`: in a folder that everybody may write to, it could be a pipe, whose reader waits for ever
    return host.run(Command(argv=commands.read_lock(path, _PATIENCE)), check=False).text


def _render_identity(owner: ChangeOwner, since: str) -> str:
    return json.dumps({**asdict(owner), "since": since, "nonce": secrets.token_hex(8)})


def _parse_identity(text: str) -> dict[str, Any]:
    try:
        fields = parse_json(text.encode())
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _alive(host: Host, holder: str) -> bool:
    fields = _parse_identity(holder)
    pid = fields.get("pid")
    return isinstance(pid, int) and start_times(host, (pid,)).get(pid) == fields.get("started")


def _held(host: Host, path: str, holder: str, *, alive: bool) -> HostHeldError:
    who = _render_holder(_parse_identity(holder))
    if not (alive and who):
        # whoever may read the file can hold its lock without a word
        last = f"; the last that did, {who}, has ended or cannot be seen" if who else ""
        who = f"its process is not known, `fuser {path}` names it{last}"
    return HostHeldError(
        f"another pgstrata is at work on this host ({who})",
        where=f"{host.name}: {path}",
        remedy="wait for it or stop it: two at a time would disturb each other; to run both anyway, give one of "
        f"them another lock ({LOCK_VARIABLE}=FILE)",
    )


def _render_holder(fields: Mapping[str, Any]) -> str:
    pid, said = fields.get("pid"), [fields.get(name) for name in ("user", "study", "since")]
    if not isinstance(pid, int) or not all(isinstance(text, str) for text in said):
        return ""
    user, study, since = said
    return printable(f"process {pid} of {user}, {study}, since {since}")


def _unusable(path: str, code: int) -> HostNotFitError:
    if code == commands.NO_FLOCK:
        return HostNotFitError("the program flock is missing", remedy="install the package util-linux")
    return HostNotFitError(
        f"the lock of this host cannot be used (exit code {code})",
        where=path,
        remedy=f"it has to be a file that you may read and write; {LOCK_VARIABLE}=FILE names another one",
    )
