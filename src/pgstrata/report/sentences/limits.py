"""What a study does not say: the limits of its design, in sentences."""

from collections.abc import Iterator, Sequence
from statistics import median, quantiles
from typing import Final

from pgstrata.compare.headlines import headline_comparisons, primary_comparisons
from pgstrata.model.answer import ALL_CELLS, Answer
from pgstrata.model.experiment import Cell, Experiment
from pgstrata.model.metrics import TPS
from pgstrata.model.objective import step_seconds
from pgstrata.model.study import Study
from pgstrata.plan.design import AGREED
from pgstrata.report.sentences.names import count, name_where
from pgstrata.report.sentences.verdicts import render_confidence
from pgstrata.sources.runs import may_enter
from pgstrata.stats.boundaries import ALPHA
from pgstrata.units import render_duration

# Slices below this length show what caches cost at their start.
_LONG_SLICE = 0.5
# Fewer visits of environments say too little of what the log costs: each stretch is short.
_LEAST_STRETCHES: Final = 6


def unmeasured(answer: Answer) -> tuple[str, ...]:
    """Sentences without a full stop, the most general first."""
    return (
        _say_machines(answer.study.plan.experiment),
        *_say_load(answer.study.plan.experiment),
        *_say_runs(answer.study),
        *_say_slices(answer.study),
        *_say_checkpoints(answer.study),
        *_say_stopping(answer),
        *_say_multiplicity(answer),
        *_say_floors(answer),
    )


def _say_machines(experiment: Experiment) -> str:
    number = len(experiment.hosts)
    if number == 1:
        return "One machine: nothing is claimed about others"
    return f"{number} machines: nothing is claimed about others, such as further ones of the same types"


def _say_load(experiment: Experiment) -> Iterator[str]:
    closed = [cell for cell in experiment.cells if not cell.paced and cell.objective is None]
    if closed:
        where = "" if len(closed) == len(experiment.cells) else " in the cells without a rate"
        yield (
            f"Closed loop{where}: each client waits for its answer before it asks again, so latency is service time, "
            "without the time that users of a busy server wait in a queue"
        )
    if searched := [cell for cell in experiment.cells if cell.objective is not None]:
        shortest = render_duration(min(step_seconds(cell.run) for cell in searched))
        yield (
            f"Each rate was tried for a few seconds (steps of {shortest}): what happens less often, such as a "
            "checkpoint, fell into some steps only"
        )


def _say_runs(study: Study) -> Iterator[str]:
    alone = [cell for cell in study.plan.experiment.cells if not study.plan.design(cell.identity).sliced]
    if alone:
        yield (
            f"Run by run{_where(alone, study)}: one environment was up at a time, so background load hit that one "
            "alone. Random order evens this out over many blocks only"
        )


def _is_unproven(cell: Cell, study: Study) -> bool:
    """Whether a cell in slices writes, and nobody has held its slices against whole runs."""
    agreed = not cell.scripts and cell.workload in AGREED
    return study.plan.design(cell.identity).settle and not agreed


def _say_slices(study: Study) -> Iterator[str]:
    experiment = study.plan.experiment
    sliced = [cell for cell in experiment.cells if study.plan.design(cell.identity).sliced]
    if not sliced:
        return
    yield (
        f"In slices{_where(sliced, study)}: the environments were up at the same time and shared the page cache and "
        "the processor's last-level cache, for which they compete"
    )
    if writing := [cell for cell in sliced if _is_unproven(cell, study)]:
        yield (
            f"Slices of workloads that write{_where(writing, study)}: nothing shows yet that they agree with whole "
            "runs, because a paused server may write during another one's slice"
        )
    yield (
        "Transactions in flight when a slice ends are finished and counted when it goes on, and are left out of latency"
    )
    shortest = min(study.plan.design(cell.identity).slice_seconds for cell in sliced)
    if shortest < _LONG_SLICE:
        yield (
            f"Slices of {render_duration(shortest)} carry the start effects of caches that another environment has "
            "used in between, the same in all environments"
        )
    stretched = max((study.plan.design(cell.identity).stretched or 0 for cell in sliced), default=0)
    visits = f"each of the first {stretched} visits" if stretched else "each visit"
    yield (
        "During slices every transaction is logged, at the same cost in all environments; absolute throughput comes "
        f"from a stretch of {visits} without that log"
    )
    costs = [text for cell in sliced if (text := _say_cost(study, cell))]
    if costs:
        yield (
            f"Throughput in slices differed from that of the stretch by {'; '.join(costs)}: what the log and taking "
            "turns cost together, and the machine's drift in between"
        )


