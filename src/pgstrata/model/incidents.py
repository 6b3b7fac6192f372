"""Stretches in which a live server was slower than usual, and changes that are none: findings, no words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pgstrata.model.attribution import ValueInterval


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
