"""Whether one percentage can describe the block differences of a table at all."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from pgstrata.model.answer import ResultWarning
from pgstrata.stats.anomaly import JUDGED_FROM, LEAST, Stability, find_modes, judge_stability
from pgstrata.stats.ranks import FloatArray

# The search for modes is quadratic: of more differences evenly spaced quantiles stand for all.
_MOST: Final = 500
# Differences that are equal but for rounding must be parted alike whatever the unit of the values.
_DIGITS: Final = 10


def find_instability(d: FloatArray) -> Stability | None:
    """How the differences, shape (blocks,), fall apart; None where one percentage describes them.

    Looked at from both sides, so that it does not matter which of two arms is the baseline.
    """
    if d.size < JUDGED_FROM or float(np.ptp(d)) <= LEAST:
        return None
    ordered = np.sort(np.round(d, _DIGITS))
    if ordered.size > _MOST:
        ordered = ordered[np.linspace(0, ordered.size - 1, _MOST).round().astype(np.intp)]
    found = (_judge(side) for side in (ordered, -ordered))
    return next((each for each in found if each.is_unstable), None)


def _judge(d: FloatArray) -> Stability:
    """Modes are told by what would matter: the limit of anomalies, without a floor, grows with their distance."""
    return replace(judge_stability(d, None), modes=find_modes(d))


def say_instability(found: Stability, environment: str, baseline: str) -> ResultWarning:
    """Two groups, or too many that lie apart."""
    if found.modes is not None:
        share = found.modes.share_high
        larger = max(share, 1 - share)
        text = (
            f"the blocks of {environment} against {baseline} fall into two groups of {larger * 100:.0f} and "
            f"{(1 - larger) * 100:.0f} %: look for what differs between them"
        )
    else:
        text = (
            f"{found.rate * 100:.0f} % of the blocks of {environment} against {baseline} lie more than "
            f"{math.expm1(found.limit) * 100:.0f} % from their median"
        )
    return ResultWarning(code="unstable", text=text)
