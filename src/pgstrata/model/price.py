"""Prices of machines, and the cost of throughput."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # an answer holds what stands here
    from pgstrata.model.answer import Interval, Verdict

PEAK: Final = "peak"
"""The place of a finding over a curve of clients: in each block, the cell that was best in the blocks before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of an hour of a machine. `as_of` is its date (ISO 8601), `includes` what the price covers."""

    amount: float
    currency: str
    as_of: str
    includes: str = ""
    source: str = ""

    @property
    def text(self) -> str:
        """The price as in an experiment file: 1.4464 USD."""
        return f"{self.amount:g} {self.currency}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of an environment's throughput in `cells`: one cell, or a curve of clients at its peak.

    `rate` is the median over blocks of transactions per second, or of the highest rate within the objective.
    `interval` is its interval at `confidence`, None with too few blocks.
    """

    environment: str
    cells: tuple[str, ...]
    price: Price
    blocks: int
    rate: float
    interval: tuple[float, float] | None
    confidence: float | None
    dominated_by: str = ""
    """An environment that costs no more and is certainly faster, or costs less and is certainly as fast; or empty."""

    def per_unit(self, rate: float) -> float:
        """Transactions for one unit of money, at a rate per second."""
        return rate * SECONDS_PER_HOUR / self.price.amount

    def of_a_million(self, rate: float) -> float:
        """Money for a million transactions, at a rate per second."""
        return MILLION / self.per_unit(rate)


SECONDS_PER_HOUR: Final = 3600
MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFinding:
    """Transactions for the money: one environment against the baseline in `cells`, as in `Cost`.

    `price_ratio` is the price of an hour ÷ the baseline's. `effect` and `interval` are ratios of transactions per unit
    of money; `decided_at` and `repeated_p` as of a comparison.
    """

    environment: str
    cells: tuple[str, ...]
    metric: str
    price_ratio: float
    verdict: Verdict
    effect: float | None
    interval: Interval | None
    blocks: int
    decided_at: int | None
    repeated_p: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """The results by prices: costs and findings by cells and environment; `unpriced` environments have no price."""

    costs: Sequence[Cost]
    findings: Sequence[ValueFinding]
    unpriced: tuple[str, ...]
