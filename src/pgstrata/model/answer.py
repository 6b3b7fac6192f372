"""Verdicts, comparisons, and the study that they answer for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.model.server import Fingerprint


class Verdict(StrEnum):
    """What a comparison came to; the glossary defines each."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    NEGLIGIBLE = "negligible"
    INCONCLUSIVE = "inconclusive"
    UNSTABLE = "unstable"
    COLLAPSED = "collapsed"
    INSUFFICIENT = "insufficient"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultWarning:
    """A statistical or technical doubt that travels with a result."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An interval of a ratio: value / baseline value."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One environment against the baseline in one cell (or "all"), one metric.

    `effect` and `interval` are ratios, value / baseline value, never turned round; `equivalence_interval` is the one
    at the level of "no difference". `value` and `baseline_value` are medians over the runs of the pairs used. `runs`
    are all that were made in both arms, `invalid` those of them that are kept out.
    """

    environment: str
    cell: str
    metric: str
    verdict: Verdict
    effect: float | None
    interval: Interval | None
    equivalence_interval: Interval | None
    confidence: float
    blocks: int
    planned_blocks: int
    runs: int
    invalid: int
    value: float | None
    baseline_value: float | None
    exploratory: bool
    control: bool
    warnings: tuple[ResultWarning, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Everything that one experiment has measured so far, without the raw evidence."""

    name: str
    plan: Plan
    runs: tuple[RunRecord, ...]
    host: Fingerprint
    client: Fingerprint
    environments: Mapping[str, Fingerprint]
    created: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A study with its comparisons: what `show` and `report` render."""

    study: Study
    comparisons: tuple[Comparison, ...]
    warnings: tuple[ResultWarning, ...]
