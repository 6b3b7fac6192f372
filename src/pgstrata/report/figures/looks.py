"""How curves look: colour and mark of each, and which of very many are coloured and named."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pgstrata.model.answer import Verdict
from pgstrata.report.figures.vega import COLOURS, INK
from pgstrata.report.projections.estimates import Figures
from pgstrata.report.projections.model import ENVIRONMENT, Curve, Projection

MOST_NAMED: Final = 8
"""Curves of one chart that have a colour, a mark and a name each."""
_DECIDED: Final = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.COLLAPSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Colour and number of the mark; `named` curves have both and a name, the others are thin grey lines."""

    colour: str
    mark: int
    named: bool = True


SOFT: Final = Look(colour=COLOURS[0], mark=0, named=False)


def choose_looks(projection: Projection, figures: Figures) -> tuple[Look, ...]:
    """Up to eight curves all have a look of their own.

    Of more, the baseline is in ink, and seven others are coloured: environments that differ most from the baseline, or
    levels that are evenly spread.
    """
    curves = projection.curves
    if len(curves) <= MOST_NAMED:
        return tuple(Look(colour=COLOURS[place], mark=place) for place in range(len(curves)))
    chosen = _choose(projection, figures)
    looks = {place: Look(colour=COLOURS[rank + 1], mark=rank + 1) for rank, place in enumerate(chosen)}
    return tuple(
        Look(colour=INK, mark=0) if curve.baseline else looks.get(place, SOFT) for place, curve in enumerate(curves)
    )


def _choose(projection: Projection, figures: Figures) -> list[int]:
    """Places of the coloured curves, in their order."""
    curves = projection.curves
    others = [place for place, curve in enumerate(curves) if not curve.baseline]
    most = MOST_NAMED - 1
    ranked = sorted(others, key=lambda place: -_distance(curves[place], figures))
    if projection.series == ENVIRONMENT and _distance(curves[ranked[0]], figures) > 0:
        return sorted(place for place in ranked[:most] if _distance(curves[place], figures) > 0)
    return [others[round(rank * (len(others) - 1) / (most - 1))] for rank in range(most)]


def _distance(curve: Curve, figures: Figures) -> float:
    """The largest decided difference from the baseline, as the size of its logarithm; 0 without any."""
    found = (figures.differences.get(place) for place in curve.places if place is not None)
    sizes = [abs(math.log(one.effect)) for one in found if one and one.verdict in _DECIDED and one.effect]
    return max(sizes, default=0.0)


def draw_marks(mark: int, points: Sequence[tuple[float, float]], size: float) -> str:
    """The same mark at all points, as data of one path."""
    shape = _SHAPES[mark % len(_SHAPES)]
    parts = []
    for x, y in points:
        (dx, dy), *rest = shape
        steps = "".join(f"l{size * sx:.1f},{size * sy:.1f}" for sx, sy in rest)
        parts.append(f"M{x + size * dx:.1f},{y + size * dy:.1f}{steps}z")
    return "".join(parts)


def _polygon(corners: int, turn: float, radius: float = 1.15) -> tuple[tuple[float, float], ...]:
    """The first corner, then the way from each to the next."""
    angles = [2 * math.pi * place / corners + turn for place in range(corners)]
    at = [(radius * math.sin(angle), -radius * math.cos(angle)) for angle in angles]
    return (at[0], *((b[0] - a[0], b[1] - a[1]) for a, b in pairwise(at)))


# In the order of the other charts: circle, square, triangle, diamond, triangle down, cross, triangles to the sides.
_PLUS: Final = (
    (-0.4, -1.2), (0.8, 0), (0, 0.8), (0.8, 0), (0, 0.8), (-0.8, 0), (0, 0.8), (-0.8, 0), (0, -0.8), (-0.8, 0),
    (0, -0.8), (0.8, 0),
)  # fmt: skip
_SHAPES: Final = (
    _polygon(10, 0), _polygon(4, math.pi / 4, 1.35), _polygon(3, 0, 1.4), _polygon(4, 0, 1.4),
    _polygon(3, math.pi, 1.4), _PLUS, _polygon(3, math.pi / 2, 1.4), _polygon(3, -math.pi / 2, 1.4),
)  # fmt: skip
