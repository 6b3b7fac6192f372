"""One execution of the driver, followed to its end."""

from __future__ import annotations

from typing import Final

from pgstrata.conduct.arm import ActiveArm, fresh_folder, scratch_folder
from pgstrata.conduct.placement import place_backends
from pgstrata.conduct.rig import Rig
from pgstrata.errors import HostLostError, ServerFailedError
from pgstrata.ports.driver import Load
from pgstrata.ports.events import Event, EventKind
from pgstrata.ports.host import Process, ProcessExit, StopSignal

GRACE: Final = 60.0
_POLL: Final = 1.0
_POLL_AT_END: Final = 0.05
_LATE: Final = 5.0
_LAST_LINES: Final = 3


def drive(rig: Rig, arm: ActiveArm, load: Load, part: str) -> ProcessExit | None:
    """Run the driver to its end, telling its progress; None if it had to be stopped."""
    folder = fresh_folder(rig, arm, part)
    process = rig.driver(arm.environment, arm.cell).start(load, folder)
    try:
        place_backends(rig, arm, load)
        return _follow(rig, arm, load, process, folder)
    except TimeoutError:
        return None
    finally:
        _kill(process)


def _kill(process: Process) -> None:
    """End it where it still runs; of several machines those that are there, if one was lost."""
    try:
        running = process.poll() is None
    except HostLostError:
        running = True
    if running:
        process.signal(StopSignal.KILL, group=True)


def _follow(rig: Rig, arm: ActiveArm, load: Load, process: Process, folder: str) -> ProcessExit:
    begun = rig.clock.monotonic()
    offset = 0
    while True:
        passed = rig.clock.monotonic() - begun
        if passed > load.seconds + GRACE:
            raise TimeoutError
        rig.clock.sleep(min(_POLL, max(_POLL_AT_END, load.seconds - passed)))
        points, offset = rig.driver(arm.environment, arm.cell).progress(folder, offset)
        for point in points[-1:]:
            rig.events.emit(
                Event(kind=EventKind.PROGRESS, run=arm.planned.identity, value=point.tps, text=f"{point.time:.0f} s")
            )
        ended = process.poll()
        if ended is not None:
            return ended
        if passed > load.seconds + _LATE and arm.environment.host.remote:
            # a client whose server has gone with its network waits for long: HostLostError says so sooner
            rig.server_host(arm.environment).host.clock()


def raise_driver_failed(rig: Rig, arm: ActiveArm, what: str, part: str) -> None:
    """ServerFailedError with the driver's last words; what it left is kept with the run."""
    driver = rig.driver(arm.environment, arm.cell)
    evidence = driver.collect(scratch_folder(rig, arm, part))
    arm.files.update({f"{part}.{name}": content for name, content in evidence.items() if not name.endswith(".gz")})
    lines = driver.messages(evidence)
    raise ServerFailedError(f"the driver failed in the {what}: {' / '.join(lines[-_LAST_LINES:]) or 'no message'}")
