"""The server's processes over the seconds of a run, by kind, and the client's. Pure."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.collectors.procfs.samples import HostSample, ProcessSample
from pgstrata.collectors.sessions.parse import SessionSample
from pgstrata.ports.collector import Window

Values = Mapping[str, float]
_SESSIONS: Final = "sessions_cpu"
_OTHERS: Final = "other_server_cpu"
_CLIENT: Final = "client_cpu_course"
_KINDS: Final[Mapping[str, str]] = {
    "checkpointer": "checkpointer_cpu",
    "wal writer": "walwriter_cpu",
    "walwriter": "walwriter_cpu",
    "background writer": "bgwriter_cpu",
    "writer": "bgwriter_cpu",
    "autovacuum launcher": "autovacuum_cpu",
    "autovacuum worker": "autovacuum_cpu",
    "io worker": "io_workers_cpu",
    "parallel worker": "parallel_cpu",
    "bgworker: parallel worker": "parallel_cpu",
}
# postgres: [CLUSTER: ]KIND [process] ...; "wal writer" is "walwriter" from 10 on, "writer" was the background writer
_TITLE: Final = re.compile(
    rf"postgres: (?:[^\[\]]*?: )?(?P<kind>{'|'.join(sorted(_KINDS, key=len, reverse=True))})(?: process)?(?: |$)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """Which process is of which kind, by the name of its series."""

    known: Mapping[int, str]
    postmaster: int | None
    transports: Collection[int]
    driver: str

    def of(self, process: ProcessSample) -> str | None:
        """None for processes that are neither the server's nor the client."""
        if process.parent in self.transports:
            return _CLIENT if process.name == self.driver else None
        if self.postmaster is None or self.postmaster not in {process.pid, process.parent}:
            return None
        return self.known.get(process.pid, _OTHERS)


def tell_kinds(titles: Mapping[int, str], sessions: Iterable[SessionSample], window: Window) -> Kinds:
    """From what the server says of its processes, or else from their titles."""
    known: dict[int, str] = {}
    for pid, title in titles.items():
        if match := _TITLE.match(title):
            known[pid] = _KINDS[match["kind"]]
    for sample in sessions:
        if sample.kind in _KINDS:
            known[sample.pid] = _KINDS[sample.kind]
        elif sample.ours:
            known[sample.pid] = _SESSIONS
    return Kinds(known=known, postmaster=window.postmaster_pid, transports=window.transport_pids, driver=window.driver)


def process_rates(before: HostSample, after: HostSample, kinds: Kinds, ticks: int) -> Values:
    """CPU by kind, and bytes to and from disks of all the server's processes, in the seconds between two samples.

    A process that began in between counts from its beginning. Where one ended, its last part is not known, and so
    nothing of its kind: NaN.
    """
    seconds = after.moment - before.moment
    used: dict[str, float] = defaultdict(float)
    for process in after.processes.values():
        kind = kinds.of(process)
        if kind is None:
            continue
        earlier = before.processes.get(process.pid)
        if earlier is None or earlier.start != process.start:
            earlier = ProcessSample(pid=process.pid)
        used[kind] += max(0.0, _cpu(process, ticks) - _cpu(earlier, ticks)) / seconds
        if kind != _CLIENT:
            for name, now, then in (
                ("server_read", process.read, earlier.read),
                ("server_written", process.written, earlier.written),
            ):
                if now is not None:
                    used[name] += max(0, now - (then or 0)) / seconds
    for process in before.processes.values():
        kind = kinds.of(process)
        if kind is not None and not _is_there(process, after):
            used[kind] = math.nan
            if kind != _CLIENT:
                used["server_read"] = used["server_written"] = math.nan
    return used


def _is_there(process: ProcessSample, sample: HostSample) -> bool:
    found = sample.processes.get(process.pid)
    return found is not None and found.start == process.start


def _cpu(process: ProcessSample, ticks: int) -> float:
    """Seconds: by the scheduler's statistics, which a kernel without them says are 0; else in ticks."""
    return process.cpu or ((process.user or 0) + (process.system or 0)) / ticks
