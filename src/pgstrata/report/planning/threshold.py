"""Where the default threshold is finer than the noise of a host: a plan says so, the user decides. Pure."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from typing import Final

from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.experiment import Experiment
from pgstrata.model.floor import Floor
from pgstrata.model.plan import Plan
from pgstrata.report.planning.floor import find_sights, level_of, render_effect
from pgstrata.report.planning.power import affordable_blocks, choose_floor
from pgstrata.stats.power import forecast

COARSE: Final = 0.05
"""The threshold that is named instead, as a share."""
_NOISY: Final = 0.02
"""Log units of one environment, s0 / sqrt(2): above it few blocks show equality within 3 %."""


def say_threshold(plan: Plan) -> Iterator[str]:
    """A warning where the file gives no threshold and a floor that may be relied upon is above what it is meant for.

    Of the headline if it is so noisy, else of the noisiest cell.
    """
    if plan.experiment.threshold >= COARSE or _gives_threshold(plan.experiment):
        return
    noisy = [sight.floor for sight in find_sights(plan) if sight.floor.s0 / math.sqrt(2) > _NOISY]
    if not noisy:
        return
    floor = choose_floor(noisy)
    where = "over all cells together" if floor.cell == ALL_CELLS else f"in {floor.cell}"
    default, better = (f"{threshold * 100:g} %" for threshold in (plan.experiment.threshold, COARSE))
    yield (
        f"warning: the file gives no threshold, so {default} is taken, while {where} equals differ by "
        f"{render_effect(math.expm1(floor.s0))} from block to block: equality within {default} is found in "
        f"{_say_equal(plan, floor, plan.experiment.threshold)}, within {better} in {_say_equal(plan, floor, COARSE)}; "
        f'if differences below {better} do not matter to you, write threshold = "{better}"'
    )


def _say_equal(plan: Plan, floor: Floor, threshold: float) -> str:
    blocks, level = affordable_blocks(plan), level_of(plan, floor.cell)
    (equal,) = forecast(floor.s0, math.log1p(threshold), blocks, (0.0,), alpha=level)
    return f"{math.floor(equal.probability * 100)} of 100 such studies after about {round(equal.blocks)} blocks"


def _gives_threshold(experiment: Experiment) -> bool:
    """Whether the file has one; a text that cannot be read is left alone."""
    try:
        return "threshold" in tomllib.loads(experiment.text)
    except (ValueError, RecursionError):
        return True
