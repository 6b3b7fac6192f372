"""One run: relations and caches warmed, everything quiet, then the measured window with captures on both sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from pgstrata.conduct.arm import WARMUP, ActiveArm, clear_scratch, make_load, scratch_folder, step, together
from pgstrata.conduct.drive import GRACE, drive, raise_driver_failed
from pgstrata.conduct.finish import now
from pgstrata.conduct.placement import place_clients
from pgstrata.conduct.rig import Rig
from pgstrata.conduct.samplers import kill_samplers, start_samplers, stop_samplers
from pgstrata.conduct.search import search
from pgstrata.errors import ServerFailedError
from pgstrata.model.plan import Design
from pgstrata.model.reasons import Reason
from pgstrata.plan import warmup_of, workload_of
from pgstrata.ports.collector import CaptureSubject, Collector
from pgstrata.ports.driver import STRETCH
from pgstrata.ports.events import Event, EventKind
from pgstrata.ports.host import ClockReading, Command, ProcessExit
from pgstrata.ports.server import RunningServer
from pgstrata.ports.steps import Steps

_SYNC_TIMEOUT: Final = 3600.0
_NO_PRIVILEGE: Final = "42501"


def touching(rig: Rig, arm: ActiveArm, server: RunningServer) -> Steps[None]:
    """Relations into memory."""
    yield from rig.sql(arm.environment).executing(server.address, rig.warm_sql(workload_of(arm.cell, rig.workloads)))


def warm(rig: Rig, arm: ActiveArm, server: RunningServer, design: Design) -> None:
    """The workload itself, with random numbers of its own.

    Before slices this is also the unlogged stretch, from which the throughput in absolute terms comes. Where the visit
    leaves it out, the client's lead and the discarded round are the warm-up.
    """
    arm.stretched = design.stretches(arm.planned.block)
    arm.warmup_seconds = warmup_of(arm.cell, design) if arm.stretched else 0.0
    if arm.warmup_seconds > 0:
        with step(rig, arm, "warmup"):
            # the measured run's own seed would make the warm-up touch exactly the rows that are measured first
            load = make_load(rig, arm, server, seconds=arm.warmup_seconds, seed=arm.planned.seed + 1)
            exit_ = drive(rig, arm, load, WARMUP)
            if exit_ is None or exit_.code != 0:
                raise_driver_failed(rig, arm, "warm-up", WARMUP)
            if design.sliced:
                left = rig.driver(arm.environment, arm.cell).collect(scratch_folder(rig, arm, WARMUP))
                arm.files.update({f"{STRETCH}{name}": content for name, content in left.items()})


def quiesce(rig: Rig, arms: Sequence[ActiveArm], servers_of: Callable[[ActiveArm], Sequence[RunningServer]]) -> None:
    """A checkpoint in the servers of each arm, then everything written back that copying and warm-up left dirty."""
    together(rig, arms, "checkpoint", lambda arm: _checkpointing(rig, arm, servers_of(arm)))
    together(rig, arms, "settle", lambda arm: _settling(rig, servers_of(arm)))


def _checkpointing(rig: Rig, arm: ActiveArm, servers: Sequence[RunningServer]) -> Steps[None]:
    for server in servers:
        try:
            yield from rig.sql(arm.environment).executing(server.address, "CHECKPOINT;")
        except ServerFailedError as error:
            if getattr(error, "sqlstate", "") != _NO_PRIVILEGE:
                raise
            arm.remarks.append(Reason(code="no_checkpoint"))


def _settling(rig: Rig, servers: Sequence[RunningServer]) -> Steps[None]:
    own = [server for server in servers if server.postmaster_pid is not None]
    for spec in dict.fromkeys(server.environment.host for server in own):
        there = (server.clone for server in own if server.environment.host == spec)
        folders = sorted({folder for clone in there for folder in clone.folders})
        yield from rig.server_hosts[spec].host.running(Command(argv=("sync", "-f", *folders)), timeout=_SYNC_TIMEOUT)


def measure(rig: Rig, arm: ActiveArm, server: RunningServer) -> None:
    """The measured window with captures on both sides; failures are recorded in the arm."""
    arm.sampling_rate = rig.sampling.get(arm.cell.identity)
    load = place_clients(rig, arm, make_load(rig, arm, server, seconds=arm.cell.run, seed=arm.planned.seed))
    subject = rig.subject(server)
    capture_before(rig, arm, subject)
    rig.events.emit(Event(kind=EventKind.STEP, run=arm.planned.identity, text="measure"))
    at_work = start_samplers(rig, arm, server)
    try:
        arm.started = now(rig)
        client = rig.client(arm.environment)
        before = client.clock()
        load = replace(load, sampling_rate=arm.sampling_rate)
        exit_ = drive(rig, arm, load, "run") if arm.cell.objective is None else search(rig, arm, load)
        _close_window(arm, before, client.clock(), exit_)
        # the host first: it is the server's end of the window that must not wait
        if rig.control_alive(server):
            capture_after(rig, arm, subject)
        with step(rig, arm, "capture"):
            stop_samplers(rig, arm, at_work)
    finally:
        kill_samplers((at_work,))
    with step(rig, arm, "capture"):
        if arm.search is None:
            arm.files.update(rig.driver(arm.environment, arm.cell).collect(scratch_folder(rig, arm, "run")))
        clear_scratch(rig, arm)
    if rig.control_alive(server):
        check_data(rig, arm, server)


def check_data(rig: Rig, arm: ActiveArm, server: RunningServer) -> None:
    """Check what every load must preserve of the data; without an answer, or with a wrong one, the run is invalid."""
    workload = workload_of(arm.cell, rig.workloads)
    query = workload.data_for(arm.cell.options).consistency_at(arm.cell.scale)
    if not query or not workload.writes:
        return
    with step(rig, arm, "check"):
        try:
            found = rig.sql(arm.environment).query(server.address, query)
        except ServerFailedError as error:
            arm.remarks.append(Reason(code="inconsistent_data", how="unseen", said=error.what))
            return
    broken = tuple(row["item"] for row in found.records() if row["ok"] != "t")
    if broken:
        arm.remarks.append(Reason(code="inconsistent_data", names=broken))


def capture_before(
    rig: Rig, arm: ActiveArm, subject: CaptureSubject, collectors: Sequence[Collector] | None = None
) -> None:
    """Counters at the beginning of the window, of all collectors unless some are named."""
    with step(rig, arm, "capture"):
        for collector in rig.collectors if collectors is None else collectors:
            arm.keep(f"{collector.name}.before", collector.capture(subject))


def capture_after(
    rig: Rig, arm: ActiveArm, subject: CaptureSubject, collectors: Sequence[Collector] | None = None
) -> None:
    """Counters at the end of the window, in the opposite order."""
    with step(rig, arm, "capture"):
        for collector in reversed(rig.collectors if collectors is None else collectors):
            try:
                arm.keep(f"{collector.name}.after", collector.capture(subject))
            except ServerFailedError as error:
                # the driver's figures are there: they are not given up for a counter
                arm.remarks.append(Reason(code="capture_failed", names=(collector.name,), said=error.what))


def _close_window(arm: ActiveArm, before: ClockReading, after: ClockReading, exit_: ProcessExit | None) -> None:
    arm.seconds = after.monotonic - before.monotonic
    arm.wall_drift = (after.wall - before.wall) - arm.seconds
    if exit_ is None:
        arm.fail("", how="overdue", seconds=GRACE)
    else:
        arm.client_cpu = exit_.cpu.total
        arm.client_cpu_of_each = tuple(cpu.total for cpu in exit_.each)
