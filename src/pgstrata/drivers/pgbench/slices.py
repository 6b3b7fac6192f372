"""Transactions by slice: what `count.awk` made of the transaction logs, as a result. Pure.

A transaction counts in the slice in which it ended. One that was in flight while its client was paused counts in the
slice after the pause and has no latency: its time would hold the pause. Latencies are kept as a histogram with bins of
1 % (100 for each factor e), or of a microsecond where that is more; within a bin they are taken as evenly spread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.drivers.quantiles import grouped_quantiles
from pgstrata.errors import ParseError
from pgstrata.model.metrics import ROUND_TPS, Series

COUNTS: Final = "slices.txt"
"""Evidence name of what `count.awk` printed."""

# Far beyond what 64 bits of microseconds reach
_MOST_BINS: Final = 10_000
_LARGEST: Final = 2**63
_BINS_PER_E: Final = 100
_MICROSECOND: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One slice: its round (0 for those that are thrown away), seconds since the first one, length, and counts."""

    round: int
    start: float
    seconds: float
    transactions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceCounts:
    """All slices of one environment in one visit.

    `latencies` are counts by bin, `latency_sum` is in seconds, `outside` counts transactions that ended in no slice.
    `origin` is when the first one began, in seconds of the client's wall clock.
    """

    slices: tuple[Slice, ...]
    latencies: Mapping[int, int]
    latency_sum: float
    outside: int
    origin: float

    @property
    def turns(self) -> tuple[tuple[float, float], ...]:
        """Begin and end of all slices, by the client's wall clock."""
        return tuple((self.origin + part.start, self.origin + part.start + part.seconds) for part in self.slices)

    @property
    def transactions(self) -> int:
        """Transactions of all slices, discarded ones included: those that the server's counters cover."""
        return sum(part.transactions for part in self.slices)

    @property
    def seconds(self) -> float:
        """Time in which this environment had its turn."""
        return sum(part.seconds for part in self.slices)

    @property
    def samples(self) -> int:
        """Transactions with a latency."""
        return sum(self.latencies.values())

    def rounds(self) -> Series:
        """Transactions per second of each measured round; rounds that are missing are left out."""
        kept = sorted((part for part in self.slices if part.round > 0), key=lambda part: part.round)
        last = max((part.round for part in kept), default=0)
        values = {part.round: part.transactions / part.seconds for part in kept if part.seconds > 0}
        starts = {part.round: part.start for part in kept}
        numbers = range(1, last + 1)
        return Series(
            metric=ROUND_TPS,
            times=tuple(starts.get(number, math.nan) for number in numbers),
            values=tuple(values.get(number, math.nan) for number in numbers),
        )

    def quantiles(self) -> Mapping[float, float]:
        """Latencies in seconds below which these shares lie; those with enough samples."""
        bins = [number for number in sorted(self.latencies) if self.latencies[number]]
        edges = [(_edge(number), _edge(number + 1)) for number in bins]
        found = grouped_quantiles(edges, [self.latencies[number] for number in bins])
        return {quantile: value * _MICROSECOND for quantile, value in found.items()}

    def mean(self) -> float | None:
        """Mean latency in seconds; None without any."""
        return self.latency_sum / self.samples if self.samples else None


def parse_counts(text: bytes) -> SliceCounts:
    """What `count.awk` printed.

    Raises:
        ParseError: a line has an unknown shape.
    """
    rows: list[tuple[int, ...]] = []
    latencies: dict[int, int] = {}
    total = outside = 0
    for line in text.decode("ascii", "replace").splitlines():
        kind, _, words = line.partition(" ")
        numbers = _integers(words.split(), line)
        match (kind, len(numbers)):
            case ("slice", 6):
                rows.append(numbers)
            case ("latency", 2) if abs(numbers[0]) < _MOST_BINS:
                latencies[numbers[0]] = numbers[1]
            case ("total", 2):
                total, outside = numbers
            case _:
                raise _unknown(line)
    origin = min((row[1] for row in rows), default=0)
    return SliceCounts(
        slices=tuple(_slice(row, origin) for row in rows),
        latencies=latencies,
        latency_sum=total * _MICROSECOND,
        outside=outside,
        origin=origin * _MICROSECOND,
    )


def _edge(number: int) -> float:
    """Where a bin begins, in microseconds: half of one below the first whole number in it."""
    return math.ceil(math.exp(number / _BINS_PER_E)) - 0.5


def _slice(row: Sequence[int], origin: int) -> Slice:
    number, start, stop, transactions, *_ = row
    begin, seconds = (start - origin) * _MICROSECOND, (stop - start) * _MICROSECOND
    return Slice(round=number, start=begin, seconds=seconds, transactions=transactions)


def _integers(words: Sequence[str], line: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(word) for word in words)
    except ValueError:
        raise _unknown(line) from None
    if any(abs(number) >= _LARGEST for number in numbers):
        raise _unknown(line)
    return numbers


def _unknown(line: str) -> ParseError:
    return ParseError(f"unknown shape of a line: {line[:200]!r}", where=COUNTS)
