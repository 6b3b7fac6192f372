"""What a window of a live server holds by itself: findings, no words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgstrata.model.archive import ArchiveFacts, Horizon, Relation, RelationUse, StatementUse
from pgstrata.model.attribution import Part
from pgstrata.model.explanation import Courses, RootBlocker, WindowFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadShare:
    """Average active sessions by what they have in common; the remainder has no part."""

    part: Part | None
    event: str = ""
    statement: str = ""
    application: str = ""
    value: float = 0.0
    samples: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A window by itself: `rows`, `waits`, `statements` and `applications` each add up to `load`.

    `throughput` is commits per second and `time` the load divided by it, both NaN where it is not known. `uses` are
    sums over `counted` seconds, by statement, the one with most time first. `rates` are means by metric.
    `relations` are tables and indexes with their counters per second, the busiest first. `horizons` are what held back
    vacuum.
    """

    window: WindowFacts
    throughput: float
    load: float
    time: float
    rows: tuple[LoadShare, ...]
    waits: tuple[LoadShare, ...]
    statements: tuple[LoadShare, ...]
    applications: tuple[LoadShare, ...]
    uses: tuple[tuple[str, StatementUse], ...]
    counted: float | None
    rates: tuple[tuple[str, float], ...]
    blockers: tuple[RootBlocker, ...]
    courses: Courses
    relations: tuple[tuple[Relation, RelationUse], ...] = ()
    horizons: tuple[Horizon, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """A profile with what its words need; `clipped`: the user asked for more than the archive has."""

    archive: str
    facts: ArchiveFacts
    profile: Profile
    texts: Mapping[str, str]
    clipped: bool = False
