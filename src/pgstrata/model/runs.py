"""One run as it ended: status, validity, measurements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import Final

from pgstrata.model.activity import ProcessCount, SessionCount, WaitProfile
from pgstrata.model.metrics import ROUND_TPS, TPS, Measurement, Series
from pgstrata.model.queries import QueryCounts
from pgstrata.model.query_plans import QueryPlan
from pgstrata.model.reasons import Reason

NAME_OF_STATEMENT: Final = r"\A\s*/\*\ (?P<name>[a-z][a-z\ -]{0,60}?)\ \*/"
"""The comment in front of a statement that names it, as `re.VERBOSE` reads it."""
_NAMED: Final = re.compile(NAME_OF_STATEMENT, re.VERBOSE)


class RunStatus(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    COLLAPSED = "collapsed"


class Validity(StrEnum):
    """Whether a run may enter the estimate."""

    VALID = "valid"
    SUSPECT = "suspect"
    INVALID = "invalid"


def name_of_statement(text: str) -> str:
    """The name of a statement: a comment of small letters, spaces and hyphens in front of it; empty without one."""
    found = _NAMED.match(text)
    return found["name"] if found else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementLatency:
    """Mean latency in seconds of one statement of the workload's scripts over a run, as the driver reports it."""

    text: str
    seconds: float

    @property
    def name(self) -> str:
        """As `name_of_statement`."""
        return name_of_statement(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run as it ended: everything that is derived from its evidence.

    `started` is wall-clock time in ISO 8601 with offset; `dead_time` is the set-up overhead, in seconds by step;
    `statements` are there where the cell asks for a profile, in the order of the scripts.
    `together` is empty for a run that was alone; runs that took turns in slices with each other share one, and their
    series `round_tps` hold the same rounds. `sessions` are what the sampled sessions of the client were seen doing,
    `processes` what the server's other processes did meanwhile; `waits` is what the server itself sampled of these
    sessions, None where it does not. `query_plans` are of the workload's statements, before the run; `queries` is what
    the server counted of each, None where it does not.
    """

    identity: str
    block: int
    environment: str
    cell: str
    status: RunStatus
    validity: Validity
    reasons: tuple[Reason, ...]
    started: str
    measured_seconds: float
    measurements: tuple[Measurement, ...]
    series: tuple[Series, ...] = ()
    dead_time: Mapping[str, float] = field(default_factory=dict)
    statements: tuple[StatementLatency, ...] = ()
    together: str = ""
    sessions: tuple[SessionCount, ...] = ()
    processes: tuple[ProcessCount, ...] = ()
    waits: WaitProfile | None = None
    query_plans: tuple[QueryPlan, ...] = ()
    queries: QueryCounts | None = None

    def rounds(self) -> tuple[float, ...]:
        """Transactions per second of each round of slices, in order; empty for a run that was alone."""
        return next((series.values for series in self.series if series.metric == ROUND_TPS), ())

    def throughput(self) -> float | None:
        """Transactions per second; of a run in slices without an unlogged stretch those of its rounds."""
        return self.value(TPS.name) or self.median_round()

    def median_round(self) -> float | None:
        """Transactions per second of the median round that did anything; None for a run that was alone."""
        rounds = [value for value in self.rounds() if value > 0]
        return median(rounds) if rounds else None

    def value(self, metric: str) -> float | None:
        """The measured value of a metric, or None."""
        for measurement in self.measurements:
            if measurement.metric == metric:
                return measurement.value
        return None
