"""Two captures of /proc as measurements of the window between them. Pure.

Times are in ticks of 10 ms, truncated per process: a figure of CPU per transaction is off by up to two ticks for each
living process of the server. Rates are over the difference of the two uptimes, which is what the counters cover.

The client's CPU time is subtracted from that of the machine on which it runs: the server's, unless it is apart. Two
hosts with one kernel are one machine: the capture of the server's host then tells of both. What a client that lives
through the window used is in the capture of its own host.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final

from pgstrata.collectors.procfs.snapshot import (
    RESOURCES,
    SECTOR,
    ProcessTime,
    Snapshot,
    parse_snapshot,
    split_captures,
)
from pgstrata.model.metrics import BACKGROUND_LOAD, Measurement
from pgstrata.model.shared import SharedResources
from pgstrata.ports.collector import Window

MICROSECOND: Final = 1e-6
_SECTORS: Final = (2, 6)
"""Places of those that were read and written among the counters of a disk."""

_BUSY: Final = ("cpu.user", "cpu.nice", "cpu.system", "cpu.irq", "cpu.softirq")
"""Guests are part of the first two."""
_KERNEL_THREADS: Final = 2
"""kthreadd, the parent of all threads of the kernel."""


def parse_window(before: bytes, after: bytes, window: Window) -> tuple[Measurement, ...]:
    """Measurements of the window between two captures; counters that are missing or went backwards give none.

    - `server_cpu`: CPU time of the postmaster's process tree, see `tree_ticks`. In slices, `server_cpu` and
      `client_cpu` are over the environment's own turns.
    - `observer_cpu`: own time of pgstrata's processes; that of their children is left out, because a client that they
      have waited for is among them. Samplers with all that they start, and the servers' processes that answer them,
      count too, and not as the server's.
    - `foreign_cpu`: the larger of two: busy time of the host without server, client and observer, which the kernel
      samples by ticks and gets too low where processes sleep often; and the time of all other processes, which is
      exact but without interrupts and the kernel's own threads.
    - `neighbour_share`: the second of these alone, as a share of all CPUs; an environment cannot raise it by work that
      the kernel does for it.
    - `client_share`: client / (client + server).
    - `steal_cpu` stands apart from busy time; guests are part of it.
    - `context_switches_per_tx`, `page_faults_per_tx`, `pages_swapped_in`, `disk_read`, `disk_written`: of the whole
      host, not of the server alone. Disks are whole physical devices.
    - `pressure_*`: share of the window in which some task waited for the resource (PSI, total of "some").

    Raises:
        ParseError: a capture has an unknown shape.
    """
    first, last = parse_snapshot(before), parse_snapshot(after)
    if window.shared is SharedResources.PROCESSES:
        window = replace(
            window,
            transport_pids=tuple({*window.transport_pids, *window.client_transport_pids}),
            sampler_pids=tuple({*window.sampler_pids, *window.client_sampler_pids}),
            resident_pids=tuple({*window.resident_pids, *window.client_resident_pids}),
        )
    seconds = _elapsed(first, last, window)
    if seconds <= 0:
        return ()
    values = (
        *_cpu_values(first, last, window, seconds),
        *_host_values(first, last, window),
        *_disk_values(first, last),
        *_pressure_values(first, last, seconds),
    )
    return tuple(Measurement(metric=metric, value=value) for metric, value in values)


def parse_client(before: bytes, after: bytes, window: Window) -> tuple[Measurement, ...]:
    """Measurements of the client's own machine, where it is another one than the server's.

    - `client_foreign_cpu`: as `foreign_cpu`, without client and observer.
    - `client_steal_cpu`: as `steal_cpu`.

    Of several machines each is the highest. Nothing where client and server are on one machine, of which the other
    capture tells.

    Raises:
        ParseError: a capture has an unknown shape.
    """
    if window.shared:
        return ()
    machines = range(1 + len(window.further_clients))
    found: dict[str, float] = {}
    for number, one, other in zip(machines, split_captures(before), split_captures(after), strict=False):
        for metric, value in _values_of_client(parse_snapshot(one), parse_snapshot(other), _seen_by(window, number)):
            found[metric] = max(value, found.get(metric, value))
    return tuple(Measurement(metric=metric, value=value) for metric, value in found.items())


def _values_of_client(first: Snapshot, last: Snapshot, there: Window) -> Iterator[_Value]:
    seconds = _elapsed(first, last, there)
    if seconds <= 0:
        return
    ours = (
        _client_seconds(first, last, there),
        _observer_seconds(first, last, there) or 0.0,
        _resident_seconds(first, last, there),
    )
    yield "client_foreign_cpu", _foreign_seconds(first, last, there, ours) / seconds
    if (stolen := last.growth(first, "cpu.steal")) is not None:
        yield "client_steal_cpu", stolen / last.ticks / seconds


def see_clients(before: bytes, after: bytes, window: Window) -> Window:
    """The window with what clients used that lived through it, from two captures of their own host.

    As it is where the client did not, or was on the server's host.

    Raises:
        ParseError: a capture has an unknown shape.
    """
    if not window.client_pids or not window.apart:
        return window
    first, last, there = parse_snapshot(before), parse_snapshot(after), _seen_by(window, 0)
    return replace(
        window,
        client_cpu=_client_seconds(first, last, there),
        resident_cpu=_resident_seconds(first, last, there),
    )


def _seen_by(window: Window, number: int) -> Window:
    """The window on a machine of the client, where no server is."""
    there = replace(window, postmaster_pid=None, sampler_backends=(), apart=False)
    if number:
        further = window.further_clients[number - 1]
        return replace(
            there, client_cpu=further.cpu, transport_pids=further.transport_pids, resident_pids=(), sampler_pids=()
        )
    return replace(
        there,
        client_cpu=window.client_cpu - sum(further.cpu for further in window.further_clients),
        transport_pids=window.client_transport_pids,
        resident_pids=window.client_resident_pids,
        sampler_pids=window.client_sampler_pids,
    )


_Value = tuple[str, float]


def _elapsed(first: Snapshot, last: Snapshot, window: Window) -> float:
    if first.uptime is None or last.uptime is None:
        return window.seconds
    return last.uptime - first.uptime


# -------------------------------------------------------------------------------------------------- CPU


def _cpu_values(first: Snapshot, last: Snapshot, window: Window, seconds: float) -> Iterator[_Value]:
    server = _server_seconds(first, last, window)
    observer = _observer_seconds(first, last, window)
    client = _client_seconds(first, last, window)
    own = window.seconds if window.client_pids else seconds
    yield "client_cpu", client / own
    if window.transactions > 0:
        yield "client_cpu_per_tx", client / window.transactions
    if observer is not None:
        yield "observer_cpu", observer / seconds
    if (stolen := last.growth(first, "cpu.steal")) is not None:
        yield "steal_cpu", stolen / last.ticks / seconds
    if server is None:
        return
    yield "server_cpu", server / own
    if window.transactions > 0:
        yield "server_cpu_per_tx", server / window.transactions
    if client + server > 0:
        yield "client_share", client / (client + server)
    residents = _resident_seconds(first, last, window)
    # of one machine with two tables of processes this capture has the busy time of both, and the clients are not in it
    clients = 0.0 if window.apart and not window.shared else client
    clients += window.resident_cpu if window.shared is SharedResources.KERNEL else 0.0
    yield "foreign_cpu", _foreign_seconds(first, last, window, (server, clients, observer or 0.0, residents)) / seconds
    if last.cpus:
        yield BACKGROUND_LOAD, _background_seconds(first, last, window) / seconds / last.cpus


def _foreign_seconds(first: Snapshot, last: Snapshot, window: Window, ours: Iterable[float]) -> float:
    """CPU time that is nobody's of ours, at least 0."""
    processes = _background_seconds(first, last, window)
    busy = last.growth(first, *_BUSY)
    return processes if busy is None else max(processes, busy / last.ticks - sum(ours))


