"""The doubts about one comparison, as warnings with stable codes.

About the verdict: insufficient_blocks, undecided, control_differs. About the runs: incomplete, imbalance, suspect_runs,
collapsed_runs, baseline_collapsed, both_collapsed. About what happened beside the runs: checkpoints_differ,
autovacuums_differ, wal_differs.
"""

from __future__ import annotations

import statistics
from typing import Final

from pgstrata.compare.pairs import Arm, Pairing
from pgstrata.model.answer import ResultWarning, Verdict
from pgstrata.model.plan import Plan
from pgstrata.stats.rule import MIN_BLOCKS, Estimate
from pgstrata.units import render_bytes

# Above this share of invalid runs those that remain may be a selection.
_IMBALANCE: Final = 0.2
_UNEQUAL_COUNT: Final = 0.5
_UNEQUAL_WAL: Final = 2.0
_LITTLE_WAL: Final = 100.0


def find_doubts(plan: Plan, pairing: Pairing, estimate: Estimate | None, verdict: Verdict) -> tuple[ResultWarning, ...]:
    """All doubts about one comparison; `estimate` is None where none is shown."""
    return (
        *_warn_of_verdict(plan, pairing, estimate, verdict),
        *_warn_of_blocks(plan, pairing.arm, pairing.base),
        *_warn_of_collapse(pairing.arm, pairing.base),
        *_warn_of_validity(pairing.arm),
        *_warn_of_validity(pairing.base),
        *(_warn_of_companions(pairing.arm, pairing.base) if pairing.metric == plan.experiment.metric else ()),
    )


def _warn_of_verdict(plan: Plan, pairing: Pairing, estimate: Estimate | None, verdict: Verdict) -> list[ResultWarning]:
    if verdict is Verdict.INSUFFICIENT and not pairing.base.has_collapsed:
        pairs, planned = pairing.values.size, len(plan.blocks)
        text = f"{_count(pairs, 'usable block')}, {MIN_BLOCKS - pairs} more needed for an interval"
        if planned < MIN_BLOCKS:
            text += f"; the plan has only {planned}"
        return [ResultWarning(code="insufficient_blocks", text=text)]
    if verdict is Verdict.INCONCLUSIVE and estimate is not None and estimate.interval is not None:
        bounds = pairing.interval(estimate.interval)
        assert bounds is not None
        text = f"the difference lies between {_signed(bounds.low)} and {_signed(bounds.high)}"
        return [ResultWarning(code="undecided", text=text)]
    if pairing.environment.control is not None and verdict in {Verdict.BETTER, Verdict.WORSE}:
        text = (
            f"a control ({pairing.environment.control}) must not differ, but came out {verdict}: doubt the others too"
        )
        return [ResultWarning(code="control_differs", text=text)]
    return []


def _warn_of_blocks(plan: Plan, arm: Arm, base: Arm) -> list[ResultWarning]:
    measured, planned = len(arm.blocks & base.blocks), len(plan.blocks)
    if measured >= planned:
        return []
    return [
        ResultWarning(code="incomplete", text=f"stopped early: {measured} of {planned} planned blocks were measured")
    ]


def _warn_of_collapse(arm: Arm, base: Arm) -> list[ResultWarning]:
    warnings = []
    if base.has_collapsed:
        code, who = (
            ("both_collapsed", "both environments") if arm.has_collapsed else ("baseline_collapsed", "the baseline")
        )
        warnings.append(ResultWarning(code=code, text=f"{who} collapsed at this load: nothing to compare with"))
    for side in (arm, base):
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


def _warn_of_companions(arm: Arm, base: Arm) -> list[ResultWarning]:
    warnings = []
    for metric, word in (("checkpoints", "checkpoints"), ("autovacuums", "autovacuum runs")):
        ours, theirs = (_mean(side, metric) for side in (arm, base))
        if ours is not None and theirs is not None and abs(ours - theirs) >= _UNEQUAL_COUNT:
            text = (
                f"{word} in a run: {ours:.1f} in {arm.name}, {theirs:.1f} in {base.name}: the arms did not share them"
            )
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


def _signed(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f} %"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
