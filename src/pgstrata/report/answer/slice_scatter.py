"""Visits in slices: the rounds of two environments side by side, and where their scatter comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgstrata.model.answer import Study
from pgstrata.model.floor import SliceComponents
from pgstrata.model.runs import RunRecord
from pgstrata.report.sentences.names import count, name_environment
from pgstrata.report.sentences.verdicts import render_spread
from pgstrata.sources.runs import may_enter
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.variance import slice_components


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """The components of one environment against the baseline in one cell."""

    environment: str
    cell: str
    components: SliceComponents


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitRounds:
    """All usable runs of one cell that took turns with each other, by environment."""

    block: int
    runs: Mapping[str, RunRecord]


def visits_in_slices(study: Study, cell: str) -> tuple[VisitRounds, ...]:
    """The visits of a cell in which environments took turns, by block."""
    groups: dict[tuple[int, str], dict[str, RunRecord]] = {}
    for run in study.runs:
        if run.cell == cell and run.together and may_enter(run) and run.rounds():
            groups.setdefault((run.block, run.together), {})[run.environment] = run
    return tuple(VisitRounds(block=block, runs=runs) for (block, _), runs in sorted(groups.items()))


def find_scatter(study: Study, cell: str) -> tuple[Scatter, ...]:
    """For each environment but the baseline; nothing where too few visits are there."""
    experiment = study.plan.experiment
    visits = visits_in_slices(study, cell)
    found = []
    for environment in experiment.environments:
        logs = [
            log_ratios(visit.runs[environment.name], visit.runs[experiment.baseline])
            for visit in visits
            if {environment.name, experiment.baseline} <= visit.runs.keys()
        ]
        components = slice_components(logs) if environment.name != experiment.baseline else None
        if components is not None:
            found.append(Scatter(environment=environment.name, cell=cell, components=components))
    return tuple(found)


def log_ratios(run: RunRecord, base: RunRecord) -> FloatArray:
    """ln(A_r / B_r) of each round; NaN where one has no logarithm, empty where the rounds do not belong together."""
    own, other = np.array(run.rounds()), np.array(base.rounds())
    if own.shape != other.shape:
        return np.empty(0)
    known = (own > 0) & (other > 0)
    return np.asarray(np.where(known, np.log(np.where(known, own / np.where(known, other, 1.0), 1.0)), np.nan))


def name_scatter(scatter: Scatter, study: Study) -> str:
    """The environment as people call it."""
    experiment = study.plan.experiment
    return name_environment(experiment.environment(scatter.environment), experiment)


def say_scatter(study: Study, cell: str) -> str:
    """Between rounds 2.3 %, between starts 0.40 %, at most 0.9 %: of one environment, or from smallest to largest."""
    found = [item.components for item in find_scatter(study, cell)]
    if not found:
        return ""
    rounds = _range([item.sigma_round for item in found])
    between = _range([item.sigma_start for item in found])
    most = render_spread(max(item.sigma_start_upper for item in found))
    visits = max(item.visits for item in found)
    seen = f"{count(visits, 'visit')} of {count(found[0].rounds, 'round')}"
    scatter = f"between rounds {rounds}, beyond that between starts {between}, at most {most}"
    return f"Scatter of the differences: {scatter} ({seen})"


def _range(spreads: Sequence[float]) -> str:
    low, high = render_spread(min(spreads)), render_spread(max(spreads))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"