def _background_seconds(first: Snapshot, last: Snapshot, window: Window) -> float:
    """CPU time of all other processes, at least 0."""
    return max(0.0, (_other_ticks(last, window) - _other_ticks(first, window)) / last.ticks)


def _other_ticks(snapshot: Snapshot, window: Window) -> int:
    """Own and waited-for time of all processes but ours, theirs below them, and the kernel's threads."""
    server = () if window.postmaster_pid is None else (window.postmaster_pid,)
    roots = (*server, *_clients_here(window), *window.transport_pids, *window.resident_pids)
    ours = _members(snapshot.processes.values(), roots)
    return sum(
        process.own + process.waited
        for process in snapshot.processes.values()
        if process.pid not in ours and _KERNEL_THREADS not in {process.pid, process.parent}
    )


def tree_ticks(processes: Iterable[ProcessTime], root: int) -> int:
    """CPU time of a process and all below it, in ticks: own and waited-for time of every living member.

    A backend that is alive in one capture and gone in the next moves its time into its parent's waited-for time, so
    the difference of two such sums is right however many backends came and went between them.
    """
    known = {process.pid: process for process in processes}
    return sum(known[pid].own + known[pid].waited for pid in _members(known.values(), (root,)) if pid in known)


def _members(processes: Iterable[ProcessTime], roots: Iterable[int]) -> frozenset[int]:
    """The roots and all processes below them."""
    children: dict[int, list[int]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children.get(pid, ())
    return frozenset(found)


def _server_seconds(first: Snapshot, last: Snapshot, window: Window) -> float | None:
    if window.postmaster_pid is None:
        return None
    return _tree_seconds(first, last, window.postmaster_pid, window.sampler_backends)


def _client_seconds(first: Snapshot, last: Snapshot, window: Window) -> float:
    """CPU seconds of the client: between the captures if it lives through the window, else as the header has them."""
    pids = _clients_here(window)
    return sum(_tree_seconds(first, last, pid) or 0.0 for pid in pids) if pids else window.client_cpu


def _clients_here(window: Window) -> tuple[int, ...]:
    """Processes of the client that lives through the window, where captures of the server's host hold them."""
    return window.client_pids if not window.apart or window.shared is SharedResources.PROCESSES else ()


def _resident_seconds(first: Snapshot, last: Snapshot, window: Window) -> float:
    """What the environments used that this one took turns with."""
    return sum(_tree_seconds(first, last, pid, window.sampler_backends) or 0.0 for pid in window.resident_pids)


def _tree_seconds(first: Snapshot, last: Snapshot, root: int, without: Iterable[int] = ()) -> float | None:
    """CPU time of a process and all below it between two captures; None where it was not there in both.

    `without` are children of it that are not counted.
    """
    if not _same_process(first, last, root):
        return None
    used = tree_ticks(last.processes.values(), root) - tree_ticks(first.processes.values(), root)
    used -= sum(_grown(first, last, pid) for pid in _children(last, without, {root}))
    return used / last.ticks if used >= 0 else None


def _observer_seconds(first: Snapshot, last: Snapshot, window: Window) -> float | None:
    known = [pid for pid in window.transport_pids if _same_process(first, last, pid)]
    if not known:
        return None
    used = sum(last.processes[pid].own - first.processes[pid].own for pid in known)
    backends = _children(last, window.sampler_backends, {window.postmaster_pid, *window.resident_pids})
    used += sum(_grown(first, last, pid) for pid in (*window.sampler_pids, *backends))
    return used / last.ticks if used >= 0 else None


def _children(snapshot: Snapshot, pids: Iterable[int], parents: Collection[int | None]) -> list[int]:
    return [pid for pid in pids if pid in snapshot.processes and snapshot.processes[pid].parent in parents]


def _grown(first: Snapshot, last: Snapshot, pid: int) -> int:
    """Ticks of a process and of the children that it has waited for, since the first capture or its later beginning."""
    process = last.processes.get(pid)
    if process is None:
        return 0
    before = first.processes[pid] if _same_process(first, last, pid) else None
    return process.own + process.waited - (before.own + before.waited if before else 0)


def _same_process(first: Snapshot, last: Snapshot, pid: int) -> bool:
    """Whether that pid is in both captures and was not reused between them."""
    one, other = first.processes.get(pid), last.processes.get(pid)
    return one is not None and other is not None and one.start == other.start


# ------------------------------------------------------------------------------------- host, disks, pressure


def _host_values(first: Snapshot, last: Snapshot, window: Window) -> Iterator[_Value]:
    if (swapped := last.growth(first, "pswpin")) is not None:
        yield "pages_swapped_in", swapped
    if window.transactions <= 0:
        return
    for metric, name in (("context_switches_per_tx", "ctxt"), ("page_faults_per_tx", "pgfault")):
        if (grown := last.growth(first, name)) is not None:
            yield metric, grown / window.transactions


def _disk_values(first: Snapshot, last: Snapshot) -> Iterator[_Value]:
    pairs = [(first.disks[name], disk) for name, disk in last.disks.items() if name in first.disks]
    read, written = ([new[place] - old[place] for old, new in pairs] for place in _SECTORS)
    if pairs and min(*read, *written) >= 0:
        yield "disk_read", float(sum(read) * SECTOR)
        yield "disk_written", float(sum(written) * SECTOR)


def _pressure_values(first: Snapshot, last: Snapshot, seconds: float) -> Iterator[_Value]:
    for resource in RESOURCES:
        if (grown := last.growth(first, f"pressure/{resource}")) is not None:
            yield f"pressure_{resource}", grown * MICROSECOND / seconds
