"""Charts of projections: the metric, latency and the difference below each other along one axis, as SVG.

They are drawn here and not by the renderer of the other charts, because names beside lines must not cover each other,
which takes the pixels of all of them, and because a study has dozens of these charts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Final

from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.labels import cut_apart, text_box
from pgstrata.report.figures.looks import Look, choose_looks
from pgstrata.report.figures.plot_marks import LETTERS, draw_legend, draw_levels, draw_row
from pgstrata.report.figures.plot_rows import WIDTH, Bounds, Sheet, make_rows, place_levels
from pgstrata.report.figures.scales import short_number
from pgstrata.report.projections.estimates import Figures
from pgstrata.report.projections.model import Projection
from pgstrata.report.sentences.names import join_names, name_factor

_LEFT: Final = 44
_MARGIN: Final = 12
_NARROWEST: Final = 24.0


def draw_projection(projection: Projection, figures: Figures, bounds: Bounds) -> Figure:
    """The chart; its words for those who do not see it are first and last values of each named curve."""
    title = f"{projection.fixed}, by {name_factor(projection.axis)}{_say_exceeded(projection, bounds)}"
    looks = choose_looks(projection, figures)
    label = f"{title}: {_say_curves(projection, figures, looks)}"
    return Figure(title=title, label=label, draw=partial(_draw, projection, figures, bounds, looks, label))


def _say_exceeded(projection: Projection, bounds: Bounds) -> str:
    """What the data of all its cells are larger than; nothing where that differs between them."""
    alike = {bounds.exceeded.get(cell, ()) for cell in projection.cells}
    names = alike.pop() if len(alike) == 1 else ()
    return f" (data exceed {join_names(names)})" if names else ""


def _say_curves(projection: Projection, figures: Figures, looks: Sequence[Look]) -> str:
    parts = []
    for curve, look in zip(projection.curves, looks, strict=True):
        found = (figures.values.get(place) for place in curve.places if place is not None)
        known = [one.value for one in found if one is not None]
        if known and look.named:
            parts.append(f"{curve.name} from {short_number(known[0])} to {short_number(known[-1])} {figures.metric}")
    left = sum(not look.named for look in looks)
    return "; ".join([*parts, *([f"{left} more lines in grey"] if left else [])])


def _draw(projection: Projection, figures: Figures, bounds: Bounds, looks: tuple[Look, ...], label: str) -> str:
    names = cut_apart([each.name for each, look in zip(projection.curves, looks, strict=True) if look.named], LETTERS)
    right = WIDTH - 16 - max(_NARROWEST, *(text_box(name, 0, 0).width for name in names))
    sheet = Sheet(
        projection=projection,
        figures=figures,
        bounds=bounds,
        looks=looks,
        xs=place_levels(projection, _LEFT + _MARGIN, right - _MARGIN / 2),
        right=right,
    )
    rows = list(make_rows(sheet))
    bottom = rows[-1].y.start
    parts = [part for row in rows for part in draw_row(sheet, row)]
    axis, foot = draw_levels(sheet, bottom)
    legend, height = draw_legend(sheet, foot)
    head = (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {height:.0f}" fill="none" stroke-linejoin="round">'
        f"<desc>{escape(label)}</desc>"
    )
    return "".join([head, *parts, *axis, *legend, "</svg>"])
