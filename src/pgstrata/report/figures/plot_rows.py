"""The rows of a chart of a projection: their points, axes and places, before anything is drawn. Pure geometry."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from pgstrata.model.answer import Comparison
from pgstrata.model.metrics import METRICS
from pgstrata.report.figures.labels import LINE, cut
from pgstrata.report.figures.looks import Look
from pgstrata.report.figures.scales import (
    Scale,
    Tick,
    are_far_apart,
    change_scale,
    change_ticks,
    even_ticks,
    log_ticks,
    value_scale,
)
from pgstrata.report.projections.estimates import Estimate, Figures, Stray
from pgstrata.report.projections.model import Place, Projection
from pgstrata.report.sentences.verdicts import shown_interval
from pgstrata.units import Unit

WIDTH: Final = 400
TOP: Final = 20
_GAP: Final = 27
_NEAR: Final = 1.5
_MILLI: Final = 1e3
_LETTERS_OF_BASELINE: Final = 32
"""In a title that has to fit above a row."""
_HEIGHTS: Final = (140, 100, 116)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What all charts of a study share.

    `baseline` is the name of its environment and `baseline_title` that for people. `exceeded` is what the data of a
    cell are larger than (shared_buffers, memory), by its name. `crossed` are factors whose levels occur with several
    combinations of others, so that a step belongs to no single curve.
    """

    baseline: str
    baseline_title: str
    threshold: float
    exceeded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    crossed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A figure with its interval, in the unit of its row."""

    value: float
    low: float | None = None
    high: float | None = None


Lines = tuple[tuple[Point | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One of the charts below each other: its title, points by curve and level, and axis.

    `primary` is the row of the metric by which all is judged, `change` that of differences. `times` is what a figure in
    base units is multiplied by.
    """

    title: str
    lines: Lines
    y: Scale
    ticks: tuple[Tick, ...]
    change: bool = False
    primary: bool = False
    times: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A projection with everything that its rows share: looks by curve, pixels by level."""

    projection: Projection
    figures: Figures
    bounds: Bounds
    looks: tuple[Look, ...]
    xs: tuple[float, ...]
    right: float
    """Where the names of curves begin."""


def place_levels(projection: Projection, left: float, right: float) -> tuple[float, ...]:
    """Doublings of clients and scale equally far apart, and so are levels of factors."""
    if projection.numbers and projection.numbers[0] > 0:
        ends = projection.numbers[0], projection.numbers[-1]
        scale = Scale(low=ends[0], high=ends[1], start=left, end=right, log=True)
        return tuple(scale.at(number) for number in projection.numbers)
    step = (right - left) / max(1, len(projection.levels) - 1)
    return tuple(left + place * step for place in range(len(projection.levels)))


def make_rows(sheet: Sheet) -> Iterator[Row]:
    """The metric, what stands beside it, differences: those of which anything is known.

    Each is so high that there is room for the names of all curves that have one.
    """
    top, figures = float(TOP), sheet.figures
    least = LINE * (sum(look.named for look in sheet.looks) - 1)
    high, middle, low = (max(least, height) for height in _HEIGHTS)
    for metric, known, height in (
        (figures.metric, figures.values, high),
        (figures.beside_metric, figures.beside, middle),
    ):
        times = _MILLI if METRICS[metric].unit is Unit.SECONDS else 1.0
        lines = _lines(sheet, partial(_scale, known, times))
        if any(point for line in lines for point in line):
            title = f"{METRICS[metric].title}{', ms' if times == _MILLI else ''}"
            primary = metric == figures.metric
            singles = [one.value * times for one in _strays(sheet)] if primary else []
            yield replace(_value_row(title, lines, singles, top, top + height), times=times, primary=primary)
            top += height + _GAP
    if any(place and place in figures.differences for curve in sheet.projection.curves for place in curve.places):
        yield _change_row(sheet, _lines(sheet, partial(_difference, sheet)), top, top + low)


def _lines(sheet: Sheet, point_of: Callable[[Place], Point | None]) -> Lines:
    return tuple(
        tuple(point_of(place) if place is not None else None for place in curve.places)
        for curve in sheet.projection.curves
    )


def _scale(known: Mapping[Place, Estimate], times: float, place: Place) -> Point | None:
    found = known.get(place)
    if found is None:
        return None
    return Point(value=found.value * times, low=found.low * times, high=found.high * times)


def _strays(sheet: Sheet) -> Iterator[Stray]:
    for curve in sheet.projection.curves:
        for place in curve.places:
            if place is not None:
                yield from sheet.figures.strays.get(place, ())


def _value_row(title: str, lines: Lines, singles: Sequence[float], top: float, bottom: float) -> Row:
    """`singles` are values of single runs: the axis reaches to those that are not too far out."""
    points = [point for line in lines for point in line if point]
    columns = [[point.value for point in column if point] for column in zip(*lines, strict=True)]
    far = min(point.value for point in points) > 0 and any(are_far_apart(column) for column in columns if column)
    ends = [end for point in points for end in (point.value, point.low, point.high) if end is not None]
    least, most = min(ends) / _NEAR, max(ends) * _NEAR
    ends += [value for value in singles if least <= value <= most]
    y = value_scale(ends, top=top, bottom=bottom, far_apart=far)
    ticks = log_ticks(y.low, y.high) if far else even_ticks(y.low, y.high)
    return Row(title=f"{title}, log" if far else title, lines=lines, y=y, ticks=ticks)


def _change_row(sheet: Sheet, lines: Lines, top: float, bottom: float) -> Row:
    points = [point for line in lines for point in line if point]
    ends = [end for point in points for end in (point.low, point.high) if end is not None]
    effects = [point.value for point in points]
    y = change_scale(effects, ends, threshold=sheet.bounds.threshold, top=top, bottom=bottom)
    early = "" if ends else " (no intervals yet)"
    name = cut(sheet.bounds.baseline_title, _LETTERS_OF_BASELINE - len(early))
    title = f"difference from {name}, %{early}"
    return Row(title=title, lines=lines, y=y, ticks=change_ticks(y.low, y.high), change=True)


def _difference(sheet: Sheet, place: Place) -> Point | None:
    """The comparison of a place with its interval; 1 for the baseline, which is compared with itself."""
    found: Comparison | None = sheet.figures.differences.get(place)
    if found is None:
        known = place in sheet.figures.values and place.environment == sheet.bounds.baseline
        return Point(value=1.0) if known else None
    if found.effect is None or not 0 < found.effect < math.inf:
        return None
    interval = shown_interval(found)
    if interval is None:
        return Point(value=found.effect)
    return Point(value=found.effect, low=interval.low, high=interval.high)
