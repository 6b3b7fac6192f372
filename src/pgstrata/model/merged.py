"""Studies of several machines, boots or days as one: its parts, and what can be said of them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pgstrata.model.answer import Comparison, Interval, Verdict
from pgstrata.model.study import Study

HOST: Final = "host"
LEAST_INSTANCES: Final = 3
"""Machines of one type from which on something can be said of the type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedHead:
    """What parts differ in (`host`, `boot`, `day` ...), and their names in the order of merging."""

    format: int
    factor: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedPart:
    """A study that was merged; `kind` are the facts of its server's machine that make its type, empty if unknown."""

    name: str
    study: Study
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlike:
    """Why two parts cannot be merged: `what` they do not have the same, or the identity of a `run` that is in both."""

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
class Between:
    """Two parts compared by what shares no block: values of either are drawn alone, so that drift is not excluded.

    `effect` is value in `part` / value in `reference`, of an environment's ratio to its baseline, or of its level.
    `values` and `base_values` are numbers of blocks.
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
    """An environment against the baseline on machines of one type, each machine counted once, with 95 % of confidence.

    Without enough `instances` there is neither effect nor interval: nothing can be said of the type.
    """

    kind: str
    environment: str
    instances: int
    effect: float | None = None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedAnswer:
    """All that can be said of studies together.

    `unlike` are settings that differ between parts in the same environment, by name.
    """

    name: str
    factor: str
    parts: tuple[MergedPart, ...]
    comparisons: tuple[PartComparison, ...]
    effects: tuple[Between, ...]
    levels: tuple[Between, ...]
    types: tuple[TypeEffect, ...]
    unlike: tuple[str, ...]
