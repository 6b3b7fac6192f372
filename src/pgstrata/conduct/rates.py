"""Rates that are shares of the slowest environment's maximum: measured once, before the first block, and kept.

The maximum is that of an environment alone, as fast as it goes, its data in memory. All environments get the same
absolute rate, and a resumed study has the one that it began with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import Final

from pgstrata.conduct.arm import ActiveArm, clear_scratch, make_load, scratch_folder
from pgstrata.conduct.drive import drive
from pgstrata.conduct.rig import Rig
from pgstrata.conduct.run import touching
from pgstrata.errors import ServerFailedError
from pgstrata.model.metrics import TPS
from pgstrata.model.plan import Plan
from pgstrata.model.server import Fingerprint
from pgstrata.plan.forecast import SECONDS_OF_MAXIMUM
from pgstrata.ports.driver import DriverResult
from pgstrata.ports.events import Event, EventKind
from pgstrata.ports.server import RunningServer
from pgstrata.ports.steps import finish_all
from pgstrata.sources.rates import MAXIMA, RATES, maximum_key

# Seconds at the beginning of which connections, plans and caches are the reason.
_OPENING: Final = 2

Maxima = dict[str, float]
"""Transactions per second by `maximum_key`."""


def load_rates(rig: Rig) -> None:
    """The rates that an earlier pass chose."""
    known = rig.store.fingerprint(RATES)
    if known is not None:
        rig.rates.update({cell: float(rate) for cell, rate in known.facts.items()})


def measure_maximum(rig: Rig, arm: ActiveArm, server: RunningServer, maxima: Maxima) -> None:
    """What the environment of an arm can do in its cell, unless the rate is known or no share; cells alike share it."""
    if arm.cell.rate_share is None or arm.cell.identity in rig.rates:
        return
    key = maximum_key(arm.environment.name, arm.cell)
    if key in maxima:
        return
    rig.events.emit(Event(kind=EventKind.STEP, run=arm.planned.identity, text="maximum"))
    maxima[key] = measure_tps(rig, arm, server)


def measure_tps(rig: Rig, arm: ActiveArm, server: RunningServer) -> float:
    """Transactions per second of an arm alone, as fast as it goes, its data in memory: of a typical second."""
    finish_all([touching(rig, arm, server)])
    load = make_load(rig, arm, server, seconds=SECONDS_OF_MAXIMUM, seed=arm.planned.seed + 3)
    drive(rig, arm, load, "maximum")
    driver = rig.driver(arm.environment, arm.cell)
    tps = _typical(driver.parse(driver.collect(scratch_folder(rig, arm, "maximum"))))
    clear_scratch(rig, arm)
    return tps


def _typical(result: DriverResult) -> float:
    """The median second after the opening; the mean where there are no seconds."""
    seconds = next((series.values for series in result.series if series.metric == TPS.name), ())[_OPENING:]
    return median(seconds) if seconds else result.tps or 0.0


def choose_rates(rig: Rig, plan: Plan, maxima: Mapping[str, float]) -> None:
    """Whole transactions per second, the same in all environments; kept with the study.

    Raises:
        ServerFailedError: an environment did nothing.
    """
    cells = [cell for cell in plan.experiment.cells if cell.rate_share is not None and cell.identity not in rig.rates]
    for cell in cells:
        found = {each.title: maxima.get(maximum_key(each.name, cell), 0.0) for each in plan.experiment.environments}
        slowest = min(found, key=lambda title: found[title])
        if not found[slowest] > 0:
            raise ServerFailedError(
                f"the rate of {cell.identity} is a share of the slowest maximum, but {slowest} had no transaction",
                where=slowest,
                remedy="write the rate as a number, or find out why this environment had none",
            )
        rig.rates[cell.identity] = float(max(1, math.floor(found[slowest] * (cell.rate_share or 0.0))))
    if maxima:
        rig.store.keep_fingerprint(MAXIMA, Fingerprint(facts={key: repr(value) for key, value in maxima.items()}))
    if cells:
        rig.store.keep_fingerprint(RATES, Fingerprint(facts={key: repr(rate) for key, rate in rig.rates.items()}))
