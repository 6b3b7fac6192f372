"""The doubts about one comparison: about its verdict, its runs, and what happened beside the runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.compare.pairing.arms import Arm
from pgstrata.compare.pairing.pairs import Pairing
from pgstrata.compare.verdicts.stability import compare_rates, describe_instability
from pgstrata.model.answer import ALL_CELLS, Lane, Verdict
from pgstrata.model.doubts import (
    ControlDiffers,
    CountedDoubt,
    Doubt,
    NamedDoubt,
    NotSteady,
    PlainDoubt,
    SidesDiffer,
    TooFewBlocks,
    Undecided,
)
from pgstrata.stats.anomaly import Stability
from pgstrata.stats.boundaries import ALPHA, GRID, boundaries_of, fewest_blocks
from pgstrata.stats.rule import Decision, Estimate
from pgstrata.stats.student import is_shift

# Above this share of invalid runs those that remain may be a selection.
_IMBALANCE: Final = 0.2
# A start that is lower by this share for a fifth of the run lowers its throughput by 0.6 %.
_OPENING: Final = 0.03
_UNEQUAL_COUNT: Final = 0.5
_UNEQUAL_WAL: Final = 2.0
LITTLE_WAL: Final = 100.0
"""Bytes per transaction up to which a workload does not count as one that writes."""
# Effects that are found early come out too large: by 0.75 points where they are 2 %, 0.37 at 3 %, 0.13 at 5 %.
_SMALL: Final = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a comparison came to, with what its doubts depend on.

    `estimate` is None where none is shown; `instability` is how the differences fall apart, None where they do not;
    `floor` is s0 in log units; `over` if its blocks ended because what they were measured for was decided; `headline`
    unless it is exploratory.
    """

    pairing: Pairing
    decision: Decision
    verdict: Verdict
    estimate: Estimate | None
    instability: Stability | None
    floor: float | None
    over: bool
    headline: bool

    @property
    def used(self) -> int:
        """Blocks that the decision rests on."""
        if not self.pairing.paired:
            return 0
        return self.decision.n if self.pairing.is_estimable else len(self.pairing.blocks)


def find_doubts(finding: Finding) -> tuple[Doubt, ...]:
    """All doubts about one comparison."""
    pairing = finding.pairing
    arm, base = pairing.arm, pairing.base
    alone = finding.pairing.question.primary and pairing.cell != ALL_CELLS
    return (
        *warn_of_verdict(finding),
        *(_warn_of_stopping(finding) if finding.pairing.question.primary else ()),
        *_warn_of_blocks(finding),
        *_warn_of_collapse(pairing),
        *warn_of_validity(arm),
        *warn_of_validity(base),
        *(warn_of_opening(pairing, arm) if alone else ()),
        *(warn_of_opening(pairing, base) if alone else ()),
        *(_warn_of_companions(finding) if alone else ()),
    )


# ------------------------------------------------------------------------------------------------ verdict


def warn_of_verdict(finding: Finding) -> Iterator[Doubt]:
    """What the verdict itself leaves to be said, whoever measured it."""
    pairing, verdict = finding.pairing, finding.verdict
    if verdict is Verdict.INSUFFICIENT and not pairing.baseless:
        yield _count_blocks(finding)
    elif verdict is Verdict.INCONCLUSIVE and finding.estimate is not None:
        bounds = pairing.interval(finding.estimate.interval)
        assert bounds is not None
        yield Undecided(low=bounds.low, high=bounds.high)
    elif pairing.control is not None and verdict in {Verdict.BETTER, Verdict.WORSE}:
        yield ControlDiffers(control=pairing.control, verdict=verdict)
    if finding.instability is not None:
        yield describe_instability(pairing, finding.decision, finding.instability)


def _count_blocks(finding: Finding) -> TooFewBlocks:
    pairs, planned, level = len(finding.pairing.blocks), finding.pairing.question.blocks, finding.decision.alpha
    if finding.decision.lane is Lane.ONE_LOOK:
        return TooFewBlocks(blocks=pairs, needed=fewest_blocks(level))
    if level < GRID[-1]:
        return TooFewBlocks(blocks=pairs, needed=None)
    needed = boundaries_of(finding.pairing.question.horizon).at(level).first
    return TooFewBlocks(
        blocks=pairs,
        needed=needed,
        level=level if level < ALPHA else None,
        planned=planned if planned < needed else None,
    )


