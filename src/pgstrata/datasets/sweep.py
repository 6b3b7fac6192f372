"""What a killed pgstrata left behind: servers found by marker and data directory, stopped by id, folders removed."""

from __future__ import annotations

from typing import Final

from pgstrata.datasets.marker import (
    MARKER,
    Marker,
    holds_nothing,
    load_marker,
    observe_owner,
    owner_alive,
    remove_marked,
    save_marker,
)
from pgstrata.ports.host import Clock, Command, Host, StopSignal

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
