"""Which run length would pay best in cells that are measured run by run: as a line of a plan and for JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from pgstrata.model.floor import RunNoise, RunsMeasured
from pgstrata.model.plan import Plan
from pgstrata.report.json.fields import pick_fields
from pgstrata.report.planning.components import runs_json, say_runs
from pgstrata.stats.variance import best_run_length, run_cost
from pgstrata.units import render_duration

# The optimum is flat: less is not worth a change, for which the noise floor would have to be measured again.
_LEAST_SAVING: Final = 0.15
# Twelve differences leave the variance of a run open by about this factor either way.
_DOUBT: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLength:
    """Seconds per run of a cell, planned and best, and what the best saves of variance x time, as a share."""

    cell: str
    planned: float
    best: float
    saving: float
    runs: RunsMeasured


def find_lengths(plan: Plan) -> tuple[RunLength, ...]:
    """Cells in which another run length would learn clearly more per minute, by a floor that may be relied upon."""
    return tuple(length for length in _lengths(plan) if length.saving > _LEAST_SAVING)


def _lengths(plan: Plan) -> Iterator[RunLength]:
    for cell in plan.experiment.cells:
        floor = plan.floors.get(cell.identity)
        if floor is None or not floor.valid or floor.runs is None or plan.design(cell.identity).sliced:
            continue
        known = (floor.runs.noise, floor.runs.overhead)
        best = best_run_length(*known)
        if best is not None and _holds(*known, best, cell.run):
            saving = 1 - run_cost(*known, best) / run_cost(*known, cell.run)
            yield RunLength(cell=cell.identity, planned=cell.run, best=best, saving=saving, runs=floor.runs)


def _holds(noise: RunNoise, overhead: float, best: float, planned: float) -> bool:
    """Whether the best length costs less than the planned one with half and with twice the variance of runs, too.

    Of simulated series of runs near their best length one in fourteen is advised to change, without this one in five.
    """
    within = noise.second * noise.inflation / noise.seconds
    total = noise.run + within
    doubted = (replace(noise, run=max(0.0, total * factor - within)) for factor in (1 / _DOUBT, _DOUBT))
    return all(run_cost(one, overhead, best) < run_cost(one, overhead, planned) for one in doubted)


def say_length(length: RunLength) -> str:
    """Runs of about 38 s would learn most per minute (now 2 min): with what is known of the cell behind it."""
    best, planned = render_duration(round(length.best)), render_duration(length.planned)
    return (
        f"{length.cell}: runs of about {best} would learn most per minute (now {planned}): "
        f"{length.saving * 100:.0f} % less variance x time; measured: {say_runs(length.runs)}"
    )


def lengths_json(plan: Plan) -> list[dict[str, Any]]:
    """The same cells for programs."""
    return [
        {
            **pick_fields(length, "cell planned_seconds=planned best_seconds=best saving"),
            "components": runs_json(length.runs),
        }
        for length in find_lengths(plan)
    ]
