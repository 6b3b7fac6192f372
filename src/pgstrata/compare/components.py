"""Where the scatter of a sliced comparison arises: between the rounds of a visit, or between visits.

Rounds are no replicates, but their spread says how much more of them would help, and what is left between visits says
how little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.stats.floor import MAD_TO_SD
from pgstrata.stats.ranks import FloatArray

MIN_VISITS: Final = 3
"""Visits below which their spread is not shown."""
# The median of n normal values has this times the variance of their mean (asymptotically: Lehmann 1983, section 5.3).
_MEDIAN_COST: Final = math.pi / 2
# A median absolute deviation about the sample's own median is too small; x n / (n - 0.8) mends it (Croux & Rousseeuw
# 1992, Time-efficient algorithms for two highly robust estimators of scale).
_SHORTFALL: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Robust standard deviations of ln(A / B), as ratios of 1.

    `rounds` is the spread of single rounds within a visit, `visits` that of the visits' medians as it was observed, and
    `between` what is left of it when that is taken away which their rounds alone would give: the spread between starts.
    It is zero where nothing is left.
    """

    visits_seen: int
    rounds_per_visit: int
    rounds: float
    visits: float
    between: float


def split_scatter(visits: Sequence[FloatArray]) -> Components | None:
    """The components of the scatter; None below `MIN_VISITS` visits of at least two rounds each.

    visits^2 = between^2 + (pi / 2) rounds^2 / R: the median of R rounds has that variance where rounds are normal and
    independent of each other. Spreads are 1.4826 * median |deviation|, which a stalled round does not move.

    Args:
        visits: ln(A_r / B_r) of the rounds of each visit, each of shape (rounds,); what is not finite is left out.
    """
    logs = [found for visit in visits for found in (_finite(visit),) if found.size > 1]
    if len(logs) < MIN_VISITS:
        return None
    deviations = np.concatenate([_scaled(np.abs(visit - np.median(visit)), visit.size) for visit in logs])
    rounds = MAD_TO_SD * float(np.median(deviations))
    medians = np.array([np.median(visit) for visit in logs])
    visits_sd = MAD_TO_SD * float(np.median(_scaled(np.abs(medians - np.median(medians)), medians.size)))
    per_visit = float(np.median([visit.size for visit in logs]))
    left = visits_sd**2 - _MEDIAN_COST * rounds**2 / per_visit
    return Components(
        visits_seen=len(logs),
        rounds_per_visit=round(per_visit),
        rounds=rounds,
        visits=visits_sd,
        between=math.sqrt(max(0.0, left)),
    )


def _finite(visit: FloatArray) -> FloatArray:
    logs = np.asarray(visit, dtype=np.float64)
    return logs[np.isfinite(logs)]


def _scaled(deviations: FloatArray, n: int) -> FloatArray:
    return np.asarray(deviations * (n / (n - _SHORTFALL)), dtype=np.float64)
