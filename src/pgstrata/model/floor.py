"""The noise floor: what a rig can see, what it was measured from, and what it belongs to."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pgstrata.model.reasons import Reason
from pgstrata.model.server import Fingerprint

LEAST_DIFFERENCES: Final = 12
"""Fewer A/A differences make no floor: their median size is known too badly."""
FLOOR_LIFETIME: Final = timedelta(days=30)
"""What was measured longer ago says nothing about the host as it is now."""
FEWEST_ROUNDS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceComponents:
    """SDs of ln(A / B) of `visits` visits in slices, of mostly `rounds` rounds each, robust.

    `sigma_round` is that of one round within a visit, `sigma_visit` that of the visits' medians as it was observed,
    `sigma_start` what is left of it beyond what the rounds explain, the scatter between starts (zero where nothing is),
    and `sigma_start_upper` the upper 90 % limit of that.
    """

    sigma_round: float
    sigma_visit: float
    sigma_start: float
    sigma_start_upper: float
    visits: int
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The scale of A/A differences of one host x workload x clients x design.

    `s0` is 1.4826 * median |D| in log units over `differences` blocks, of the metric `metric` in the cell `cell`.
    `design` says how it was measured ("runs of 10 s", "16 slices of 250 ms"): a floor does not carry over to another.
    `host` is a digest of the host's part of the fingerprint, `measured` wall-clock time in ISO 8601 with offset.
    `source` names the study that it comes from, the newest where `pooled` others were pooled with it. `doubt` says why
    it must not be relied upon (too few differences, too old, another host); None where it may.
    """

    s0: float
    differences: int
    cell: str
    metric: str
    design: str
    host: str
    measured: str
    source: str = ""
    pooled: int = 0
    doubt: Reason | None = None

    @property
    def valid(self) -> bool:
        """Whether verdicts may rely on it; never where it is zero or of too few differences."""
        return not self.doubt and self.s0 > 0 and self.differences >= LEAST_DIFFERENCES


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorKey:
    """What a floor belongs to beside the host: it says nothing about whatever differs in one of `conditions`.

    `cell` is the name of the cell in its plan, for people; two plans may give one cell different names.
    """

    cell: str
    metric: str
    design: str
    conditions: Mapping[str, str]

    @property
    def digest(self) -> str:
        """Short and safe in file names; equal where metric, design and conditions are."""
        return digest_facts({**self.conditions, "metric": self.metric, "design": self.design})


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorRecord:
    """The A/A differences of one study, in log units: what floors are made of.

    `host` is what the host was like, `measured` the start of the first run (ISO 8601 with offset), `study` an identity
    of the study and `source` its name.
    """

    key: FloorKey
    host: Fingerprint
    measured: str
    differences: tuple[float, ...]
    study: str
    source: str
    version: str


def digest_facts(facts: Mapping[str, str]) -> str:
    """A short hash of named facts, whatever their order."""
    content = json.dumps(dict(facts), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
