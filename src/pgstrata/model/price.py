"""Prices of machines, and what throughput costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # an answer holds what stands here
    from pgstrata.model.answer import Interval, Verdict

PEAK: Final = "peak"
"""The place of a finding over a curve of clients: in each block the one that is best in all other blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Of an hour of a machine. `as_of` is the day of the price (ISO 8601), `includes` what is paid with it."""

    amount: float
    currency: str
    as_of: str
    includes: str = ""
    source: str = ""

    @property
    def text(self) -> str:
        """As in an experiment file: 1.4464 USD."""
        return f"{self.amount:g} {self.currency}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the throughput of an environment costs in `cells`: one cell, or a curve of clients at its peak.

    `rate` is the median over blocks of transactions per second, or of the highest rate within the objective, and
    `interval` the ends at `confidence` of that median, None where there are too few blocks.
    """

    environment: str
    cells: tuple[str, ...]
    price: Price
    blocks: int
    rate: float
    interval: tuple[float, float] | None
    confidence: float | None
    dominated_by: str = ""
    """One that costs no more and is certainly faster, or costs less and is certainly as fast; empty without one."""

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
    """All that prices say of a study: costs and findings by cells and environment; environments without a price."""

    costs: Sequence[Cost]
    findings: Sequence[ValueFinding]
    unpriced: tuple[str, ...]
