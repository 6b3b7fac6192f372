"""What is changed on a host, and how it is undone: values that a ledger writes down before anything happens."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pgstrata.units import shorten

LOCAL: Final = "local"
"""The name of the transport to this machine."""
_LONGEST: Final = 80
_SHELL: Final = "/bin/sh"
_PATH: Final = "PATH=/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin; export PATH\n"
"""Folders to which root alone writes, whatever the path of who calls says; an ordinary user has not all in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellScript:
    """Text for `sh -c`, with positional arguments ($1, $2, …): values never become part of the text.

    Its programs, and the shell itself, are those of the system: what root runs is found in no other folder.
    """

    text: str
    arguments: tuple[str, ...] = ()

    def with_argument(self, argument: str) -> ShellScript:
        """The same with one more argument at the end."""
        return ShellScript(text=self.text, arguments=(*self.arguments, argument))

    @property
    def argv(self) -> tuple[str, ...]:
        """The command."""
        return (_SHELL, "-c", _PATH + self.text, "sh", *self.arguments)

    def render(self) -> str:
        """One line that a person can give to a shell."""
        return shlex.join(self.argv)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing of a host that is to be different for a while.

    `what` names the thing, for people, and is the same for every change of it ("sysctl vm.swappiness", "cgroup
    /sys/fs/cgroup/cpu/pgstrata-1a2b"); `value` what it is to be ("10"). `read` prints the present state and changes
    nothing; it prints nothing where the thing does not exist. `do` makes the change. `undo` brings back the former
    state, which is given to it as its last argument, as `read` printed it (stripped); it must do no harm where the
    change never happened or was undone already. `lasting` is what survives a reboot, such as a file. `timeout`
    is how long `do` may take, in seconds.
    """

    what: str
    value: str
    read: ShellScript
    do: ShellScript
    undo: ShellScript
    lasting: bool = False
    timeout: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOwner:
    """Who made a change: a process of a boot (ids are reused, so with its start), its user and the study."""

    boot_id: str
    pid: int
    started: str
    user: str
    study: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of the ledger: a change, written down before it was made.

    `number` orders entries on one host; `before` is the state before the change as `read` printed it, `after` the state
    in which pgstrata left it, None as long as that is not known: while it is being changed or undone, and so after a
    kill in between. `undo` has its former state already. `failure` is what went wrong when undoing was last tried.
    """

    number: int
    what: str
    value: str
    before: str
    after: str | None
    read: ShellScript
    undo: ShellScript
    lasting: bool
    owner: ChangeOwner
    made: datetime
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """What `host status` says: entries that are open, oldest first, and which of them a living pgstrata still needs.

    `unreadable` are files of the ledger that are no entries (any more): what they stood for is not known.
    """

    host: str
    boot_id: str
    entries: tuple[Entry, ...] = ()
    in_use: frozenset[int] = field(default_factory=frozenset)
    unreadable: tuple[str, ...] = ()

    @property
    def dirty(self) -> tuple[Entry, ...]:
        """Entries that nobody will undo any more unless `host restore` does."""
        return tuple(entry for entry in self.entries if entry.number not in self.in_use)

    @property
    def clean(self) -> bool:
        """Whether nothing is left to be restored."""
        return not self.dirty and not self.unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """An entry that is closed: undone, or found reset by a reboot; `note` says what was seen where that matters."""

    entry: Entry
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What came of undoing: entries that are closed, latest first, and those that are kept, each with its `failure`."""

    closed: tuple[Closed, ...] = ()
    kept: tuple[Entry, ...] = ()


def restore_command(host: str, verb: str = "restore") -> str:
    """The command that restores a host, or shows its changes; `host` is the name of its transport."""
    return f"pgstrata host {verb}" + ("" if host == LOCAL else f" --host {shlex.quote(host)}")


def render_state(state: str) -> str:
    """A state of a thing for a sentence: one line of at most 80 characters."""
    return shorten(" ".join(state.split()), _LONGEST) or "nothing"
