"""What a latency must stay within while the rate grows, and the steps in which the highest such rate is searched."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

STEPS: Final = 12
"""Steps of a search: one as fast as it goes, then fixed rates."""
LEAD_SHARE: Final = 0.2
"""Share of a step at its beginning that is not counted: clients prepare their statements, and a queue builds up."""
LEAST_STEP: Final = 2
"""Seconds of the shortest step."""
LIMITS_IN_A_STEP: Final = 10
"""A step is at least so many times as long as the limit: a queue that grows without end has to show in it."""

QUANTILES: Final[Mapping[str, float | None]] = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "mean": None}
"""What of the latency may be limited; the mean is no quantile."""
_MILLISECONDS: Final = 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A percentile of latency, or its mean, below a limit in seconds; `of` is a key of `QUANTILES`.

    Raises:
        ValueError: it is no such percentile, or no limit.
    """

    of: str
    limit: float

    def __post_init__(self) -> None:
        if self.of not in QUANTILES or not 0 < self.limit < math.inf:
            raise ValueError(f"{self.of!r} within {self.limit} s is not an objective")

    @property
    def late_share(self) -> float | None:
        """Share of transactions that may be above the limit; None where the mean is limited."""
        quantile = QUANTILES[self.of]
        return None if quantile is None else 1 - quantile

    @property
    def text(self) -> str:
        """As in an experiment file: p99 < 20ms."""
        return f"{self.of} < {self.limit * _MILLISECONDS:g}ms"

    @property
    def label(self) -> str:
        """As part of an identity: p99-20ms."""
        return f"{self.of}-{self.limit * _MILLISECONDS:g}ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What a run searched: the rates of its steps in order, 1/s, the first of them 0 for as fast as it goes.

    `seconds` are those of each step.

    Raises:
        ValueError: a rate is below zero or not finite.
    """

    objective: Objective
    seconds: float
    rates: tuple[float, ...]

    def __post_init__(self) -> None:
        if not all(0 <= rate < math.inf for rate in self.rates):
            raise ValueError(f"no rates: {self.rates}")


def step_seconds(run: float) -> int:
    """Whole seconds of each step of a run of `run` seconds."""
    return int(run // STEPS)
