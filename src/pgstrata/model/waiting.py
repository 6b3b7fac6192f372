"""Which statements waited for an event: findings, no words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgstrata.model.archive import ArchiveFacts
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.explanation import WindowFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingStatement:
    """A statement that sessions were in while they waited for the event.

    `samples` are sessions, summed over looks, and `interval` that of their expectation. `seconds` are those of waiting,
    all sessions together. `of_event` and `of_load` are shares of all samples of the event and of the load. `calls` are
    per second and `latency` in seconds a call, as pg_stat_statements counted them; None where it did not.
    `applications` and `databases` are those of the samples, the most frequent first. The remainder has `statement`
    None, and is the sum of `members` statements.
    """

    statement: str | None
    samples: int
    interval: ValueInterval
    seconds: float
    of_event: float
    of_load: float
    calls: float | None
    latency: float | None
    applications: tuple[str, ...]
    databases: tuple[str, ...]
    members: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EventWaits:
    """The statements that were seen waiting for an event in a window.

    `events` are the events that were meant, `TYPE/EVENT`, with their samples; the most frequent first. `whole` is the
    sum of all statements; `rows`, with at least `at_least` samples, and `remainder` add up to it. `load` are samples of
    all active sessions, `elsewhere` those of the events in sessions and processes that are no part of the load.
    """

    window: WindowFacts
    events: tuple[tuple[str, int], ...]
    at_least: int
    load: int
    whole: WaitingStatement
    rows: tuple[WaitingStatement, ...]
    remainder: WaitingStatement | None
    elsewhere: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundWaits:
    """Waits for an event with what their words need; `clipped`: the user asked for more than the archive has."""

    archive: str
    facts: ArchiveFacts
    waits: EventWaits
    texts: Mapping[str, str]
    clipped: bool = False
