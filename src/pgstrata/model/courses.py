"""Kinds of series of one run beside its throughput: what the host and the server did, second by second."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.units import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A kind of series: one name, one unit.

    A value is the mean, or the rate, from the time before it to its own; a level is that at its time. NaN stands where
    counters went backwards, or samples came late: of such a stretch nothing is said.
    """

    name: str
    title: str
    unit: Unit


def _courses(unit: Unit, **titles: str) -> Mapping[str, Course]:
    return {name: Course(name=name, title=title, unit=unit) for name, title in titles.items()}


COURSES: Final[Mapping[str, Course]] = {
    **_courses(
        Unit.CPUS,
        host_user_cpu="CPU of all programs",
        host_system_cpu="CPU of the kernel",
        host_interrupt_cpu="CPU of interrupts",
        host_iowait_cpu="CPU idle while something waits for a disk",
        host_steal_cpu="CPU taken by the hypervisor",
        cpu_throttled="CPU withheld by limits of control groups",
        cpu_limit="CPU limit of the server's control group",
        sessions_cpu="CPU of the driver's sessions",
        parallel_cpu="CPU of parallel workers",
        checkpointer_cpu="CPU of the checkpointer",
        walwriter_cpu="CPU of the WAL writer",
        bgwriter_cpu="CPU of the background writer",
        autovacuum_cpu="CPU of autovacuum",
        io_workers_cpu="CPU of I/O workers",
        other_server_cpu="CPU of the server's other processes",
        client_cpu_course="CPU of the client",
    ),
    **_courses(
        Unit.COUNT,
        run_queue_length="tasks on a CPU or ready for one",
        disk_queue="requests in the disks' queues",
        relation_reading="processes in a read of relations, on average",
        relation_writing="processes in a write of relations, on average",
        relation_extending="processes in an extension of relations, on average",
        wal_writing="processes in a write of WAL, on average",
        wal_syncing="processes in a sync of WAL, on average",
    ),
    **_courses(
        Unit.PER_SECOND,
        context_switches="context switches",
        page_faults="page faults",
        disk_iops="requests that disks finished",
        commits="transactions committed",
        rollbacks="transactions rolled back",
        blocks_hit="blocks found in shared buffers",
        blocks_read="blocks read into shared buffers",
        rows_returned="rows that scans returned",
        rows_changed="rows inserted, updated and deleted",
        wal_records="WAL records",
        wal_images="full-page images in WAL",
        wal_buffers_full="times that full WAL buffers were written",
        wal_writes="writes of WAL",
        wal_syncs="syncs of WAL",
        checkpoints_due="checkpoints, timed and requested",
        checkpointer_buffers="buffers that the checkpointer wrote",
        bgwriter_buffers="buffers that the background writer wrote",
        backend_buffers="buffers that other processes wrote",
        backend_fsyncs="syncs of relations by other processes than the checkpointer",
        memory_limit_reached="times that the server's control group reached a limit of its memory",
    ),
    **_courses(
        Unit.BYTES_PER_SECOND,
        disk_throughput="bytes read from disks and written to them",
        server_read="bytes that the server read from disks",
        server_written="bytes that the server wrote for disks",
        group_read="bytes that the server's control group read from disks",
        group_written="bytes that the server's control group wrote to disks",
        relation_read="bytes read from relations",
        relation_written="bytes written to relations",
        relation_extended="bytes by which relations grew",
        wal_bytes="WAL",
        temporary_bytes="temporary files",
    ),
    **_courses(Unit.SECONDS, disk_await="time of a request to a disk"),
    **_courses(
        Unit.BYTES,
        memory_available="memory available",
        memory_dirty="memory to be written back",
        memory_writeback="memory being written back",
    ),
    **_courses(
        Unit.RATIO,
        cpu_stalled="share of time in which a task waited for a CPU",
        io_stalled="share of time in which a task waited for a disk",
        memory_stalled="share of time in which a task waited for memory",
        cpu_limit_reached="share of periods in which the server's control group had used up its CPU limit",
        group_cpu_stalled="share of time in which a task of the server's control group waited for a CPU",
        group_io_stalled="share of time in which a task of the server's control group waited for a disk",
        group_memory_stalled="share of time in which a task of the server's control group waited for memory",
    ),
}

EVENTS: Final[Mapping[str, Course]] = _courses(
    Unit.COUNT,
    checkpoint_starts="checkpoints that began",
    checkpoint_ends="checkpoints that were complete",
    autovacuums_done="tables that autovacuum finished with",
    temporary_files="temporary files",
    errors="errors",
    deadlocks="deadlocks",
)
"""What the server's log tells: `times` are whole seconds in which it happened, `values` how often."""

PERCENTILES: Final = ("latency_p50", "latency_p95", "latency_p99")
"""Series of latency over the seconds of a run, by the names of their metrics."""
