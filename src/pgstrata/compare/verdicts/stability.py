"""Whether one percentage can describe a comparison at all, and whose runs stray.

Judged on the block differences: what a machine does to both environments of a block makes neither of them unstable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pgstrata.compare.pairing.pairs import Pairing
from pgstrata.model.answer import Lane, ResultWarning, Verdict
from pgstrata.stats.anomaly import (
    JUDGED_FROM,
    Stability,
    fisher_exact,
    judge_differences,
    judge_stability,
    run_limit,
)
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.rule import Decision
from pgstrata.units import render_percent_change

_UNEQUAL_RATES = 0.05


def find_instability(pairing: Pairing, decision: Decision, floor: float | None) -> Stability | None:
    """How the differences fall apart, None where one percentage describes them.

    Two groups of differences are enough. Many that lie far out are not: the outliers of two sound environments add up,
    so that those of one of them have to be many too (at 2 to 5 % of outliers 0.4 % of the comparisons come out
    unstable, against 2 to 4 % otherwise). Of what others measured nobody guarded the runs, so that there they are
    enough, but too few blocks for any interval are told first.

    Args:
        pairing: the comparison.
        decision: what the rule came to.
        floor: noise floor s0 in log units, None if there is none.
    """
    if decision.lane is Lane.ONE_LOOK:
        return judge_differences(pairing.sample) if decision.verdict is not Verdict.INSUFFICIENT else None
    used = decision.n if pairing.is_estimable else len(pairing.blocks)
    found = judge_differences(pairing.sample[:used], floor)
    if found is None or found.modes is not None or unstable_sides(pairing, used):
        return found
    return None


def unstable_sides(pairing: Pairing, used: int) -> list[str]:
    """The environments whose own runs are unstable."""
    sides = ((pairing.arm, pairing.levels), (pairing.base, pairing.base_levels))
    return [side.name for side, values in sides if judge_stability(np.log(values[:used]), None).is_unstable]


def say_instability(pairing: Pairing, used: int, found: Stability) -> ResultWarning:
    """What keeps the differences from being one percentage, and in which environment it is seen."""
    if found.modes is not None:
        low, high = (render_percent_change(pairing.ratio(d)) for d in (found.modes.low, found.modes.high))
        share = found.modes.share_high
        text = (
            f"the blocks fall into two groups, {_percent(1 - share)} of them around {low} and "
            f"{_percent(share)} around {high}"
        )
    else:
        limit = math.expm1(found.limit) * 100
        text = f"{len(found.anomalies)} of {found.judged} blocks lie more than {limit:.0f} % from their median"
    names = unstable_sides(pairing, used)
    if len(names) == 1:
        text += f"; of the two environments it is {names[0]} whose own runs do"
    return ResultWarning(code="unstable", text=text)


def compare_rates(pairing: Pairing, floor: float | None) -> ResultWarning | None:
    """A warning where the runs of one environment stray more often than those of the other (Fisher's exact test)."""
    counts = [_count_anomalies(values, floor) for values in (pairing.levels, pairing.base_levels)]
    (ours, our_runs), (theirs, their_runs) = counts
    if ours == theirs or fisher_exact(ours, our_runs, theirs, their_runs) > _UNEQUAL_RATES:
        return None
    text = (
        f"runs far from the median of their environment: {ours} of {our_runs} in {pairing.arm.name}, "
        f"{theirs} of {their_runs} in {pairing.base.name}"
    )
    return ResultWarning(code="anomalies_differ", text=text)


def _count_anomalies(values: Sequence[float] | FloatArray, floor: float | None) -> tuple[int, int]:
    """Anomalies and runs judged."""
    logs = np.log(np.asarray(values, dtype=np.float64))
    kept = logs[np.isfinite(logs)]
    if kept.size < JUDGED_FROM:
        return 0, 0
    return int((np.abs(kept - np.median(kept)) > run_limit(floor, kept)).sum()), kept.size


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
