"""How much the difference of a visit scatters, and how much of it rounds explain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from bank.replay import SEED, Floats, Share, draw_stretches
from bank.visits import Visit

from pgstrata.stats.floor import MAD_TO_SD

DRAWS: Final = 1000
# How often rounds are dealt to visits by chance.
_DEALS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Of visits of equal environments, in percent.

    `spread` is the SD of D about zero, `robust` its robust form; `between_rounds` the SD between the rounds of a visit,
    `of_rounds` the part of D's that they explain, `lasting` what is left, which lasts for a visit or a part of one.
    `level` is the CV of throughput over visits, `cpu_ratio` the SD of the differences of server ÷ client CPU.
    """

    visits: int
    spread: Share
    robust: float
    between_rounds: float
    of_rounds: float
    lasting: Share
    level: float
    cpu_ratio: float


def scatter_of(visits: Sequence[Visit]) -> Scatter:
    """At least two visits."""
    d, rounds = np.array([visit.tps for visit in visits]), np.array([_round_variance(visit) for visit in visits])
    explained = _explained(visits)
    levels = np.array([visit.level for visit in visits])
    ratios = np.array([visit.cpu_ratio for visit in visits])
    known = ratios[np.isfinite(ratios)]
    return Scatter(
        visits=len(visits),
        spread=_with_interval(lambda places: _rms(d[places]), len(visits)),
        robust=100 * MAD_TO_SD * float(np.median(np.abs(d))),
        between_rounds=100 * math.sqrt(float(rounds.mean())),
        of_rounds=100 * math.sqrt(explained),
        lasting=_with_interval(lambda places: _left(d[places], explained), len(visits)),
        level=100 * float(levels.std(ddof=1) / levels.mean()),
        cpu_ratio=_rms(known) if known.size else math.nan,
    )


def _rms(d: Floats) -> float:
    """Standard deviation about zero, which is the truth; percent."""
    return 100 * math.sqrt(float(np.mean(d**2)))


def _left(d: Floats, explained: float) -> float:
    return 100 * math.sqrt(max(0.0, float(np.mean(d**2)) - explained))


def _round_variance(visit: Visit) -> float:
    return float(np.var(visit.rounds, ddof=1)) if len(visit.rounds) > 1 else 0.0


def _explained(visits: Sequence[Visit]) -> float:
    """Variance of D if rounds of all visits were dealt to visits by chance: what rounds alone explain, at most.

    Nothing is assumed of how rounds are distributed. Where they have many outliers, a median scatters much less than by
    the formula for normal values.
    """
    rng = np.random.default_rng([SEED, 3, len(visits)])
    ends = np.cumsum([len(visit.rounds) for visit in visits])[:-1]
    pool = np.concatenate([np.asarray(visit.rounds, dtype=np.float64) for visit in visits])
    dealt = [[np.median(part) for part in np.split(rng.permutation(pool), ends)] for _ in range(_DEALS)]
    return float(np.mean(np.var(dealt, axis=1, ddof=1)))


def _with_interval(statistic: Callable[..., float], size: int) -> Share:
    """95 % by stretches of consecutive visits, drawn with replacement."""
    rng = np.random.default_rng([SEED, 2, size])
    drawn = [statistic(draw_stretches(rng, size)) for _ in range(DRAWS)]
    low, high = np.percentile(drawn, (2.5, 97.5))
    return Share(value=statistic(np.arange(size)), low=float(low), high=float(high))
