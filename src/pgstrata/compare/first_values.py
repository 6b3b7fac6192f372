"""Doubts about single values of what others measured: environments with one only, and first runs that began cold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.compare.pairing.arms import Arm, Arms
from pgstrata.compare.pairing.pairs import to_ratio
from pgstrata.model.doubts import ColdStart, NamedDoubt
from pgstrata.model.question import Question
from pgstrata.stats.floor import MAD_TO_SD
from pgstrata.stats.ranks import FloatArray

_FEWEST: Final = 5
_FEWEST_TOGETHER: Final = 3
_FAR: Final = 6.0
_FAR_AT_LEAST: Final = math.log(1.1)
_CHANCE: Final = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opening:
    """How much worse the first value of a series is than the median of the others; logarithms."""

    environment: str
    excess: float
    far: bool
    worst: bool
    values: int


def doubt_first_values(question: Question, arms: Arms, counted_once: Sequence[str]) -> Iterator[NamedDoubt | ColdStart]:
    """Environments that were measured once, and first values that are far worse than the others.

    Args:
        question: which metric, and which values of it are better.
        arms: all observations.
        counted_once: environments whose values count as one, of which something is said already.
    """
    series = {key: _series(question, arm) for key, arm in arms.items()}
    many = len({cell for _, cell in arms}) > 1
    once = [
        f"{name} on {cell}" if many else name
        for (name, cell), values in series.items()
        if values.size == 1 and name not in counted_once
    ]
    if once and question.blocks != 1:
        yield NamedDoubt(code="measured_once", names=tuple(once))
    long = {key: values for key, values in series.items() if values.size >= _FEWEST_TOGETHER}
    openings = [_open(question, name, values) for (name, _), values in long.items()]
    if (cold := _find_cold(question, openings)) is not None:
        yield cold


def _series(question: Question, arm: Arm) -> FloatArray:
    """Logarithms in the order of the file."""
    blocks = arm.values.get(question.metric, {})
    found = [*(blocks[block] for block in sorted(blocks)), *arm.loose.get(question.metric, ())]
    return np.log(np.array(found, dtype=np.float64))


def _open(question: Question, environment: str, values: FloatArray) -> _Opening:
    worse = -question.sign * values
    first, others = worse[0], worse[1:]
    middle = float(np.median(others))
    excess = float(first) - middle
    spread = MAD_TO_SD * float(np.median(np.abs(others - middle)))
    return _Opening(
        environment=environment,
        excess=excess,
        far=values.size >= _FEWEST and excess > max(_FAR_AT_LEAST, _FAR * spread),
        worst=bool(first > others.max()),
        values=values.size,
    )


def _find_cold(question: Question, openings: Sequence[_Opening]) -> ColdStart | None:
    """The cold start of many series together, or of single ones."""
    worst, of = sum(opening.worst for opening in openings), len(openings)
    chosen = list(openings)
    together = bool(openings) and _tail(worst, openings) < _CHANCE and _middle(openings) > _FAR_AT_LEAST
    if not together:
        chosen = [opening for opening in openings if opening.far]
    if not chosen:
        return None
    return ColdStart(
        environments=tuple(dict.fromkeys(opening.environment for opening in chosen)),
        change=to_ratio(-question.sign * _middle(chosen)),
        worst=worst if together else 0,
        of=of if together else 0,
    )


def _middle(openings: Sequence[_Opening]) -> float:
    return float(np.median([opening.excess for opening in openings]))


def _tail(worst: int, openings: Sequence[_Opening]) -> float:
    """Probability of so many series whose first value is the worst, if the order of the values means nothing.

    In each of n values it is so with probability 1 / n; the binomial tail with the smallest n is at least that of all.
    """
    of, chance = len(openings), 1 / min(opening.values for opening in openings)
    logs = [
        math.lgamma(of + 1) - math.lgamma(k + 1) - math.lgamma(of - k + 1)
        + k * math.log(chance) + (of - k) * math.log1p(-chance)
        for k in range(worst, of + 1)
    ]  # fmt: skip
    return sum(map(math.exp, logs))