def _warn_of_stopping(finding: Finding) -> Iterator[Doubt]:
    """What early looks do to small effects."""
    pairing, decision, estimate = finding.pairing, finding.decision, finding.estimate
    different = finding.verdict in {Verdict.BETTER, Verdict.WORSE} and pairing.control is None
    small = estimate is not None and abs(pairing.ratio(estimate.centre) - 1) < _SMALL
    if different and small and decision.n < pairing.question.blocks:
        yield PlainDoubt(code="small_and_early")


# ------------------------------------------------------------------------------------------------ runs


def _warn_of_blocks(finding: Finding) -> Iterator[Doubt]:
    pairing = finding.pairing
    measured, planned = len(pairing.arm.blocks & pairing.base.blocks), pairing.question.blocks
    if measured < planned and not finding.over:
        yield CountedDoubt(code="incomplete", number=measured, of=planned)
    if pairing.apart:
        yield CountedDoubt(code="measured_apart", number=pairing.apart, of=planned)
    if pairing.uneven:
        yield CountedDoubt(code="neighbours_differ", number=pairing.uneven, of=planned)


def _warn_of_collapse(pairing: Pairing) -> Iterator[Doubt]:
    arm, base = pairing.arm, pairing.base
    if pairing.baseless:
        both = pairing.cell != ALL_CELLS and arm.has_collapsed
        yield PlainDoubt(code="both_collapsed" if both else "baseline_collapsed")
    elif pairing.left_out:
        yield NamedDoubt(code="cells_left_out", names=pairing.left_out)
    if pairing.collapsed_in and pairing.cell == ALL_CELLS:
        yield NamedDoubt(code="collapsed_cells", names=pairing.collapsed_in, of=arm.name)
    for side in (arm, base) if pairing.is_estimable and not pairing.left_out else ():
        if side.collapsed and not side.has_collapsed:
            yield CountedDoubt(code="collapsed_runs", number=side.collapsed, of=side.made, environment=side.name)


def warn_of_validity(side: Arm) -> Iterator[Doubt]:
    """Runs that are not in the estimate, or in it with doubts."""
    if side.invalid > _IMBALANCE * side.made:
        yield CountedDoubt(code="imbalance", number=side.invalid, of=side.made, environment=side.name)
    if side.suspect:
        yield CountedDoubt(code="suspect_runs", number=side.suspect, of=side.made, environment=side.name)


def warn_of_opening(pairing: Pairing, side: Arm) -> Iterator[Doubt]:
    """A warm-up that went on while it was measured, as the runs show together: seconds depend on each other."""
    if is_unsettled(side.openings):
        opening, seconds = statistics.fmean(side.openings), pairing.question.run_seconds[pairing.cell]
        yield NotSteady(environment=side.name, opening=opening, seconds=seconds)


def is_unsettled(openings: Sequence[float]) -> bool:
    """Whether first fifths of runs differ from the rest (`sources.seconds.opening_of`) by more than chance would."""
    return is_shift(openings) and abs(statistics.fmean(openings)) >= _OPENING


# ------------------------------------------------------------------------------------------------ beside the runs


def _warn_of_companions(finding: Finding) -> Iterator[Doubt]:
    arm, base = finding.pairing.arm, finding.pairing.base
    rates = compare_rates(finding.pairing, finding.floor)
    if rates is not None:
        yield rates
    names = (arm.name, base.name)
    for metric in ("checkpoints", "autovacuums"):
        ours, theirs = (_mean(side, metric) for side in (arm, base))
        if ours is not None and theirs is not None and abs(ours - theirs) >= _UNEQUAL_COUNT:
            yield SidesDiffer(
                code="checkpoints_differ" if metric == "checkpoints" else "autovacuums_differ",
                environments=names,
                values=(ours, theirs),
            )
    ours, theirs = (_median(side, "wal_per_tx") for side in (arm, base))
    if ours and theirs and max(ours, theirs) > LITTLE_WAL and not 1 / _UNEQUAL_WAL < ours / theirs < _UNEQUAL_WAL:
        yield SidesDiffer(code="wal_differs", environments=names, values=(ours, theirs))


def _mean(side: Arm, metric: str) -> float | None:
    found = side.companions.get(metric)
    return statistics.fmean(found) if found else None


def _median(side: Arm, metric: str) -> float | None:
    found = side.companions.get(metric)
    return statistics.median(found) if found else None
