"""Entries as files: one JSON file each, in a folder of the host, on disk before anything is changed.

They are written with the privilege that the changes need and can be read by everybody: whoever may not change the host
cannot put an undo there that root would carry out, and whoever measures on the host sees what is changed.

A file appears whole or not at all: it is written aside, forced to disk, and only then gets its name. It is never
written again, so that nothing can damage the undo in it; what becomes known later is a note beside it, without which
the entry is as good as it was before. Beside it lies a lock, which nobody but the ledger's owner can open.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from pgstrata.errors import CommandFailedError, DiskFullError, HostNotFitError, PgstrataError, find_disk_full
from pgstrata.model.changes import ChangeOwner, Entry, HostState, ShellScript
from pgstrata.model.codec import parse_json
from pgstrata.ports.host import BOOT_ID, Command, Completed, Host, observe_boot, start_times
from pgstrata.system import commands
from pgstrata.system.trust import ROOT, find_keeper

_FORMAT: Final = 1
_SUFFIX: Final = ".json"
_NOTE: Final = ".note"
_LINES_SHOWN: Final = 5
_MOST_BYTES: Final = 1 << 20
_WRITABLE: Final = 0o022


def own_commands(folder: str) -> tuple[tuple[str, ...], ...]:
    """What is done with privilege for the ledger itself: its folder, an entry, a note, their removal; as examples."""
    number = f"{folder}/{0:08d}"
    return (
        commands.make_ledger(folder).argv,
        commands.put_entry(f"{number}{_SUFFIX}", f"{folder}/.{0:08d}-{0:016x}.new", 0).argv,
        commands.put_note(f"{number}{_NOTE}").argv,
        commands.await_rest(f"{number}{_SUFFIX}", 0).argv,
        commands.remove_files(f"{number}{_NOTE}", commands.lock_of(f"{number}{_SUFFIX}"), f"{number}{_SUFFIX}").argv,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFiles:
    """The files of a ledger in a folder of a host; `privilege` are words in front of what changes them."""

    host: Host
    privilege: tuple[str, ...]
    folder: str

    def make_folder(self) -> None:
        """Make the folder, readable for everybody on the host; nothing happens if it is there.

        HostNotFitError: a user other than root and this one could replace it.
        """
        above = self.folder
        while not self.host.exists(above):
            above = above.rpartition("/")[0] or "/"
        _check_keeper(self.host, above, adding=above != self.folder)
        done = self.run(commands.make_ledger(self.folder), check=False)
        if done.code:
            raise _not_written(self.folder, done.complaints)
        _check_keeper(self.host, self.folder)

    def write_ahead(self, entry: Entry) -> bool:
        """Put a new entry on disk; False if its number is taken.

        DiskFullError, PgstrataError: it is not on disk, or not for sure; where even that failed, its file is there.
        """
        aside = f"{self.folder}/.{entry.number:08d}-{secrets.token_hex(8)}.new"
        content = render_entry(entry).encode()
        done = self.run(commands.put_entry(self.path(entry), aside, len(content)), content, check=False)
        if done.code == commands.NUMBER_TAKEN:
            return False
        if done.code:
            raise _not_written(self.folder, done.complaints)
        return True

    def save_note(self, entry: Entry) -> None:
        """Keep what became known of an entry; nothing depends on it, so a full disk is no failure."""
        note = {"made": entry.made.isoformat(), "after": entry.after, "failure": entry.failure}
        with suppress(PgstrataError):
            self.run(commands.put_note(_note_of(self.folder, entry)), json.dumps(note).encode(), check=False)

    def remove_note(self, entry: Entry) -> None:
        """From here on it is not known in which state the thing is."""
        self.run(commands.remove_files(_note_of(self.folder, entry)))

    def remove(self, entry: Entry) -> None:
        """Close an entry, or do nothing if it is closed; for good only after `sync`."""
        # the entry last: another one with that number must not find what lies beside it
        path = self.path(entry)
        self.run(commands.remove_files(_note_of(self.folder, entry), commands.lock_of(path), path))

    def sync(self) -> None:
        """Force to disk which entries there are."""
        script = ShellScript(text='sync -- "$1"', arguments=(self.folder,))
        self.host.run(Command(argv=script.argv), check=False)

    def path(self, entry: Entry) -> str:
        """The file of an entry."""
        return path_of(self.folder, entry)

    def latest_number(self) -> int:
        """The highest number of an entry, 0 if there are none."""
        numbers = (name.removesuffix(_SUFFIX) for name in self.host.list_folder(self.folder))
        return max((int(number) for number in numbers if number.isdecimal()), default=0)

    def sweep_aside(self) -> None:
        """Remove what a killed pgstrata was about to write; nobody else may be at work."""
        torn = [f"{self.folder}/{name}" for name in self.host.list_folder(self.folder) if name.startswith(".")]
        if torn:
            # who may not change the host is told so by the entries; the torn file is no entry and does no harm
            self.run(commands.remove_files(*torn), check=False)

    def run(self, script: ShellScript, stdin: bytes = b"", *, check: bool = True, timeout: float = 600.0) -> Completed:
        """Run a script that changes something."""
        command = Command(argv=(*self.privilege, *script.argv), stdin=stdin)
        return self.host.run(command, check=check, timeout=timeout)


def _not_written(folder: str, said: str) -> PgstrataError:
    if find_disk_full(said):
        return DiskFullError(
            "the file system is full: the ledger of this host cannot be kept", where=folder, remedy="free space there"
        )
    return CommandFailedError(
        "the ledger of this host cannot be written",
        where=folder,
        details=tuple(said.splitlines()[-_LINES_SHOWN:]),
        remedy="check that the folder exists and that the user who changes the host may write there",
    )


def _note_of(folder: str, entry: Entry) -> str:
    return f"{folder}/{entry.number:08d}{_NOTE}"


def path_of(folder: str, entry: Entry) -> str:
    """The file of an entry."""
    return f"{folder}/{entry.number:08d}{_SUFFIX}"


def render_entry(entry: Entry) -> str:
    """An entry as JSON; `undo_by_hand` is for people alone."""
    fields = {
        "program": "pgstrata",
        "format": _FORMAT,
        **asdict(entry),
        "made": entry.made.isoformat(),
        "undo_by_hand": entry.undo.render(),
    }
    return json.dumps(fields, indent=1) + "\n"


def parse_entry(content: bytes) -> Entry:
    """The entry of a file; ValueError where it is none."""
    try:
        fields = parse_json(content)
        if (fields.pop("program"), fields.pop("format")) != ("pgstrata", _FORMAT):
            raise ValueError("another format")
        del fields["undo_by_hand"]
        entry = Entry(
            **{
                **fields,
                "read": _parse_script(fields["read"]),
                "undo": _parse_script(fields["undo"]),
                "owner": ChangeOwner(**fields["owner"]),
                "made": datetime.fromisoformat(fields["made"]),
            }
        )
    except (KeyError, TypeError, AttributeError, UnicodeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if not isinstance(entry.number, int) or not all(isinstance(text, str) for text in (entry.what, entry.before)):
        raise ValueError("fields have other types")
    return entry


def _parse_script(fields: Mapping[str, Any]) -> ShellScript:
    return ShellScript(text=fields["text"], arguments=tuple(fields["arguments"]))


def host_state(host: Host, folder: str) -> HostState:
    """What is changed on a host, by the ledger in `folder`.

    Raises:
        HostNotFitError: a user other than root and this one could have written it; none of its commands may be run.
    """
    if host.exists(folder):
        _check_keeper(host, folder)
    names = host.list_folder(folder)
    paths = [f"{folder}/{name}" for name in names if name.endswith(_SUFFIX) and not name.startswith(".")]
    notes = [f"{folder}/{name}" for name in names if name.endswith(_NOTE) and not name.startswith(".")]
    _check_files(host, (*paths, *notes))
    contents = host.read_files((BOOT_ID, *paths, *notes))
    entries: list[Entry] = []
    unreadable: list[str] = []
    for path in paths:
        note = contents.get(path.removesuffix(_SUFFIX) + _NOTE, b"")
        entry = _entry_of(folder, path, contents.get(path, b""), note)
        if entry is not None:
            entries.append(entry)
        elif path in contents or host.exists(path):  # or a living pgstrata has just closed it
            unreadable.append(path)
    boot_id = contents.get(BOOT_ID, b"").decode().strip()
    entries.sort(key=lambda entry: entry.number)
    return HostState(
        host=host.name,
        boot_id=boot_id,
        entries=tuple(entries),
        in_use=_in_use(host, boot_id, entries),
        unreadable=tuple(unreadable),
    )


def _check_keeper(host: Host, folder: str, *, adding: bool = False) -> None:
    keeper = find_keeper(host, folder, adding=adding)
    if keeper not in {ROOT, host.user}:
        raise HostNotFitError(
            f"the user {keeper} could change the ledger of this host, so none of its commands is run",
            where=f"{host.name}: {folder}",
            remedy="read the commands in its .json files and remove those that are not yours; then make root the owner "
            "of the folder and of those above it",
        )


def _check_files(host: Host, paths: Sequence[str]) -> None:
    """HostNotFitError where a file of the ledger is none of ours; those that have just been removed are left out."""
    if not paths:
        return
    fields = iter(host.run(Command(argv=commands.examine(*paths)), check=False).text.split("\0"))
    for path, owner, mode, size, kind in zip(fields, fields, fields, fields, fields, strict=False):
        wrong = [
            *([f"belongs to {owner}"] if owner not in {ROOT, host.user} else []),
            *(["can be changed by other users"] if int(mode, 8) & _WRITABLE else []),
            *([f"is a {kind}"] if not kind.startswith("regular") else []),
            *([f"is larger than {_MOST_BYTES >> 20} MiB"] if int(size) > _MOST_BYTES else []),
        ]
        if wrong:
            raise HostNotFitError(
                f"a file in the ledger of this host {' and '.join(wrong)}, so none of the ledger's commands is run",
                where=f"{host.name}: {path}",
                remedy=f"read the file; remove it, or give it to root with mode 644 if it is {host.user}'s own",
            )


def _entry_of(folder: str, path: str, content: bytes, note: bytes) -> Entry | None:
    try:
        entry = parse_entry(content)
    except ValueError:
        return None
    return _with_note(entry, note) if path == path_of(folder, entry) else None


def _with_note(entry: Entry, note: bytes) -> Entry:
    """A note that is damaged, or of another entry that had this number, says nothing."""
    try:
        fields = parse_json(note)
        if fields["made"] != entry.made.isoformat():
            return entry
        after, failure = fields["after"], fields["failure"]
    except (ValueError, TypeError, KeyError):
        return entry
    if not isinstance(after, str | None) or not isinstance(failure, str):
        return entry
    return replace(entry, after=after, failure=failure)


def _in_use(host: Host, boot_id: str, entries: Sequence[Entry]) -> frozenset[int]:
    """Numbers of entries whose owner lives: same boot, same process id, same start time."""
    owners = {entry.owner.pid: "" for entry in entries if entry.owner.boot_id == boot_id}
    if not owners:
        return frozenset()
    started = start_times(host, tuple(owners))
    return frozenset(
        entry.number
        for entry in entries
        if entry.owner.boot_id == boot_id and started.get(entry.owner.pid) == entry.owner.started
    )


def observe_owner(host: Host, study: str) -> ChangeOwner:
    """This pgstrata, as the host sees it."""
    pid = host.transport_pids[0]
    started = start_times(host, (pid,)).get(pid)
    if started is None:
        raise PgstrataError(
            f"process {pid} of pgstrata itself cannot be seen",
            where=f"{host.name}: /proc",
            remedy="mount /proc without hidepid for this user",
        )
    return ChangeOwner(boot_id=observe_boot(host), pid=pid, started=started, user=host.user, study=study)


def moment(wall: float) -> datetime:
    """A moment of a clock, with its zone."""
    return datetime.fromtimestamp(wall, UTC)
