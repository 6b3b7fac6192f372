"""Ladders of clients that end where throughput falls: climbed once, before the first block, and kept.

Where a ladder ends is fixed before anything is compared, so that no difference between environments depends on it. All
environments have the same cells: a ladder ends where throughput has fallen in each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pgstrata.compare.ladders import find_ladders, has_fallen
from pgstrata.conduct.arm import ActiveArm
from pgstrata.conduct.rates import Maxima, measure_tps
from pgstrata.conduct.rig import Rig
from pgstrata.model.experiment import Cell
from pgstrata.model.plan import Plan
from pgstrata.model.server import Fingerprint
from pgstrata.ports.events import Event, EventKind
from pgstrata.ports.server import RunningServer
from pgstrata.sources.ladders import LADDERS, LEFT_OUT, MEASURED
from pgstrata.sources.rates import maximum_key

# A short disturbance passes; a fall by the number of clients comes back each time.
_CONFIRMED: Final = 2

Ends = dict[tuple[str, str], int]
"""Clients at which throughput has fallen, by environment and identity of the ladder's first cell."""


def climb_ladders(
    rig: Rig, plan: Plan, arms: Sequence[ActiveArm], server: RunningServer, maxima: Maxima, ends: Ends
) -> None:
    """Add clients step by step, in one environment, until throughput has fallen.

    Args:
        rig: of the study; ladders that it has climbed before are not climbed again.
        plan: with all cells.
        arms: of one environment, up in `server`; ladders are climbed whose cells are among them.
        server: running, with the data of these cells.
        maxima: transactions per second, filled.
        ends: filled.
    """
    if rig.store.fingerprint(LADDERS) is not None:
        return
    by_cell = {arm.cell.identity: arm for arm in arms}
    for ladder in find_ladders(plan.experiment):
        rungs = [by_cell[cell.identity] for cell in ladder if cell.identity in by_cell]
        if rungs:
            ends[rungs[0].environment.name, ladder[0].identity] = _climb(rig, rungs, server, maxima)


def _climb(rig: Rig, rungs: Sequence[ActiveArm], server: RunningServer, maxima: Maxima) -> int:
    best, most = rungs[0], 0.0
    for arm in rungs:
        rig.events.emit(Event(kind=EventKind.STEP, run=arm.planned.identity, text="ladder"))
        tps = measure_tps(rig, arm, server)
        if has_fallen(tps, most):
            again = _again(rig, best, arm, server)
            if again is None:
                maxima[_key(arm)] = tps
                return arm.cell.clients
            tps = max(tps, again)
        maxima[_key(arm)] = tps
        if tps > most:
            best, most = arm, tps
    return rungs[-1].cell.clients


def _again(rig: Rig, best: ActiveArm, arm: ActiveArm, server: RunningServer) -> float | None:
    """Both once more in turns, as others may have been at work for a moment; None where an arm has fallen each time."""
    for _ in range(_CONFIRMED):
        most, tps = measure_tps(rig, best, server), measure_tps(rig, arm, server)
        if not has_fallen(tps, most):
            return tps
    return None


def _key(arm: ActiveArm) -> str:
    return maximum_key(arm.environment.name, arm.cell)


def choose_ends(rig: Rig, plan: Plan, ends: Mapping[tuple[str, str], int]) -> None:
    """Where each ladder ends, the same in all environments; kept with the study."""
    ladders = find_ladders(plan.experiment)
    if not ladders or rig.store.fingerprint(LADDERS) is not None:
        return
    facts = {cell.identity: fate for ladder in ladders for cell, fate in _fates(plan, ladder, ends)}
    rig.store.keep_fingerprint(LADDERS, Fingerprint(facts=facts))


def _fates(plan: Plan, ladder: Sequence[Cell], ends: Mapping[tuple[str, str], int]) -> list[tuple[Cell, str]]:
    top = ladder[-1].clients
    end = max(ends.get((each.name, ladder[0].identity), top) for each in plan.experiment.environments)
    return [(cell, MEASURED if cell.clients <= end else LEFT_OUT) for cell in ladder]
