"""A merged study (of several machines, boots or days): its parts, and the results of all parts together."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pgstrata.model.answer import Comparison, Interval, Verdict
from pgstrata.model.doubts import Doubt
from pgstrata.model.study import Study

HOST: Final = "host"
LEAST_INSTANCES: Final = 3
"""Minimum number of machines of one type for a result about the type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedHead:
    """The factor by which parts differ (`host`, `boot`, `day` ...), and their names in the order of merging."""

    format: int
    factor: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedPart:
    """A study that was merged; `kind` is the type of the server's machine, made of its facts, empty if unknown."""

    name: str
    study: Study
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlike:
    """Why two parts cannot be merged: `what` is different in them, or the identity of a `run` that both have."""

    first: str
    other: str
    what: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartComparison:
    """An environment against the baseline within the blocks of one part."""

    part: str
    comparison: Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class PartDoubt:
    """A doubt about one part as a whole, or about all parts together (an empty `part`)."""

    part: str
    doubt: Doubt


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """A comparison of two parts without pairing: they share no block, so a drift is not excluded.

    `effect` is the value in `part` ÷ the value in `reference`. The value is an environment's ratio to its baseline, or
    the metric itself. `values` and `base_values` are the numbers of blocks in `part` and in `reference`.
    """

    environment: str
    part: str
    reference: str
    verdict: Verdict
    effect: float | None
    interval: Interval | None
    values: int
    base_values: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeEffect:
    """An environment against the baseline on machines of one type, each counted once, at 95 % confidence.

    With fewer than `LEAST_INSTANCES` machines there is neither effect nor interval.
    """

    kind: str
    environment: str
    instances: int
    effect: float | None = None
    interval: Interval | None = None


class Compared(StrEnum):
    """What two types of machines are compared by: the metric itself, or an environment's ratio to the baseline."""

    LEVEL = "level"
    EFFECT = "effect"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeDifference:
    """Machines of one type against those of another one, each machine counted once, at 95 % confidence.

    There is none for a type with fewer than `LEAST_INSTANCES` machines. `effect` is the value of `kind` ÷ the value of
    `reference`; `instances` and `base_instances` are the numbers of machines.
    """

    kind: str
    reference: str
    environment: str
    compared: Compared
    instances: int
    base_instances: int
    effect: float
    interval: Interval

    @property
    def differs(self) -> bool:
        """Whether the interval excludes that both types are equal."""
        return not self.interval.low <= 1.0 <= self.interval.high


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedAnswer:
    """All results of a merged study.

    `unlike` names what differs between parts in environments and cells of the same name: settings, options, servers.
    """

    name: str
    factor: str
    parts: tuple[MergedPart, ...]
    comparisons: tuple[PartComparison, ...]
    effects: tuple[Between, ...]
    levels: tuple[Between, ...]
    types: tuple[TypeEffect, ...]
    type_differences: tuple[TypeDifference, ...]
    unlike: tuple[str, ...]
    warnings: tuple[PartDoubt, ...] = ()
