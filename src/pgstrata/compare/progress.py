"""What is still to be measured: the comparisons that are open after so many blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgstrata.compare.pairing.arms import Arms, find_arm, sort_runs
from pgstrata.compare.statements import open_statements
from pgstrata.compare.verdicts.comparisons import find, to_comparison
from pgstrata.compare.verdicts.judging import Judged, Primary, ask, judge_primary
from pgstrata.model.answer import Comparison
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a look at the runs found: pairs of environment and cell that are open, and how the headlines stand."""

    pairs: frozenset[tuple[str, str]]
    headlines: tuple[Comparison, ...] = ()


def open_pairs(plan: Plan, runs: Sequence[RunRecord], number: int) -> frozenset[tuple[str, str]]:
    """The pairs of `look_at`."""
    return look_at(plan, runs, number).pairs


def look_at(plan: Plan, runs: Sequence[RunRecord], number: int) -> Look:
    """What block `number` has to hold, as pairs of environment and cell; empty when everything is decided.

    All cells of environments whose headline is open, of the others the cells that are open themselves, controls alike,
    and the baseline in all these cells. Cells in which the environment or the baseline collapsed are closed. The
    primary metric counts, and statements with a name of their own in cells with a profile. Without anything to compare,
    every block holds everything.

    Args:
        plan: what was to be measured.
        runs: what was measured so far, in any order, with `COMPARED_SERIES`; only blocks before `number` count, so
            that a block that was interrupted is finished as it was begun.
        number: of the block, from 1.

    Raises:
        ValueError: a run is there twice.
    """
    experiment = plan.experiment
    question = ask(plan)
    if not question.environments:
        return Look(pairs=frozenset((experiment.baseline, cell.identity) for cell in experiment.cells))
    earlier = [run for run in runs if run.block < number]
    arms = sort_runs(earlier, frozenset((experiment.metric,)))
    primary = judge_primary(question, arms)
    live = [
        cell.identity for cell in experiment.cells if not find_arm(arms, experiment.baseline, cell.identity).is_closed
    ]
    wanted = {(name, cell) for name in question.environments for cell in _open_cells(primary, arms, name, live)}
    wanted |= {
        (name, cell)
        for name, cell in open_statements(plan, earlier)
        if cell in live and not find_arm(arms, name, cell).is_closed
    }
    return Look(
        pairs=frozenset(wanted | {(experiment.baseline, cell) for _, cell in wanted}),
        headlines=tuple(to_comparison(find(judged, over=False), ()) for judged in primary.headlines.values()),
    )


def _open_cells(primary: Primary, arms: Arms, environment: str, live: Sequence[str]) -> Iterable[str]:
    """Cells of one environment, out of those in which there is a baseline to compare with."""
    closed = {cell for cell in live if find_arm(arms, environment, cell).is_closed}
    if not closed and _is_open(primary.headlines[environment]):
        return live
    cells = {cell: primary.cells.get((environment, cell)) for cell in live if cell not in closed}
    return [cell for cell, judged in cells.items() if judged is not None and _is_open(judged)]


def _is_open(judged: Judged) -> bool:
    return not judged.decision.decided
