"""Whether one percentage describes all blocks of a comparison, and whose runs stray.

Judged on the block differences: what a machine does to both environments of a block makes neither of them unstable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pgstrata.compare.pairing.pairs import Pairing
from pgstrata.model.answer import Lane, Verdict
from pgstrata.model.doubts import SidesDiffer, Unstable
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


def describe_instability(pairing: Pairing, decision: Decision, found: Stability) -> Unstable:
    """How the differences fall apart, and in which environment alone it is seen."""
    once, modes = decision.lane is Lane.ONE_LOOK, found.modes
    groups = ((1 - modes.share_high, modes.low), (modes.share_high, modes.high)) if modes is not None else ()
    names = [] if once else unstable_sides(pairing, decision.n)
    return Unstable(
        environments=(pairing.environment, pairing.question.baseline),
        groups=tuple((share, pairing.ratio(middle)) for share, middle in groups),
        strays=len(found.anomalies),
        blocks=found.judged,
        limit=math.expm1(found.limit),
        one_look=once,
        alone=names[0] if len(names) == 1 else None,
        estimated=decision.verdict is not Verdict.INSUFFICIENT,
    )


def compare_rates(pairing: Pairing, floor: float | None) -> SidesDiffer | None:
    """The counts where runs of one environment stray more often than those of the other (Fisher's exact test)."""
    counts = (_count_anomalies(values, floor) for values in (pairing.levels, pairing.base_levels))
    (ours, our_runs), (theirs, their_runs) = counts
    if ours == theirs or fisher_exact(ours, our_runs, theirs, their_runs) > _UNEQUAL_RATES:
        return None
    names = (pairing.arm.name, pairing.base.name)
    return SidesDiffer(code="anomalies_differ", environments=names, values=(ours, theirs), of=(our_runs, their_runs))


def _count_anomalies(values: Sequence[float] | FloatArray, floor: float | None) -> tuple[int, int]:
    """Anomalies and runs judged."""
    logs = np.log(np.asarray(values, dtype=np.float64))
    kept = logs[np.isfinite(logs)]
    if kept.size < JUDGED_FROM:
        return 0, 0
    return int((np.abs(kept - np.median(kept)) > run_limit(floor, kept)).sum()), kept.size
