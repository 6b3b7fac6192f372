"""The doubts about one comparison, as warnings with stable codes.

About the verdict: insufficient_blocks, undecided, unstable, control_differs, small_and_early.
About the runs: incomplete, measured_apart, neighbours_differ, imbalance, suspect_runs, anomalies_differ,
collapsed_runs, baseline_collapsed, both_collapsed, collapsed_cells, cells_left_out, not_steady. About what happened
beside the runs: checkpoints_differ, autovacuums_differ, wal_differs.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Final

from pgstrata.compare.pairing.arms import Arm
from pgstrata.compare.pairing.pairs import Pairing
from pgstrata.compare.verdicts.stability import compare_rates, say_instability
from pgstrata.model.answer import ALL_CELLS, Lane, ResultWarning, Verdict
from pgstrata.stats.anomaly import Stability
from pgstrata.stats.boundaries import C_DIFF, GRID, boundary
from pgstrata.stats.rule import Decision, Estimate
from pgstrata.stats.student import is_shift
from pgstrata.units import render_bytes, render_duration, render_percent_change

# Above this share of invalid runs those that remain may be a selection.
_IMBALANCE: Final = 0.2
# A start that is lower by this share for a fifth of the run lowers its throughput by 0.6 %.
_OPENING: Final = 0.03
_UNEQUAL_COUNT: Final = 0.5
_UNEQUAL_WAL: Final = 2.0
_LITTLE_WAL: Final = 100.0
# Effects that are found early come out too large: by 0.75 points where they are 2 %, 0.37 at 3 %, 0.13 at 5 %.
_SMALL: Final = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a comparison came to, with what its doubts depend on.

    `estimate` is None where none is shown; `instability` is there where the verdict is `unstable`; `floor` is s0 in log
    units; `over` if its blocks ended because what they were measured for was decided; `headline`
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


def find_doubts(finding: Finding) -> tuple[ResultWarning, ...]:
    """All doubts about one comparison."""
    pairing = finding.pairing
    arm, base = pairing.arm, pairing.base
    alone = finding.pairing.question.primary and pairing.cell != ALL_CELLS
    return (
        *warn_of_verdict(finding),
        *(_warn_of_stopping(finding) if finding.pairing.question.primary else ()),
        *_warn_of_blocks(finding),
        *_warn_of_collapse(pairing),
        *_warn_of_validity(arm),
        *_warn_of_validity(base),
        *(_warn_of_opening(pairing, arm) if alone else ()),
        *(_warn_of_opening(pairing, base) if alone else ()),
        *(_warn_of_companions(finding) if alone else ()),
    )


# ------------------------------------------------------------------------------------------------ verdict


def warn_of_verdict(finding: Finding) -> list[ResultWarning]:
    """What the verdict itself leaves to be said, whoever measured it."""
    pairing, verdict = finding.pairing, finding.verdict
    if verdict is Verdict.INSUFFICIENT and not pairing.baseless:
        return [ResultWarning(code="insufficient_blocks", text=_say_insufficient(finding))]
    if verdict is Verdict.INCONCLUSIVE and finding.estimate is not None:
        bounds = pairing.interval(finding.estimate.interval)
        assert bounds is not None
        low, high = (render_percent_change(ratio) for ratio in (bounds.low, bounds.high))
        text = f"the difference lies between {low} and {high}"
        return [ResultWarning(code="undecided", text=text)]
    if finding.instability is not None:
        return [say_instability(pairing, finding.decision.n, finding.instability)]
    if pairing.control is not None and verdict in {Verdict.BETTER, Verdict.WORSE}:
        text = f"a control ({pairing.control}) must not differ, but came out {verdict}: doubt the others too"
        return [ResultWarning(code="control_differs", text=text)]
    return []


def _say_insufficient(finding: Finding) -> str:
    pairs, planned, level = len(finding.pairing.blocks), finding.pairing.question.blocks, finding.decision.alpha
    if level < GRID[-1]:
        return "so many headlines share the error probability that no number of blocks gives an interval"
    needed = boundary(level).first
    text = f"{_count(pairs, 'usable block')}, {needed - pairs} more needed for an interval"
    if finding.decision.lane is Lane.ONE_LOOK:
        return text
    if level < C_DIFF.alpha:
        text += f" at the level of {level:g} that is left to each of several headlines"
    return f"{text}; the plan has only {planned}" if planned < needed else text


def _warn_of_stopping(finding: Finding) -> list[ResultWarning]:
    """What early looks do to small effects."""
    pairing, decision, estimate = finding.pairing, finding.decision, finding.estimate
    different = finding.verdict in {Verdict.BETTER, Verdict.WORSE} and pairing.control is None
    small = estimate is not None and abs(pairing.ratio(estimate.centre) - 1) < _SMALL
    if different and small and decision.n < pairing.question.blocks:
        text = "found early, where effects below 3 % come out larger than they are: confirm in a fresh study"
        return [ResultWarning(code="small_and_early", text=text)]
    return []


# ------------------------------------------------------------------------------------------------ runs


def _warn_of_blocks(finding: Finding) -> list[ResultWarning]:
    pairing, warnings = finding.pairing, []
    measured, planned = len(pairing.arm.blocks & pairing.base.blocks), pairing.question.blocks
    if measured < planned and not finding.over:
        text = f"stopped early: {measured} of {planned} planned blocks were measured"
        warnings.append(ResultWarning(code="incomplete", text=text))
    if pairing.apart:
        text = (
            f"in {_count(pairing.apart, 'block')} the two environments did not take turns with each other, as after an "
            "interruption: not in the estimate"
        )
        warnings.append(ResultWarning(code="measured_apart", text=text))
    if pairing.crowded:
        text = (
            f"in {_count(pairing.crowded, 'block')} other processes used the CPUs beside one of the two environments "
            "only: not in the estimate"
        )
        warnings.append(ResultWarning(code="neighbours_differ", text=text))
    return warnings


def _warn_of_collapse(pairing: Pairing) -> list[ResultWarning]:
    arm, base, warnings = pairing.arm, pairing.base, []
    if pairing.baseless:
        both = pairing.cell != ALL_CELLS and arm.has_collapsed
        code, who = ("both_collapsed", "both environments") if both else ("baseline_collapsed", "the baseline")
        warnings.append(ResultWarning(code=code, text=f"{who} collapsed at this load: nothing to compare with"))
    elif pairing.left_out:
        text = f"without the cells in which the baseline collapsed: {', '.join(pairing.left_out)}"
        warnings.append(ResultWarning(code="cells_left_out", text=text))
    if pairing.collapsed_in and pairing.cell == ALL_CELLS:
        text = f"{arm.name} collapsed in {_count(len(pairing.collapsed_in), 'cell')}: {', '.join(pairing.collapsed_in)}"
        warnings.append(ResultWarning(code="collapsed_cells", text=text))
    for side in (arm, base) if pairing.is_estimable and not pairing.left_out else ():
        if side.collapsed and not side.has_collapsed:
            text = (
                f"{side.collapsed} of {_count(side.made, 'run')} of {side.name} collapsed and are not in the estimate"
            )
            warnings.append(ResultWarning(code="collapsed_runs", text=text))
    return warnings


def _warn_of_validity(side: Arm) -> list[ResultWarning]:
    warnings = []
    if side.invalid > _IMBALANCE * side.made:
        text = f"{side.invalid} of {_count(side.made, 'run')} of {side.name} are invalid: the others may be a selection"
        warnings.append(ResultWarning(code="imbalance", text=text))
    if side.suspect:
        text = f"{side.suspect} of {_count(side.made, 'run')} of {side.name} are suspect and in the estimate"
        warnings.append(ResultWarning(code="suspect_runs", text=text))
    return warnings


def _warn_of_opening(pairing: Pairing, side: Arm) -> list[ResultWarning]:
    """A warm-up that went on while it was measured, as the runs show together: seconds depend on each other."""
    if not is_shift(side.openings) or abs(statistics.fmean(side.openings)) < _OPENING:
        return []
    run = pairing.question.run_seconds[pairing.cell]
    off = render_percent_change(1 + statistics.fmean(side.openings))
    text = (
        f"throughput of {side.name} is not steady: {off} in the first fifth of its runs, compared with the rest; the "
        f"difference includes this; give the cell a longer warm-up (warmup, by {render_duration(run / 2)} or more) or "
        "longer runs"
    )
    return [ResultWarning(code="not_steady", text=text)]


# ------------------------------------------------------------------------------------------------ beside the runs


def _warn_of_companions(finding: Finding) -> list[ResultWarning]:
    arm, base = finding.pairing.arm, finding.pairing.base
    rates = compare_rates(finding.pairing, finding.floor)
    warnings = [rates] if rates is not None else []
    for metric, word in (("checkpoints", "checkpoints"), ("autovacuums", "autovacuum runs")):
        ours, theirs = (_mean(side, metric) for side in (arm, base))
        if ours is not None and theirs is not None and abs(ours - theirs) >= _UNEQUAL_COUNT:
            text = f"{word} in a run: {ours:.1f} in {arm.name}, {theirs:.1f} in {base.name}: they did not share them"
            warnings.append(ResultWarning(code=f"{metric}_differ", text=text))
    ours, theirs = (_mean(side, "wal_per_tx") for side in (arm, base))
    if ours and theirs and max(ours, theirs) > _LITTLE_WAL and not 1 / _UNEQUAL_WAL < ours / theirs < _UNEQUAL_WAL:
        text = (
            f"WAL per transaction: {render_bytes(ours)} in {arm.name}, {render_bytes(theirs)} in {base.name}; right "
            "after a checkpoint the first change of each page is logged whole, which weighs more on fewer "
            "transactions: over whole checkpoint cycles the difference may be another"
        )
        warnings.append(ResultWarning(code="wal_differs", text=text))
    return warnings


def _mean(side: Arm, metric: str) -> float | None:
    found = side.companions.get(metric)
    return statistics.fmean(found) if found else None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
