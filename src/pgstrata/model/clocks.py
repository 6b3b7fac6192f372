"""How two machines' clocks differ, and how far apart the machines are; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

NOTICEABLE: Final = 1.0
"""Seconds by which clocks may differ before it is worth a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockExchange:
    """One question for the time: asked at `asked` of the coordinator's clock, answered `took` seconds later.

    `told` is what the host's clock showed in between; both clocks in Unix seconds.
    """

    asked: float
    took: float
    told: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffset:
    """The host's clock minus the coordinator's, with the most by which that may be wrong; seconds.

    `round_trip` is the shortest time of an exchange with the host that needs no program there, seconds; None where
    it is not known.
    """

    offset_seconds: float
    uncertainty: float
    round_trip: float | None

    @property
    def apart(self) -> bool:
        """Whether the clocks surely differ by more than `NOTICEABLE`."""
        return abs(self.offset_seconds) - self.uncertainty > NOTICEABLE


def offset_between(host: ClockOffset | None, other: ClockOffset | None) -> ClockOffset | None:
    """The clock of a host minus that of another one, from their offsets from the coordinator's; their errors add up.

    None stands for the coordinator itself. Between two other hosts the round-trip time is not known.
    """
    if other is None:
        return host
    mine = host or ClockOffset(offset_seconds=0.0, uncertainty=0.0, round_trip=None)
    return ClockOffset(
        offset_seconds=mine.offset_seconds - other.offset_seconds,
        uncertainty=mine.uncertainty + other.uncertainty,
        round_trip=other.round_trip if host is None else None,
    )


def estimate_offset(exchanges: Sequence[ClockExchange], round_trip: float) -> ClockOffset:
    """The offset by the exchange that took the shortest time, at least one being given.

    The clock was read somewhere between question and answer: in the middle, give or take half of the time. That is the
    offset of RFC 5905, section 8, with T2 = T3, and its clock filter (section 10), which trusts the smallest delay.
    """
    best = min(exchanges, key=lambda exchange: exchange.took)
    half = best.took / 2
    return ClockOffset(offset_seconds=best.told - (best.asked + half), uncertainty=half, round_trip=round_trip)
