"""Stretches in which a live server was slower than usual, and changes that are none: findings, no words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pgstrata.model.archive import ArchiveFacts, Span
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.explanation import Courses, Explained


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStep:
    """What a server did in the `seconds` up to `end` (included), Unix seconds.

    `load` is the sum of active sessions over `looks`. `commits` are transactions per second and `spent` seconds of
    execution per second, as pg_stat_statements counted them; NaN where they are not known.
    """

    end: int
    seconds: int
    looks: int
    load: float
    commits: float
    spent: float = math.nan


class IncidentKind(StrEnum):
    """SLOWER: transactions took longer, and no more of them came. STALLED: sessions were active, and none ended."""

    SLOWER = "slower"
    STALLED = "stalled"


class Ending(StrEnum):
    """Why an incident is over.

    USUAL: transactions take as long as before again. ADOPTED: it lasted so long that it is what is usual now. UNSEEN:
    the recording has a gap, and what came then is not known.
    """

    USUAL = "as usual again"
    ADOPTED = "became usual"
    UNSEEN = "recording interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A stretch in which transactions took longer, while no more of them came.

    Times are Unix seconds. `begin` has an interval of 95 %; `found` is the moment of the alarm. `end` and `ending` are
    None while it lasts. `factor` is the mean time per transaction as a multiple of the usual one, with an interval
    where it is known, `peak` the largest of one step. `throughput` (transactions per second) and `load` (average active
    sessions) are means of the incident, `usual_throughput` and `usual_load` those of the minutes before.
    """

    kind: IncidentKind
    begin: int
    begin_interval: ValueInterval
    found: int
    end: int | None = None
    ending: Ending | None = None
    factor: float
    factor_interval: ValueInterval | None = None
    peak: float
    throughput: float
    usual_throughput: float
    load: float
    usual_load: float

    def lost(self, now: int) -> float:
        """Seconds that transactions took longer, all sessions together: the worst incident has most.

        In a stall nothing ends, so all of its load is lost; its factor says little. `now` is its end while it lasts.
        """
        part = 1.0 if self.kind is IncidentKind.STALLED else 1 - 1 / max(1.0, self.factor)
        return ((now if self.end is None else self.end) - self.begin) * part * max(self.load, 1e-9)


class DemandKind(StrEnum):
    """MORE: more transactions came. STATEMENTS: the extra load is in statements that were not there or seldom."""

    MORE = "more demand"
    STATEMENTS = "other statements"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandChange:
    """More demand, which is no incident; figures as those of `Incident`. `statements` are keys, most load first.

    `factor` is the time per transaction as a multiple of the usual one; None where it is not known.
    """

    kind: DemandKind
    begin: int
    found: int
    throughput: float
    usual_throughput: float
    load: float
    usual_load: float
    factor: float | None = None
    statements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """What was found in `span`, in order of time; `gaps` are stretches of more than a minute without a look.

    `seconds` were looked at, of them `judged` after what is usual was learned. `rate`: false alarms that are expected
    per second. `limit` is the factor of time per transaction that 95 % of stretches of a minute are found at, None
    where it was never known; `days` the former days that are compared with, at the end.
    """

    span: Span
    rate: float
    seconds: int
    judged: int
    incidents: tuple[Incident, ...]
    demand: tuple[DemandChange, ...]
    gaps: tuple[Span, ...]
    limit: float | None
    days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found in an archive, with what its words need.

    `explained` is by incident in the same order, None where it was not explained. `coarse_until`: before it there are
    only minutes; None where seconds are known throughout. `texts` of statements by key. `courses` are
    those of the whole span, for a chart.
    """

    archive: str
    facts: ArchiveFacts
    detected: Detected
    explained: tuple[Explained | None, ...]
    coarse_until: int | None
    texts: Mapping[str, str]
    courses: Courses | None = None
