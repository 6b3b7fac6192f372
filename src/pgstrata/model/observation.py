"""Observations: what was measured of one target over one stretch of time, whoever measured it.

Sources yield them (`pgstrata.sources`), and comparisons are made of nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pgstrata.model.runs import Validity


class Repeats(StrEnum):
    """How repeats of imported measurements were made, as the user says: files do not show it."""

    IN_TURNS = "in-turns"
    ONE_AFTER_ANOTHER = "one-after-another"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingKey:
    """What ties observations of several targets to each other: a block, a round or a bucket of time.

    `number` orders them, `label` is what people call it. Those that took turns share what `together` says, which is
    empty for what was measured alone.
    """

    number: int
    label: str
    together: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
    """The time of a measurement: its start as ISO 8601 with offset, and its length in seconds, 0 if unknown."""

    started: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Measurements of one target, in base units by the name of their metric.

    `target` is what is compared (an environment), `cell` names the dimensions within which it is, `provenance` says
    where it comes from (a run's identity, a file and its line). Without `key` nothing says what was measured side by
    side; `span` is None where the time is not known. `rounds` are throughput by round where the target took turns in
    slices, `opening` is by how much throughput began above or below what followed, as a share, where that is known.
    `dimensions` are the levels behind target and cell, and further facts, by their names, where a source has such.
    """

    target: str
    cell: str
    measurements: Mapping[str, float]
    provenance: str
    key: PairingKey | None = None
    span: TimeSpan | None = None
    validity: Validity = Validity.VALID
    collapsed: bool = False
    rounds: tuple[float, ...] | None = None
    opening: float | None = None
    dimensions: Mapping[str, str] = field(default_factory=dict)
