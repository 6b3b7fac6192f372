"""What stands beside every table: how the cell was measured, what its seconds are worth, what the rig can see of it.

Of visits in slices also where their scatter comes from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgstrata.compare.noise.within_run import weigh_seconds
from pgstrata.model.answer import Answer
from pgstrata.model.experiment import Cell
from pgstrata.model.floor import SliceComponents
from pgstrata.model.objective import STEPS
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.model.study import Study
from pgstrata.report.json.documents import pick_fields
from pgstrata.report.planning.floor import Sensitivity, find_sensitivities, render_effect
from pgstrata.report.sentences.names import count, name_environment, say_claim, say_objective
from pgstrata.report.sentences.reasons import say_placement, say_reason, say_why_so
from pgstrata.report.sentences.verdicts import render_spread
from pgstrata.sources.rates import maximum_key
from pgstrata.sources.runs import may_enter
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.variance import slice_components
from pgstrata.units import render_duration


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
    known = (own > 0) & (other > 0) & np.isfinite(own) & np.isfinite(other)
    return np.asarray(np.where(known, np.log(np.where(known, own / np.where(known, other, 1.0), 1.0)), np.nan))


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


def say_design(plan: Plan, cell: Cell) -> str:
    """Measured in 16 slices of 250 ms: the environments can be up together, and nothing is written."""
    design = plan.design(cell.identity)
    text = f"Measured in {design.describe(cell.run, plan.experiment.environments)}"
    if cell.objective is not None:
        text += f" of {STEPS} steps"
    why = say_why_so(design)
    return f"{text}: {why}" if why else text


def say_values(plan: Plan, cell: Cell) -> str:
    """Where the absolute figures of a cell come from."""
    design = plan.design(cell.identity)
    if design.sliced:
        blocks = f" in the first {design.stretched} blocks" if design.stretched else ""
        return f"median of unlogged stretches{blocks}; differences come from the slices"
    if cell.objective is not None:
        return (
            f"the highest rate {say_objective(cell.objective)}, median of the runs; the interval is of the rate at "
            "which all runs together keep the limit, which is a little lower"
        )
    return "median of the runs"


def cell_notes(answer: Answer, cell: Cell) -> tuple[str, ...]:
    """What stands beside the tables of a cell, without full stops."""
    plan = answer.study.plan
    scatter = say_scatter(answer.study, cell.identity)
    seconds = say_seconds(answer.study, cell.identity)
    claim = say_claim(cell)
    notes = (
        f"{claim[:1].upper()}{claim[1:]}",
        say_share(answer.study, cell),
        say_design(plan, cell),
        say_placement(plan.design(cell.identity), plan.experiment.environments),
        scatter,
        seconds,
        floor_note(answer, cell.identity),
    )
    return tuple(note for note in notes if note)


def say_share(study: Study, cell: Cell) -> str:
    """The absolute rate of a cell whose rate is a share, and the maximum that it is a share of; empty for others."""
    if cell.rate_share is None or cell.identity not in study.rates:
        return ""
    experiment = study.plan.experiment
    known = {
        each.name: study.maxima[key]
        for each in experiment.environments
        if (key := maximum_key(each.name, cell)) in study.maxima
    }
    said = (
        f"Rate: {study.rates[cell.identity]:,.0f} transactions/s in all environments, {100 * cell.rate_share:g} % of "
        "the maximum of the slowest one"
    )
    if not known:
        return said
    slowest = min(known, key=lambda name: known[name])
    name = name_environment(experiment.environment(slowest), experiment)
    return f"{said} ({name}: {known[slowest]:,.0f}/s, measured before the first block)"


def floor_note(answer: Answer, cell: str) -> str:
    """Noise floor 0.4 %: differences from 1.2 % on are found with 9 blocks by four studies of five; or why not."""
    plan = answer.study.plan
    floor = plan.floors.get(cell)
    if floor is None:
        return ""
    seen = next(
        (seen for seen in find_sensitivities(plan, answer.comparisons) if seen.floor.cell == cell),
        None,
    )
    if seen is None:
        doubt = say_reason(floor.doubt) if floor.doubt else "it rests on too few differences"
        return f"The noise floor is not used: {doubt}"
    return f"Noise floor {render_effect(floor.s0)}: {_say_sensitivity(seen)}"


def _say_sensitivity(seen: Sensitivity) -> str:
    if seen.effect is None:
        return f"{count(seen.blocks, 'block')} too few to show anything"
    blocks = count(seen.blocks, "block")
    return f"differences from {render_effect(seen.effect)} on are found with {blocks} by four studies of five"


def say_seconds(study: Study, cell: str) -> str:
    """A run (1 min) is worth about 9 independent seconds.

    Empty for a cell in slices, and for runs that are too short to tell.
    """
    found = weigh_seconds(study.runs, cell)
    if found is None or found.worth is None:
        return ""
    worth = count(max(1, round(found.worth)), "independent second")
    return f"A run ({render_duration(found.seconds)}) is worth about {worth}"


def seconds_json(study: Study, cell: str) -> dict[str, Any] | None:
    """As `say_seconds`; lengths in seconds, None where nothing is known."""
    found = weigh_seconds(study.runs, cell)
    return None if found is None else {"cell": cell, **pick_fields(found, "runs seconds worth")}
