"""How curves look: colour and mark of each, and which of very many are coloured and named."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pgstrata.report.figures.vega import COLOURS, INK
from pgstrata.report.projections.estimates import Figures
from pgstrata.report.projections.model import ENVIRONMENT, Curve, Projection
from pgstrata.report.sentences.events import EVENT_WORDS

ALL_NAMED: Final = 14
"""Up to so many curves of one chart have a colour, a mark and a name each."""
MOST_NAMED: Final = 8
"""Of more curves, so many."""
EVENT_MARKS: Final[Mapping[str, int]] = {kind: mark for mark, kind in enumerate(EVENT_WORDS, start=1)}
"""Numbers of the marks of log events, by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Colour and number of the mark; `named` curves have both and a name, the others are thin grey lines."""

    colour: str
    mark: int
    named: bool = True


SOFT: Final = Look(colour=COLOURS[0], mark=0, named=False)


def choose_looks(projection: Projection, figures: Figures) -> tuple[Look, ...]:
    """Up to 14 curves all have a look of their own: a colour that returns has another mark.

    Of more, the baseline is in ink, and seven others are coloured: environments that lie farthest from each other, or
    levels that are evenly spread.
    """
    curves = projection.curves
    if len(curves) <= ALL_NAMED:
        return tuple(_look(place) for place in range(len(curves)))
    others = [place for place, curve in enumerate(curves) if not curve.baseline]
    if projection.series == ENVIRONMENT:
        chosen = _farthest(others, [_position(curve, figures) for curve in curves], MOST_NAMED - 1)
    else:
        chosen = [others[round(rank * (len(others) - 1) / (MOST_NAMED - 2))] for rank in range(MOST_NAMED - 1)]
    looks = {place: _look(rank + 1) for rank, place in enumerate(sorted(chosen))}
    return tuple(
        Look(colour=INK, mark=0) if curve.baseline else looks.get(place, SOFT) for place, curve in enumerate(curves)
    )


def _look(place: int) -> Look:
    return Look(colour=COLOURS[place % len(COLOURS)], mark=place + place // len(COLOURS))


def _position(curve: Curve, figures: Figures) -> tuple[float, ...]:
    """Logarithms of the differences from the baseline, level by level; 0 where nothing is known."""
    found = (figures.differences.get(place) if place is not None else None for place in curve.places)
    return tuple(math.log(one.effect) if one and one.effect and one.effect > 0 else 0.0 for one in found)


def _farthest(places: Sequence[int], positions: Sequence[tuple[float, ...]], number: int) -> list[int]:
    """One after the other that which is farthest from all before it, the baseline being the first (Gonzalez 1985)."""
    near = {place: math.hypot(*positions[place]) for place in places}
    chosen: list[int] = []
    while len(chosen) < number:
        place = max((each for each in places if each not in chosen), key=lambda each: near[each])
        chosen.append(place)
        near = {each: min(at, math.dist(positions[each], positions[place])) for each, at in near.items()}
    return chosen


def draw_marks(mark: int, points: Sequence[tuple[float, float]], size: float) -> str:
    """The same mark at all points, as data of one path."""
    shape = _SHAPES[mark % len(_SHAPES)]
    if not shape:
        arc = f"a{size:.1f},{size:.1f} 0 1 0"
        return "".join(f"M{x - size:.1f},{y:.1f}{arc} {2 * size:.1f},0{arc} {-2 * size:.1f},0" for x, y in points)
    (dx, dy), *rest = shape
    steps = "".join(f"l{size * sx:.1f},{size * sy:.1f}" for sx, sy in rest)
    return "".join(f"M{x + size * dx:.1f},{y + size * dy:.1f}{steps}z" for x, y in points)


def _polygon(corners: int, turn: float, radius: float = 1.15) -> tuple[tuple[float, float], ...]:
    """The first corner, then the way from each to the next."""
    angles = [2 * math.pi * place / corners + turn for place in range(corners)]
    at = [(radius * math.sin(angle), -radius * math.cos(angle)) for angle in angles]
    return (at[0], *((b[0] - a[0], b[1] - a[1]) for a, b in pairwise(at)))


# In the order of the other charts: circle (without corners), square, triangle up, diamond, triangle down, cross, and
# triangles to the sides.
_PLUS: Final[tuple[tuple[float, float], ...]] = (
    (-0.4, -1.2), (0.8, 0), (0, 0.8), (0.8, 0), (0, 0.8), (-0.8, 0), (0, 0.8), (-0.8, 0), (0, -0.8), (-0.8, 0),
    (0, -0.8), (0.8, 0),
)  # fmt: skip
_SHAPES: Final[tuple[tuple[tuple[float, float], ...], ...]] = (
    (), _polygon(4, math.pi / 4, 1.35), _polygon(3, 0, 1.4), _polygon(4, 0, 1.4),
    _polygon(3, math.pi, 1.4), _PLUS, _polygon(3, math.pi / 2, 1.4), _polygon(3, -math.pi / 2, 1.4),
)  # fmt: skip
