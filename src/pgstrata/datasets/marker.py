"""Markers: small JSON files that say which pgstrata made a folder, and whether that pgstrata is still at work.

What a killed one left behind: servers are found by marker and data directory and stopped by id, folders are removed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from pgstrata.model import sizes
from pgstrata.model.codec import decode, parse_json
from pgstrata.ports.host import Clock, Command, Host, StopSignal, observe_boot, start_times

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


_PATIENCE: Final = 30.0
_POLL: Final = 0.05


def sweep_leftovers(host: Host, clock: Clock, root: str) -> tuple[str, ...]:
    """Stop and remove what no living pgstrata owns below `root`.

    Returns a sentence for each thing that was swept, and for each that was left alone for want of a marker.
    """
    said = []
    for study in host.list_folder(f"{root}/clones"):
        together = f"{root}/clones/{study}"
        swept = [text for name in host.list_folder(together) for text in _sweep(host, clock, f"{together}/{name}")]
        if swept and not host.list_folder(together):
            host.run(Command(argv=("rmdir", "--", together)), check=False)
        said += swept
    for name in host.list_folder(f"{root}/datasets"):
        folder = f"{root}/datasets/{name}"
        said += _sweep(host, clock, folder) if name.endswith(".partial") else _notice_foreign(host, folder)
    return tuple(said)


def _sweep(host: Host, clock: Clock, folder: str) -> list[str]:
    marker = load_marker(host, folder)
    if marker is None:
        return _notice_foreign(host, folder)
    if owner_alive(host, marker.owner):
        return []
    running = _postmaster(host, f"{folder}/data")
    if running is not None and not _stop_server(host, clock, f"{folder}/data"):
        return [f"process {running}, a server of a killed pgstrata, cannot be stopped; left alone: {folder}"]
    remove_marked(host, folder)
    did = "removed" if running is None else "stopped the server and removed"
    return [f"{did} what a killed pgstrata left: {folder}"]


def mark_scratch(host: Host, folder: str, study: str) -> None:
    """Mark a folder that goes away with this pgstrata."""
    save_marker(host, folder, Marker(purpose="scratch", subject=folder, study=study, owner=observe_owner(host)))


def sweep_scratch(host: Host, root: str) -> None:
    """Remove marked folders below `root` whose pgstrata is gone: logs in memory, sockets."""
    for name in host.list_folder(root):
        marker = load_marker(host, f"{root}/{name}")
        if marker is not None and not owner_alive(host, marker.owner):
            remove_marked(host, f"{root}/{name}")


def _notice_foreign(host: Host, folder: str) -> list[str]:
    if load_marker(host, folder) is not None or holds_nothing(host, folder):
        return []
    return [f"left alone, because it has no {MARKER}: {folder}"]


def _stop_server(host: Host, clock: Clock, data: str) -> bool:
    """Whether it has ended after increasingly strong signals."""
    pid = _postmaster(host, data)
    if pid is None:
        return True
    host.signal_pid(pid, StopSignal.CONT)  # one that somebody stopped would heed only KILL
    for signal in (StopSignal.INT, StopSignal.QUIT, StopSignal.KILL):
        host.signal_pid(pid, signal)
        deadline = clock.monotonic() + _PATIENCE
        while clock.monotonic() < deadline:
            if _postmaster(host, data) is None:
                return True
            clock.sleep(_POLL)
    return False


def _postmaster(host: Host, data: str) -> int | None:
    """The living process that serves exactly this data directory, or None: a reused process id does not count."""
    pid_file = f"{data}/postmaster.pid"
    lines = host.read_files((pid_file,)).get(pid_file, b"").split(b"\n")
    if not lines[0].isdigit():
        return None
    pid = int(lines[0])
    command_line = f"/proc/{pid}/cmdline"
    words = host.read_files((command_line,)).get(command_line, b"").split(b"\0")
    return pid if data.encode() in words else None
