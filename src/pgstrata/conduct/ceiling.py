"""What the client alone could drive: `select 1` over the same way, by as many clients, before the first block.

A workload near this ceiling costs the server little besides asking and answering. It is kept with the study, so that a
resumed one judges its runs by the same figure. Where others worked just then it comes out too low, and a run above it
shows that: no further run is judged by it, and in the next visits it is measured again until it is plausible. Workloads
that connect for each transaction have none: the server's work is to let clients in, and `select 1` asks for just that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pgstrata.conduct.arm import ActiveArm, clear_scratch, make_load, scratch_folder
from pgstrata.conduct.drive import drive
from pgstrata.conduct.judge import CEILING, THREADS
from pgstrata.conduct.placement import place_clients
from pgstrata.conduct.rig import Rig
from pgstrata.model.driver import DEFAULT_DRIVER
from pgstrata.model.experiment import HERE, ServerKind, name_hosts
from pgstrata.model.metrics import TPS
from pgstrata.model.runs import RunRecord
from pgstrata.model.server import Fingerprint
from pgstrata.plan import workload_of
from pgstrata.ports.clients import share_clients, share_threads
from pgstrata.ports.driver import DriverResult
from pgstrata.ports.events import Event, EventKind
from pgstrata.ports.server import RunningServer
from pgstrata.sources.ceilings import ABOVE_CEILING

CEILINGS: Final = "ceilings"
"""Name under which the study keeps them, by `topology`."""
EXCEEDED: Final = "ceilings_exceeded"
"""Name under which the study keeps the highest throughput of runs above their ceiling, by `topology`."""
AGAIN: Final = "ceilings_again"
"""Name under which the study keeps how often each was measured again, by `topology`."""
_SECONDS: Final = 2.0
# A script that asks the server nothing is above any ceiling.
_MOST_AGAIN: Final = 5
# A run so little above two ceilings is as fast as `select 1`, and no ceiling is wrong.
_ALIKE: Final = 1.05
# A workload that comes closer to a ceiling of another environment may have a higher one of its own.
_CLOSE: Final = 0.8


def topology(arm: ActiveArm) -> str:
    """Everything that the ceiling depends on but the server; running servers may be anywhere and count each alone."""
    cell, environment = arm.cell, arm.environment
    running = environment.server.kind is ServerKind.DSN
    way = f"running server of {environment.name}" if running else str(environment.connection)
    far = f" to {environment.host.text}" if environment.host.remote else ""
    if environment.client_hosts != HERE:
        far += f" from {name_hosts(environment.client_hosts)}"
    paired = ", paired" if _is_paired(arm) else ""
    driver = "" if cell.driver == DEFAULT_DRIVER else f", {cell.driver}"
    return f"{cell.clients} clients, {cell.threads} threads, {cell.protocol}, {way}{far}{paired}{driver}"


def ensure_ceiling(rig: Rig, arm: ActiveArm, server: RunningServer, tps: float | None) -> None:
    """Measure what `select 1` reaches, unless an environment that is far above `tps` has shown it already.

    Args:
        rig: with the study that keeps it.
        arm: cell and environment in question; `server` is theirs and is up.
        server: see `arm`.
        tps: what a trial of the cell reached; None if there was none, then any ceiling will do.
    """
    if _connects_each_time(rig, arm):
        return
    ceiling = _kept(rig, CEILINGS).get(topology(arm), 0.0)
    if ceiling > (tps or 0.0) / _CLOSE:
        return
    found = _measure(rig, arm, server)
    if found > ceiling:
        _keep(rig, CEILINGS, arm, found)


def renew_ceiling(rig: Rig, arm: ActiveArm, server: RunningServer) -> None:
    """Measure again a ceiling that a run exceeded; a few times at most."""
    way = topology(arm)
    tried = _kept(rig, AGAIN).get(way, 0.0)
    if not _is_wrong(rig, arm) or tried >= _MOST_AGAIN:
        return
    found, exceeded = _measure(rig, arm, server), _kept(rig, EXCEEDED)[way]
    _keep(rig, AGAIN, arm, tried + 1)
    if found * _ALIKE >= exceeded:
        _keep(rig, CEILINGS, arm, max(found, exceeded))


def note_exceeded(rig: Rig, arm: ActiveArm, record: RunRecord) -> None:
    """Remember the throughput of a run above its ceiling."""
    for reason in record.reasons:
        if reason.code == ABOVE_CEILING and reason.value > _kept(rig, EXCEEDED).get(topology(arm), 0.0):
            _keep(rig, EXCEEDED, arm, reason.value)


def client_facts(rig: Rig, arm: ActiveArm) -> Mapping[str, str]:
    """What a run is judged by: threads of the (first) client, and the ceiling if one is known that no run exceeded."""
    known = not _connects_each_time(rig, arm) and not _is_wrong(rig, arm)
    ceiling = _kept(rig, CEILINGS).get(topology(arm)) if known else None
    cell = arm.cell
    first, *_ = share_clients(cell.clients, len(rig.side(arm.environment).generators))
    return {
        THREADS: str(share_threads(cell.threads, first, cell.clients)),
        **({CEILING: repr(ceiling)} if ceiling is not None else {}),
    }


def _is_paired(arm: ActiveArm) -> bool:
    """Whether the throughput that is held against the ceiling is one of paired sessions; in slices it never is."""
    return arm.placement_seed is not None and not arm.sliced


def _is_wrong(rig: Rig, arm: ActiveArm) -> bool:
    way = topology(arm)
    return _kept(rig, EXCEEDED).get(way, 0.0) > _kept(rig, CEILINGS).get(way, 0.0)


def _connects_each_time(rig: Rig, arm: ActiveArm) -> bool:
    return workload_of(arm.cell, rig.workloads).reconnects


def _kept(rig: Rig, name: str) -> dict[str, float]:
    kept = rig.store.fingerprint(name)
    return {way: float(value) for way, value in kept.facts.items()} if kept is not None else {}


def _keep(rig: Rig, name: str, arm: ActiveArm, value: float) -> None:
    facts = {way: repr(each) for way, each in {**_kept(rig, name), topology(arm): value}.items()}
    rig.store.keep_fingerprint(name, Fingerprint(facts=facts))


def _measure(rig: Rig, arm: ActiveArm, server: RunningServer) -> float:
    """Transactions per second; 0 where the driver has no such load, or it does not run: the run will say why."""
    rig.events.emit(Event(kind=EventKind.STEP, run=arm.planned.identity, text="ceiling"))
    driver = rig.driver(arm.environment, arm.cell)
    load = driver.least_load(make_load(rig, arm, server, seconds=_SECONDS, seed=arm.planned.seed + 2))
    if load is None:
        return 0.0
    drive(rig, arm, place_clients(rig, arm, load) if _is_paired(arm) else load, "ceiling")
    result = driver.parse(driver.collect(scratch_folder(rig, arm, "ceiling")))
    clear_scratch(rig, arm)
    return _fastest(result)


def _fastest(result: DriverResult) -> float:
    """The best of its seconds, because new clients may stall in the first; the mean where seconds are not known."""
    seconds = next((series.values for series in result.series if series.metric == TPS.name), ())
    return max((result.tps or 0.0, *seconds))