def _say_cost(study: Study, cell: Cell) -> str:
    """The median of (slices / stretch - 1) over the usable runs of a cell, each by its median round; or nothing."""
    found = [
        100 * (median(rounds) / stretch - 1)
        for run in study.runs
        if run.cell == cell.identity and may_enter(run)
        if (rounds := run.rounds()) and (stretch := run.value(TPS.name))
    ]
    if len(found) < _LEAST_STRETCHES:
        return ""
    low, middle, high = quantiles(found, n=4, method="inclusive")
    experiment = study.plan.experiment
    where = f"{name_where(cell.identity, experiment)}, " if len(experiment.cells) > 1 else ""
    return f"{middle:+.1f} % ({where}median of {len(found)} runs, half of them from {low:+.1f} to {high:+.1f} %)"


def _where(cells: Sequence[Cell], study: Study) -> str:
    """Nothing where it is all of them, else in which."""
    experiment = study.plan.experiment
    if len(cells) == len(experiment.cells):
        return ""
    return f" ({', '.join(name_where(cell.identity, experiment) for cell in cells)})"


def _say_checkpoints(study: Study) -> Iterator[str]:
    """Only where no run is long enough for one checkpoint by time."""
    experiment = study.plan.experiment
    fingerprint = study.environments.get(experiment.baseline)
    timeout = fingerprint.facts.get("settings.checkpoint_timeout", "") if fingerprint else ""
    longest = max((_length(study, cell) for cell in experiment.cells), default=0.0)
    if timeout.isdecimal() and longest < int(timeout):
        yield (
            f"At most {render_duration(longest)} were measured at a stretch, with a checkpoint_timeout of "
            f"{render_duration(int(timeout))}: timed checkpoints and what builds up slowly (bloat, autovacuum) hardly "
            "show"
        )


def _length(study: Study, cell: Cell) -> float:
    design = study.plan.design(cell.identity)
    return design.slice_seconds * design.rounds if design.sliced else cell.run


def _say_stopping(answer: Answer) -> Iterator[str]:
    primary = primary_comparisons(answer)
    if not primary:
        return
    measured, planned = answer.study.measured_blocks, len(answer.study.plan.blocks)
    if any(item.decided_at is not None for item in primary):
        yield (
            "Each comparison was tested after every block and ended at its verdict, which the intervals allow for. "
            "Effects that end a comparison early are on average a little overestimated"
        )
    if measured < planned and any(item.decided_at is None for item in primary):
        yield f"After {measured} of {count(planned, 'planned block')}: what is undecided may still be decided"


def _say_multiplicity(answer: Answer) -> Iterator[str]:
    """What chance still makes of comparisons in which nothing differs."""
    asked = [item for item in primary_comparisons(answer) if not item.control]
    headlines = [item for item in asked if item.cell == ALL_CELLS]
    cells = [item for item in asked if item.cell != ALL_CELLS]
    # A single cell is its own headline.
    family = headlines or (cells if len(answer.study.plan.experiment.cells) == 1 else [])
    chance = render_confidence(ALPHA)
    if len(family) == 1:
        yield f"Where nothing differs, up to {chance} of such headlines come out different"
    elif family:
        yield (
            f"The {len(family)} headlines are corrected for their number (Holm): where nothing differs, up to {chance} "
            "of such studies call any of them different"
        )
    if len(cells) > 1 and family != cells:
        expected = sum(item.level for item in cells)
        yield (
            f"Single cells are exploratory, each judged alone. If nothing differed in any of the {len(cells)}, up to "
            f"{expected:.1f} would still come out different by chance, which adjusted p (Benjamini-Hochberg) allows for"
        )


def _say_floors(answer: Answer) -> Iterator[str]:
    plan = answer.study.plan
    names = [cell.identity for cell in plan.experiment.cells] + ([ALL_CELLS] if headline_comparisons(answer) else [])
    if primary_comparisons(answer) and not any(name in plan.floors for name in names):
        yield (
            "No noise floor is known for this host and design, so the smallest effect that can be seen is unknown: "
            "`pgstrata floor` measures it"
        )
