"""What a study does not say: the limits of its design, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from pgstrata.model.answer import Answer, Study
from pgstrata.model.experiment import Experiment, Interleave
from pgstrata.report.names import count
from pgstrata.report.rows import count_blocks
from pgstrata.report.verdicts import primary_comparisons
from pgstrata.units import render_duration


def unmeasured(answer: Answer) -> tuple[str, ...]:
    """Sentences without a full stop, the most general first."""
    return (
        "One machine: nothing is claimed about others",
        *_say_load(answer.study.plan.experiment),
        *_say_alternation(answer.study),
        *_say_checkpoints(answer.study),
        *_say_statistics(answer),
    )


def _say_load(experiment: Experiment) -> Iterator[str]:
    closed = [cell for cell in experiment.cells if cell.rate is None]
    if closed:
        where = "" if len(closed) == len(experiment.cells) else " in the cells without a rate"
        yield (
            f"Closed loop{where}: each client waits for its answer before it asks again, so latency is service time, "
            "without the waiting of users whom a busy server keeps in a queue"
        )


def _say_alternation(study: Study) -> Iterator[str]:
    if study.plan.interleave is not Interleave.SLICES:
        yield (
            "Run by run: one environment was up at a time, and what the machine did meanwhile hit that one alone; "
            "blocks in random order make it even in the long run only"
        )


def _say_checkpoints(study: Study) -> Iterator[str]:
    """Only where no run is long enough for one checkpoint by time."""
    experiment = study.plan.experiment
    fingerprint = study.environments.get(experiment.baseline)
    timeout = fingerprint.facts.get("settings.checkpoint_timeout", "") if fingerprint else ""
    longest = max((cell.run for cell in experiment.cells), default=0.0)
    if timeout.isdecimal() and longest < int(timeout):
        yield (
            f"Runs of at most {render_duration(longest)} with a checkpoint_timeout of {render_duration(int(timeout))}: "
            "checkpoints by time, and what builds up slowly (bloat, autovacuum), are hardly in them"
        )


def _say_statistics(answer: Answer) -> Iterator[str]:
    primary = primary_comparisons(answer)
    if not primary:
        return
    measured, planned = count_blocks(answer.study), len(answer.study.plan.blocks)
    chance = 1 - primary[0].confidence
    blocks = f"at the {count(planned, 'planned block')}"
    if measured < planned:
        blocks = f"after {measured} of {count(planned, 'planned block')}, which is earlier than planned"
    yield f"Each cell is judged alone, {blocks}: where nothing differs, up to {chance * 100:.2g} % come out different"
    if len(primary) > 1:
        yield (
            f"No correction over cells and environments: if nothing differed in any of the {len(primary)} comparisons, "
            f"up to {chance * len(primary):.1f} of them would still come out different by chance"
        )
