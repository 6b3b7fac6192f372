"""Blocks of the baseline against itself that a long experiment measures beside its own, for the noise floor.

They are a plan of their own, the one that `pgstrata floor` would make, one block of which stands between every ten of
the experiment. So the experiment's plan and all that is compared stay what they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from pgstrata.errors import PlanRefusedError
from pgstrata.model.experiment import ControlKind, Experiment
from pgstrata.model.floor import FLOOR_LIFETIME
from pgstrata.model.plan import HostCapacity, Plan, Refresh
from pgstrata.model.workload import Workload
from pgstrata.plan.forecast import trial_seconds
from pgstrata.plan.make import make_plan

EVERY: Final = 10
"""Blocks of the experiment between two blocks of the floor."""
LONG: Final = timedelta(hours=2)
"""An experiment that takes so long measures such blocks."""
AHEAD: Final = FLOOR_LIFETIME / 2
"""A floor that will have expired so soon after the experiment is refreshed: few differences at a time take a while."""


def baseline_twice(experiment: Experiment, blocks: int, *, question: str, remark: str) -> Experiment:
    """The baseline and a copy of it as the control `same`, in the same cells; the text of the file below a remark."""
    baseline = experiment.environment(experiment.baseline)
    control = replace(baseline, name=f"{baseline.name}-control", control=ControlKind.SAME)
    return replace(
        experiment,
        question=question,
        environments=(baseline, control),
        blocks=blocks,
        budget=None,
        factors=(),
        text=f"# {remark}\n{experiment.text}",
    )


def may_refresh(plan: Plan) -> bool:
    """Whether an experiment is long enough for such blocks, and has no control `same` that serves as well."""
    experiment = plan.experiment
    if any(environment.control is ControlKind.SAME for environment in experiment.environments):
        return False
    planned = min(plan.forecast.seconds_total, math.inf if experiment.budget is None else experiment.budget)
    return blocks_before(len(plan.blocks)) > 0 and planned >= LONG.total_seconds()


def blocks_before(number: int) -> int:
    """How many blocks of the floor come before block `number` of the experiment: the first one after ten."""
    return max(0, number - 1) // EVERY


def plan_refresh(plan: Plan, blocks: int, workloads: Mapping[str, Workload], capacity: HostCapacity) -> Plan:
    """The plan of these blocks, in the designs of the experiment.

    Raises:
        PlanRefusedError: the baseline cannot be measured against itself.
    """
    twice = baseline_twice(
        plan.experiment,
        blocks,
        question="How much do two equal environments differ here?",
        remark="The baseline of this experiment, twice: blocks between its own, for the noise floor.",
    )
    return make_plan(twice, workloads, capacity, designs=plan.designs)


def forecast_refresh(plan: Plan, workloads: Mapping[str, Workload], capacity: HostCapacity) -> Refresh | None:
    """What these blocks would cost, each with a trial of both servers; None where there can be none."""
    blocks = blocks_before(len(plan.blocks))
    try:
        twice = plan_refresh(plan, blocks, workloads, capacity)
    except PlanRefusedError:
        return None
    trials = sum(2 * trial_seconds(cell, workloads) for cell in plan.experiment.cells)
    return Refresh(
        blocks=blocks,
        visits=len(twice.blocks[0].visits),
        seconds=blocks * (twice.forecast.seconds_per_block + trials),
    )
