"""The figures of each field of the matrix: medians with intervals, differences, and runs that are not in them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

from pgstrata.compare.headlines import primary_comparisons
from pgstrata.model.anomaly import AnomalyKind
from pgstrata.model.answer import ALL_CELLS, Answer, AxisStep, Comparison, Verdict
from pgstrata.model.metrics import TPS
from pgstrata.report.projections.model import Place, Projection
from pgstrata.sources.runs import may_enter
from pgstrata.stats.medians import median_interval

BESIDE: Final = "latency_p50"
_RESOLVED: Final = frozenset({Verdict.BETTER, Verdict.WORSE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Median of the usable runs, between the ends of its 95 % interval; of fewer than six runs, of all of them."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """A run by itself: `excluded` ones are in no estimate, others lie far from the median of their environment."""

    value: float
    excluded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is known of the places of a matrix, each by its place.

    `values` are by the primary metric and `beside` by that which stands beside it (`beside_metric`); `strays` by the
    primary one. `kinks` are points that do not fit with their curve over clients. `steps` are resolved steps along
    factors, by factor and cell.
    """

    metric: str
    beside_metric: str
    values: Mapping[Place, Estimate]
    beside: Mapping[Place, Estimate]
    differences: Mapping[Place, Comparison]
    strays: Mapping[Place, tuple[Stray, ...]]
    kinks: frozenset[Place]
    steps: Mapping[tuple[str, str], tuple[AxisStep, ...]]


def gather_figures(answer: Answer) -> Figures:
    """All of them at once: a run is read once, however many charts show it."""
    experiment = answer.study.plan.experiment
    metric = experiment.metric
    beside = TPS.name if metric == BESIDE else BESIDE
    found: dict[str, defaultdict[Place, list[float]]] = {metric: defaultdict(list), beside: defaultdict(list)}
    strays: defaultdict[Place, list[Stray]] = defaultdict(list)
    far = {
        (one.environment, one.cell, block)
        for one in answer.anomalies
        if one.kind is AnomalyKind.RUN
        for block in one.blocks
    }
    for run in answer.study.runs:
        place = Place(environment=run.environment, cell=run.cell)
        usable = may_enter(run)
        for name, values in found.items():
            value = run.value(name)
            if value is None or not math.isfinite(value):
                continue
            if usable:
                values[place].append(value)
            if name == metric and (not usable or (run.environment, run.cell, run.block) in far):
                strays[place].append(Stray(value=value, excluded=not usable))
    return Figures(
        metric=metric,
        beside_metric=beside,
        values={place: estimate(values) for place, values in found[metric].items()},
        beside={place: estimate(values) for place, values in found[beside].items()},
        differences={
            Place(environment=item.environment, cell=item.cell): item
            for item in primary_comparisons(answer)
            if item.cell != ALL_CELLS
        },
        strays={place: tuple(each) for place, each in strays.items()},
        kinks=frozenset(
            Place(environment=one.environment, cell=one.cell)
            for one in answer.anomalies
            if one.kind is AnomalyKind.KINK
        ),
        steps={
            (axis.factor, axis.cell): tuple(step for step in axis.steps if step.verdict in _RESOLVED)
            for axis in answer.axes
            if axis.metric == metric
        },
    )


def estimate(values: list[float]) -> Estimate:
    """Of at least one value."""
    inside = median_interval(values)
    low, high = inside[:2] if inside is not None else (min(values), max(values))
    return Estimate(value=median(values), low=low, high=high)


def has_figures(projection: Projection, figures: Figures) -> bool:
    """Whether anything was measured of it."""
    return any(place in figures.values for curve in projection.curves for place in curve.places)
