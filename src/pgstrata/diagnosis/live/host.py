"""What the host tells of a slowdown: who had the CPUs, and whether disks were slow. Pure."""

from __future__ import annotations

from typing import Final

from pgstrata.diagnosis.live.case import RUNNING, Case, Pair
from pgstrata.model.archive import ArchiveWindow

_OTHERS: Final = 0.5
"""Tasks more that were ready and were no sessions, and as a share of those before, from which on they are a cause."""
_OTHERS_MORE: Final = 0.3
_MOST: Final = 2.0
"""Tasks that are no sessions for each session that is ready, from which on they are most."""
_STALLED_MORE: Final = 0.2
"""Share of time in which tasks waited for a CPU that comes to it at least, where sessions are starved."""
THROTTLED: Final = "cpu_throttled"
_WITHHELD: Final = 0.1
"""CPUs that limits withheld more, and their share of the CPUs in use, from which on they are a cause."""
CROWDED: Final = 0.8
"""Share of time in which tasks wait for a CPU from which on they do so nearly always."""
_SEEN_WAITING: Final = 0.2
"""Share of the time in which a session waits for I/O that the host counts as waiting for a disk, at least."""
_DISK_MORE: Final = 1.5
_DISK_STALLED: Final = 0.05
_REQUEST_LONGER: Final = 0.0005
"""Seconds by which a request to a disk takes longer at least, where disks are slower."""
HELD_UP: Final = ("LWLock/", "IO/", "IPC/BufferIo")
"""Waits for sessions that were stopped while they held something."""
CPUS: Final = ("host_user_cpu", "host_system_cpu", "host_interrupt_cpu")


def is_starved(case: Case) -> bool:
    """Whether the host's tasks waited more for CPUs and no more for disks, by its pressure stall information.

    Or whether limits of control groups withheld CPUs from the server, which the kernel counts.

    A session that is stopped while it writes or holds a lightweight lock makes others wait for that, as a slow disk
    would. Where tasks wait for a CPU nearly always, it is so if sessions wait for disks far longer than the host does.
    """
    if is_throttled(case):
        return True
    cpu, disk, request = (case.rate(name) for name in ("cpu_stalled", "io_stalled", "disk_await"))
    if cpu is None or disk is None:
        return False
    waiting = min(1.0, case.load_on("IO/").value)
    if cpu.difference < _STALLED_MORE and not (cpu.value >= CROWDED and disk.value < _SEEN_WAITING * waiting):
        return False
    slower = disk.ratio >= _DISK_MORE and disk.difference >= _DISK_STALLED
    longer = request is not None and request.ratio >= _DISK_MORE and request.difference >= _REQUEST_LONGER
    return not (slower or longer)


def is_throttled(case: Case) -> bool:
    """Whether limits of the server's control groups withheld more CPU than before."""
    withheld, used = case.rate(THROTTLED), cpus_used(case)
    least = _WITHHELD * (1.0 if used is None else max(1.0, used.value))
    return withheld is not None and withheld.difference >= least


def held_up_by_work(case: Case) -> tuple[str, ...]:
    """Events in which sessions wait because the CPUs are short, if that is due to more work of transactions.

    None where tasks of others came, or where the CPUs are not short.
    """
    others = other_tasks(case)
    return () if not is_starved(case) or (others is not None and are_more(others)) else HELD_UP


def new_take_cpus(case: Case) -> bool:
    """Whether new statements are what keeps the CPUs busy: they run, and no tasks of others came."""
    others = other_tasks(case)
    running = case.load(lambda event, key: event == RUNNING and key in case.new)
    return running.value >= _OTHERS and (others is None or not are_more(others))


def is_crowded(case: Case, others: Pair) -> bool:
    """Whether tasks wait for a CPU nearly always, most of which are no sessions."""
    stalled = case.rate("cpu_stalled")
    return stalled is not None and stalled.value >= CROWDED and others.value >= _MOST * max(1.0, _awake(case.value))


def are_more(others: Pair) -> bool:
    """Whether tasks that are no sessions came."""
    return others.difference >= max(_OTHERS, _OTHERS_MORE * others.reference)


def cpus_used(case: Case) -> Pair | None:
    """CPUs in use on the whole host; None where the host is not seen."""
    parts = [case.rate(name) for name in CPUS]
    known = [part for part in parts if part is not None]
    if parts[0] is None:
        return None
    return Pair(value=sum(part.value for part in known), reference=sum(part.reference for part in known))


def other_tasks(case: Case) -> Pair | None:
    """Tasks of the host that ran or were ready, without the server's processes that waited for nothing."""
    ready = case.rate("run_queue_length")
    if ready is None:
        return None
    return Pair(value=ready.value - _awake(case.value), reference=ready.reference - _awake(case.reference))


def _awake(window: ArchiveWindow) -> float:
    found = sum(
        sum(counts)
        for session, counts in window.sessions.items()
        if not session.wait_type and not session.is_idle_in_transaction
    )
    return found / max(1, sum(window.looks))
