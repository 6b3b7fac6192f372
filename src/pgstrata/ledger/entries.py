"""Entries as files: one JSON file each, in a folder of the host, on disk before anything is changed.

A file appears whole or not at all: it is written aside, forced to disk, and only then gets its name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from pgstrata.errors import CommandFailedError, DiskFullError, PgstrataError, find_disk_full
from pgstrata.model.changes import Entry, HostState, Owner, Script
from pgstrata.ports.host import Command, Completed, Host

_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_START_TIME_FIELD: Final = 19  # field 22 of /proc/PID/stat, counted from the state that follows the name (proc(5))
_FORMAT: Final = 1
_SUFFIX: Final = ".json"
_ASIDE: Final = ".new"
_NUMBER_TAKEN: Final = 17
_LINES_SHOWN: Final = 5

# The content comes through a pipe, which ends early if its writer is killed: hence the look at its size. A new entry
# is linked to its name, which fails where there is such an entry; a later version of it replaces it.
_WRITE: Final = f"""
umask 077
if cat >"$2" && [ "$(wc -c <"$2")" -eq "$4" ] && sync -- "$2"; then
    case $5 in
        new)
            [ ! -e "$1" ] || {{ rm -f -- "$2"; exit {_NUMBER_TAKEN}; }}
            ln -T -- "$2" "$1" && sync -- "$3" && rm -f -- "$2" && exit 0
            ;;
        *) mv -fT -- "$2" "$1" && exit 0 ;;
    esac
fi
rm -f -- "$2"
exit 1
"""
_REMOVE: Final = 'rm -f -- "$1" && sync -- "$2"'


def write_ahead(host: Host, folder: str, entry: Entry) -> bool:
    """Put a new entry on disk; False if its number is taken. DiskFullError, CommandFailedError: it is not there."""
    done = _write(host, folder, entry, "new")
    if done.code == _NUMBER_TAKEN:
        return False
    _raise_if_failed(done, path_of(folder, entry))
    return True


def rewrite(host: Host, folder: str, entry: Entry) -> None:
    """Replace an entry by its later version. DiskFullError, CommandFailedError: the earlier one is still there."""
    _raise_if_failed(_write(host, folder, entry, "again"), path_of(folder, entry))


def remove(host: Host, folder: str, entry: Entry) -> None:
    """Close an entry."""
    path = path_of(folder, entry)
    _raise_if_failed(host.run(Command(argv=("sh", "-c", _REMOVE, "sh", path, folder)), check=False), path)


def path_of(folder: str, entry: Entry) -> str:
    """The file of an entry."""
    return f"{folder}/{entry.number:08d}{_SUFFIX}"


def _write(host: Host, folder: str, entry: Entry, way: str) -> Completed:
    content = render_entry(entry).encode()
    aside = f"{folder}/.{entry.number:08d}-{entry.owner.pid}{_ASIDE}"
    words = (path_of(folder, entry), aside, folder, str(len(content)), way)
    return host.run(Command(argv=("sh", "-c", _WRITE, "sh", *words), stdin=content), check=False)


def _raise_if_failed(done: Completed, path: str) -> None:
    if not done.code:
        return
    said = done.stderr.decode("utf-8", "replace")
    if full := find_disk_full(said):
        raise DiskFullError(
            "the file system is full: the ledger of this host cannot be kept", where=path, details=(full,),
            remedy="free space there, or choose another state folder with PGSTRATA_STATE",
        )  # fmt: skip
    raise CommandFailedError(
        "the ledger of this host cannot be written", where=path, details=tuple(said.splitlines()[-_LINES_SHOWN:]),
        remedy="check that its folder is there, writable, and on a file system with hard links",
    )  # fmt: skip


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
        fields = json.loads(content)
        if (fields.pop("program"), fields.pop("format")) != ("pgstrata", _FORMAT):
            raise ValueError("another format")
        del fields["undo_by_hand"]
        entry = Entry(
            **{
                **fields,
                "read": _parse_script(fields["read"]),
                "undo": _parse_script(fields["undo"]),
                "owner": Owner(**fields["owner"]),
                "made": datetime.fromisoformat(fields["made"]),
            }
        )
    except (KeyError, TypeError, AttributeError, UnicodeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if not isinstance(entry.number, int) or not all(isinstance(text, str) for text in (entry.what, entry.before)):
        raise ValueError("fields have other types")
    return entry


def _parse_script(fields: Mapping[str, Any]) -> Script:
    return Script(text=fields["text"], arguments=tuple(fields["arguments"]))


def latest_number(host: Host, folder: str) -> int:
    """The highest number of an entry, 0 if there are none."""
    numbers = (name.removesuffix(_SUFFIX) for name in host.list_folder(folder))
    return max((int(number) for number in numbers if number.isdecimal()), default=0)


def sweep_aside(host: Host, folder: str) -> None:
    """Remove what a killed pgstrata was about to write; nobody else may be at work."""
    for name in host.list_folder(folder):
        if name.startswith(".") and name.endswith(_ASIDE):
            host.remove_tree(f"{folder}/{name}")


def host_state(host: Host, folder: str) -> HostState:
    """What is changed on a host, by the ledger in `folder`."""
    names = host.list_folder(folder)
    paths = [f"{folder}/{name}" for name in names if name.endswith(_SUFFIX) and not name.startswith(".")]
    contents = host.read_files((_BOOT_ID, *paths))
    entries: list[Entry] = []
    unreadable: list[str] = []
    for path in paths:
        entry = _entry_of(folder, path, contents.get(path, b""))
        if entry is not None:
            entries.append(entry)
        elif path in contents or host.exists(path):  # or a living pgstrata has just closed it
            unreadable.append(path)
    boot_id = contents.get(_BOOT_ID, b"").decode().strip()
    entries.sort(key=lambda entry: entry.number)
    return HostState(
        host=host.name,
        boot_id=boot_id,
        entries=tuple(entries),
        in_use=_in_use(host, boot_id, entries),
        unreadable=tuple(unreadable),
    )


def _entry_of(folder: str, path: str, content: bytes) -> Entry | None:
    try:
        entry = parse_entry(content)
    except ValueError:
        return None
    return entry if path == path_of(folder, entry) else None


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


def start_times(host: Host, pids: Sequence[int]) -> Mapping[int, str]:
    """When processes started, in ticks since boot, by id; those that have ended are left out."""
    paths = {f"/proc/{pid}/stat": pid for pid in pids}
    found: dict[int, str] = {}
    for path, content in host.read_files(tuple(paths)).items():
        fields = content.decode("utf-8", "replace").rpartition(")")[2].split()
        if len(fields) > _START_TIME_FIELD and fields[0] not in ("Z", "X"):
            found[paths[path]] = fields[_START_TIME_FIELD]
    return found


def observe_boot(host: Host) -> str:
    """The id of the boot that a host runs."""
    return host.read(_BOOT_ID).decode().strip()


def observe_owner(host: Host, study: str) -> Owner:
    """This pgstrata, as the host sees it."""
    pid = host.door_pids[0]
    started = start_times(host, (pid,)).get(pid)
    if started is None:
        raise PgstrataError(f"process {pid} of pgstrata itself cannot be seen", where=f"{host.name}: /proc",
                            remedy="mount /proc without hidepid for this user")  # fmt: skip
    return Owner(boot_id=observe_boot(host), pid=pid, started=started, user=host.user, study=study)


def moment(wall: float) -> datetime:
    """A moment of a clock, with its zone."""
    return datetime.fromtimestamp(wall, UTC)
