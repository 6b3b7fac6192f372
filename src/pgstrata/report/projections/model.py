"""What a chart of the matrix shows: levels along one axis, a curve for each level of another, all else fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CLIENTS: Final = "clients"
SCALE: Final = "scale"
ENVIRONMENT: Final = "environment"
PAIR: Final = 2
"""Levels of an axis that is drawn only where it is asked for: nobody knows what lies between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One field of the matrix: an environment in a cell, by their names."""

    environment: str
    cell: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A line through the levels of an axis; None where the experiment has no such environment or cell.

    `name` tells it from the other curves of its chart. `baseline`: all its places are the baseline's.
    """

    name: str
    places: tuple[Place | None, ...]
    baseline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """One chart: `levels` along `axis`, one curve for each level of `series`, and what all its points share, `fixed`.

    `axis` and `series` are `CLIENTS`, `SCALE`, `ENVIRONMENT` or the name of a factor. `numbers` are the levels of
    clients and scale, ascending; empty of a factor, whose levels have an order and no distances.
    """

    axis: str
    series: str
    fixed: str
    levels: tuple[str, ...]
    curves: tuple[Curve, ...]
    numbers: tuple[int, ...] = ()

    @property
    def gapped(self) -> bool:
        """Whether it has two numbers of clients, or two scales, between which nothing was measured."""
        return len(self.numbers) == PAIR

    @property
    def kind(self) -> tuple[str, str]:
        """Axis and series: charts of one kind are read side by side."""
        return self.axis, self.series

    @property
    def points(self) -> int:
        """Points of all curves."""
        return sum(place is not None for curve in self.curves for place in curve.places)

    @property
    def cells(self) -> tuple[str, ...]:
        """All cells that it shows, each once."""
        found = (place.cell for curve in self.curves for place in curve.places if place is not None)
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class UndrawnAxis:
    """An axis that cannot be drawn: it has one of `levels`, or no two environments or cells differ in it alone."""

    axis: str
    levels: tuple[str, ...]
