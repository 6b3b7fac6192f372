"""Asking a host for its time, often enough to know how its clock differs from the coordinator's."""

from __future__ import annotations

from typing import Final

from pgstrata.model.clocks import ClockExchange, ClockOffset, estimate_offset
from pgstrata.ports.host import Clock, Host

_TIMES: Final = 8


def measure_clock(host: Host, clock: Clock) -> ClockOffset:
    """The offset of a host's clock and the round-trip time, by eight exchanges for each; HostLostError.

    The coordinator's monotonic clock measures durations, so that a wall clock that is being set does no harm to more
    than one exchange.
    """
    exchanges = tuple(_ask_time(host, clock) for _ in range(_TIMES))
    return estimate_offset(exchanges, min(_knock(host, clock) for _ in range(_TIMES)))


def _ask_time(host: Host, clock: Clock) -> ClockExchange:
    started, asked = clock.monotonic(), clock.wall()
    told = host.clock().wall
    return ClockExchange(asked=asked, took=clock.monotonic() - started, told=told)


def _knock(host: Host, clock: Clock) -> float:
    started = clock.monotonic()
    host.exists("/")  # the one question that a shell answers without a program
    return clock.monotonic() - started
