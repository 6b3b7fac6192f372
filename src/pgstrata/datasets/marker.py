"""Markers: small JSON files that say which pgstrata made a folder, and whether that pgstrata is still at work."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from pgstrata.model import sizes
from pgstrata.model.codec import decode, parse_json
from pgstrata.ports.host import Host
from pgstrata.ports.processes import observe_boot, start_times

MARKER: Final = "pgstrata.marker"
_BEING_WRITTEN: Final = ".pgstrata-"  # every host writes beside, under such a name, and renames


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """One pgstrata at work on a host: its transport's process there, told apart from later ones by start time and boot.

    `machine` tells it from one in another container or on another machine that shares the folder.
    """

    pid: int
    started: int
    boot: str
    machine: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What a marked folder is: `purpose` is dataset or clone, `subject` its identity, `study` who asked for it."""

    purpose: str
    subject: str
    study: str
    owner: ProcessIdentity
    bytes: int = 0
    seconds: float = 0.0


def observe_owner(host: Host) -> ProcessIdentity:
    """This pgstrata, as the host sees it."""
    pid = host.transport_pids[0]
    return ProcessIdentity(
        pid=pid, started=_start_time(host, pid), boot=observe_boot(host), machine=observe_machine(host)
    )


def observe_machine(host: Host) -> str:
    """A text that differs between machines, and between containers of one machine."""
    paths = ("/etc/machine-id", "/proc/sys/kernel/hostname")
    return "/".join(content.decode().strip() for content in host.read_files(paths).values())


def owner_alive(host: Host, owner: ProcessIdentity) -> bool:
    """Whether that pgstrata still runs: same boot, same process id, same start time.

    One of another machine cannot be asked from here, and so is taken to be alive.
    """
    if owner.machine and owner.machine != observe_machine(host):
        return True
    return owner.boot == observe_boot(host) and _start_time(host, owner.pid) == owner.started


def save_marker(host: Host, folder: str, marker: Marker) -> None:
    """Mark a folder."""
    host.write(f"{folder}/{MARKER}", json.dumps({"program": "pgstrata", **asdict(marker)}, indent=1).encode())


def load_marker(host: Host, folder: str) -> Marker | None:
    """The marker of a folder; None if there is none or it is not pgstrata's."""
    path = f"{folder}/{MARKER}"
    content = host.read_files((path,)).get(path)
    if content is None or len(content) > sizes.MARKER:
        return None
    try:
        fields = parse_json(content)
        if not isinstance(fields, dict) or fields.pop("program") != "pgstrata":
            return None
        return decode(Marker, fields)
    except (ValueError, TypeError, KeyError):
        return None


def holds_nothing(host: Host, folder: str) -> bool:
    """Whether a folder is empty, but for a marker that was just being written: then there is nothing to lose in it."""
    return all(name.startswith(_BEING_WRITTEN) for name in host.list_folder(folder))


def remove_marked(host: Host, folder: str) -> None:
    """Remove a folder, its marker last: whoever is killed half-way leaves one that can still be recognised."""
    for name in host.list_folder(folder):
        if name != MARKER:
            host.remove_tree(f"{folder}/{name}")
    host.remove_tree(folder)


def sum_datasets(host: Host, root: str) -> int:
    """Bytes of all finished datasets below a root."""
    folders = (f"{root}/datasets/{name}" for name in host.list_folder(f"{root}/datasets"))
    markers = (load_marker(host, folder) for folder in folders)
    return sum(marker.bytes for marker in markers if marker is not None)


def _start_time(host: Host, pid: int) -> int:
    return int(start_times(host, (pid,)).get(pid, -1))
