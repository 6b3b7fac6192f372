"""Captures the kernel's counters as one text: the files of /proc under headings, then every process's stat."""

from __future__ import annotations

from typing import Final

from pgstrata.collectors.procfs.parse import parse_client, parse_window, see_clients
from pgstrata.collectors.procfs.snapshot import DEFAULT_TICKS, PROCESSES, TICKS, join_captures, render_heading
from pgstrata.errors import CommandFailedError, HostNotFitError
from pgstrata.model.metrics import Measurement
from pgstrata.ports.collector import CaptureSubject, Window
from pgstrata.ports.host import Command, Host

FILES: Final = (
    "/proc/uptime",
    "/proc/stat",
    "/proc/diskstats",
    "/proc/vmstat",
    "/proc/meminfo",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
    "/proc/loadavg",
)


class ProcfsCollector:
    """Implements `ports.Collector` for the server's host."""

    name = "procfs"
    with_clients = True

    def __init__(self) -> None:
        self._ticks: dict[str, bytes] = {}

    def capture(self, subject: CaptureSubject) -> bytes:
        return self._capture(subject.host)

    def _capture(self, host: Host) -> bytes:
        """The length of a tick is asked once of each host."""
        if host.name not in self._ticks:
            self._ticks[host.name] = observe_ticks(host)
        return capture_counters(host, self._ticks[host.name])

    def parse(self, before: bytes, after: bytes, window: Window) -> tuple[Measurement, ...]:
        return parse_window(before, after, window)


class ClientCollector(ProcfsCollector):
    """Implements `ports.Collector` and `ports.SeesClients` for the client's machines, where none is the server's."""

    name = "client.procfs"

    def capture(self, subject: CaptureSubject) -> bytes:
        return join_captures([self._capture(host) for host in subject.clients])

    def parse(self, before: bytes, after: bytes, window: Window) -> tuple[Measurement, ...]:
        return parse_client(before, after, window)

    def see_clients(self, before: bytes, after: bytes, window: Window) -> Window:
        return see_clients(before, after, window)


def capture_counters(host: Host, ticks: bytes) -> bytes:
    """The kernel's counters and all processes of a host, at this moment."""
    files = host.read_files(FILES)
    processes = host.read_matching(PROCESSES)
    sections = {TICKS: ticks, **{path: files[path] for path in FILES if path in files}, PROCESSES: processes}
    return b"".join(render_heading(name) + _closed(content) for name, content in sections.items())


def observe_ticks(host: Host) -> bytes:
    """What getconf says of the length of a tick."""
    try:
        answer = host.run(Command(argv=("getconf", "CLK_TCK")), timeout=60)
    except (CommandFailedError, HostNotFitError):
        return f"{DEFAULT_TICKS}\n".encode()
    return answer.stdout


def _closed(content: bytes) -> bytes:
    return content if content.endswith(b"\n") or not content else content + b"\n"
