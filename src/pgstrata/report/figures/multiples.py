"""Small multiples: each of many curves by itself, before all others in grey, on the same axes. As SVG."""

from __future__ import annotations

import zlib
from functools import partial
from html import escape
from itertools import pairwise
from typing import Final

from pgstrata.model.metrics import METRICS
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.labels import cut_apart
from pgstrata.report.figures.plot_marks import text
from pgstrata.report.figures.plot_rows import WIDTH, place_levels
from pgstrata.report.figures.scales import Scale, are_far_apart, short_number, value_scale
from pgstrata.report.figures.vega import COLOURS, INK, OPEN
from pgstrata.report.projections.estimates import Figures
from pgstrata.report.projections.model import Curve, Projection

_COLUMNS: Final = 4
_ACROSS: Final = WIDTH / _COLUMNS
_DOWN: Final = 66
_HEAD: Final = 15
_GAP: Final = 10
_LETTERS: Final = 14


def draw_multiples(projection: Projection, figures: Figures) -> Figure:
    """A small chart of the metric for each curve; the title says what all axes reach to."""
    columns = zip(*(curve.places for curve in projection.curves), strict=True)
    levels = [
        [figures.values[place].value for place in column if place and place in figures.values] for column in columns
    ]
    values = [value for level in levels for value in level]
    far = min(values) > 0 and any(are_far_apart(level) for level in levels if level)
    y = value_scale(values, top=0, bottom=_DOWN - _HEAD - _GAP, far_apart=far)
    ends = f"{short_number(y.low)} to {short_number(y.high)}{', log' if far else ''}"
    title = (
        f"{projection.fixed}: {METRICS[figures.metric].title} ({ends}) by {projection.axis} "
        f"({projection.levels[0]} to {projection.levels[-1]}), each {projection.series} by itself"
    )
    label = f"{title}; the others in grey. The table of the same figures is beside it"
    return Figure(title=title, label=label, draw=partial(_draw, projection, figures, y, label))


def _draw(projection: Projection, figures: Figures, y: Scale, label: str) -> str:
    xs = place_levels(projection, 0, _ACROSS - _GAP)
    lines = [_line(curve, figures, xs, y) for curve in projection.curves]
    rows = -(-len(lines) // _COLUMNS)
    name = f"m{zlib.crc32(label.encode()):x}"
    head = (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {rows * _DOWN}" fill="none" stroke-linejoin="round">'
        f"<desc>{escape(label)}</desc>"
        f'<defs><path id="{name}" d="{"".join(lines)}" stroke="{OPEN}" stroke-width=".6" opacity=".45"/></defs>'
    )
    parts, names = [head], cut_apart([curve.name for curve in projection.curves], _LETTERS)
    for place, (curve, line) in enumerate(zip(projection.curves, lines, strict=True)):
        left, top = place % _COLUMNS * _ACROSS, place // _COLUMNS * _DOWN
        colour = INK if curve.baseline else COLOURS[1]
        parts.append(
            f'<g transform="translate({left:.0f} {top + _HEAD})">{text(0, -3, names[place])}'
            f'<use href="#{name}"/><path d="{line}" stroke="{colour}" stroke-width="2"/>'
            f"<title>{escape(curve.name)}</title></g>"
        )
    return "".join([*parts, "</svg>"])


def _line(curve: Curve, figures: Figures, xs: tuple[float, ...], y: Scale) -> str:
    """As data of a path: gaps are left out."""
    known = [
        (x, y.at(figures.values[place].value))
        for x, place in zip(xs, curve.places, strict=True)
        if place is not None and place in figures.values
    ]
    steps = "".join(f"l{bx - ax:.1f},{by - ay:.1f}" for (ax, ay), (bx, by) in pairwise(known))
    return f"M{known[0][0]:.1f},{known[0][1]:.1f}{steps}" if known else ""
