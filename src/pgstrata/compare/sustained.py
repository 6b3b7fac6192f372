"""What each environment sustains within its objective, by its own runs: a rate with an interval, cell by cell."""

from __future__ import annotations

from pgstrata.model.answer import SustainedRate
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.metrics import SUSTAINED_RATE
from pgstrata.model.study import Study
from pgstrata.sources.runs import may_enter
from pgstrata.stats.objective import level_interval


def find_sustained_rates(study: Study) -> tuple[SustainedRate, ...]:
    """One for each cell with an objective and environment, in the order of the experiment; only usable runs count.

    The interval is that of the rate at which the runs together keep the limit (`stats.objective.level_interval`); there
    is one run for each block, and it holds for this machine in the hours of the study. None for fewer than three runs.
    """
    experiment = study.plan.experiment
    found = []
    for cell in experiment.cells:
        if cell.objective is None:
            continue
        for environment in experiment.environments:
            runs = [run for run in study.runs if (run.environment, run.cell) == (environment.name, cell.identity)]
            rates = [rate for run in runs if may_enter(run) and (rate := run.value(SUSTAINED_RATE.name) or 0.0) > 0]
            level = level_interval(rates)
            found.append(
                SustainedRate(
                    environment=environment.name,
                    cell=cell.identity,
                    objective=cell.objective,
                    runs=len(rates),
                    value=None if level is None else level.value,
                    interval=None if level is None else ValueInterval(low=level.low, high=level.high),
                    confidence=None if level is None else level.confidence,
                )
            )
    return tuple(found)
