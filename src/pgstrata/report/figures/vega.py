"""Building blocks of all charts as specifications of Vega-Lite, and their SVG for a page.

The specifications are plain dictionaries: altair copies and checks each of many panels, which takes seconds. Colour
never stands alone: shapes, labels or separate panels say the same.
"""

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.labels import LETTER
from pgstrata.report.figures.run_lines import break_label

Spec = dict[str, Any]
Row = Mapping[str, Any]

_VEGA_LITE: Final = "6.4"
"""The version that draws charts, so that they are the same with any renderer."""
INK: Final = "currentColor"
# Colours of verdicts, and of what has none.
BETTER, WORSE, OPEN = "#0072b2", "#d55e00", "#7f8790"
WIDTH: Final = 900
WHOLE: Final = WIDTH - 90
"""Width of a chart beside the labels of its axis."""
NARROW: Final = 296
"""The same for a chart that fits on a phone."""
PHONE: Final = 380
"""Width of a whole drawing that fits on a phone."""
# The labels of the library have another minus sign than the figures in the text.
MINUS: Final = "replace(datum.label, '\u2212', '-')"
# A label that `break_label` broke into lines, as an expression of the library.
LINES: Final = "split(datum.label, '\\n')"
# Okabe and Ito: told apart with every kind of colour vision, on white and on black.
COLOURS: Final = (OPEN, "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#a6761d")
_FEWEST_LETTERS: Final = 8
"""Fewest letters of a line of a name below an axis."""
_LEAST_SCALE: Final = 0.82
"""Texts of 11 px stay readable down to this scale."""
_PADDING: Final = {"left": 14, "right": 14, "top": 4, "bottom": 4}


def figure(
    title: str, label: str, chart: Spec, rows: Sequence[Row], narrow: Spec, narrow_rows: Sequence[Row] | None = None
) -> Figure:
    """A chart of these rows, drawn when somebody asks for it.

    `narrow` is the same chart, `NARROW` wide: a page shows it on a phone and in a column. It shows `narrow_rows` where
    there are any.
    """
    draw = partial(_draw, chart, rows, narrow, rows if narrow_rows is None else narrow_rows)
    return Figure(title=title, label=label, draw=draw)


def _draw(wide: Spec, rows: Sequence[Row], narrow: Spec, narrow_rows: Sequence[Row]) -> str:
    return f"{render(wide, rows, 'wide')}{render(narrow, narrow_rows, 'narrow')}"


def panels(title: str, label: str, charts: Sequence[tuple[Spec, Sequence[Row]]]) -> Figure:
    """Charts as wide as a phone, each with its rows, which a page places side by side where there is room."""
    return Figure(
        title=title, label=label, draw=lambda: "".join(render(chart, rows, "panel") for chart, rows in charts)
    )


def percent(ratio: float) -> float:
    """A ratio as a change in percent."""
    return rounded((ratio - 1) * 100)


def rounded(value: float) -> float:
    """Four digits are as fine as anybody sees."""
    return float(f"{value:.4g}")


def layered(layers: Sequence[Spec], **frame: Any) -> Spec:
    """Layers above each other that show the rows of a figure; `frame` is what they share: width, height, encoding."""
    return {"data": {"name": "rows"}, "layer": list(layers), **frame}


def mark(kind: str, look: Spec, *, where: str = "", row: Row | None = None, **channels: Spec | None) -> Spec:
    """One layer of points, lines, ...

    Args:
        kind: of the mark.
        look: its properties that are the same for all rows.
        where: an expression for the rows that it shows; all of them without it.
        row: the one that it shows instead.
        channels: x, y, color, ... with their fields or values.
    """
    layer: Spec = {"mark": {"type": kind, **look}, "encoding": channels}
    if where:
        layer["transform"] = [{"filter": where}]
    if row is not None:
        layer["data"] = {"values": [row]}
    return layer


def threshold_band(threshold: float, axis: str) -> list[Spec]:
    """The band in which a difference would not matter, and the line of no difference, across the other axis."""
    others: Spec = {"x": None, "y": None, "color": None}
    row = {"from": -threshold * 100, "to": threshold * 100, "at": 0}
    band: Spec = {**others, axis: number("from"), f"{axis}2": {"field": "to"}}
    return [
        mark("rect", {"color": OPEN, "opacity": 0.16}, row=row, **band),
        mark("rule", {"color": INK, "strokeWidth": 1.2}, row=row, **{**others, axis: number("at")}),
    ]


def number(field: str, **more: Any) -> Spec:
    """A channel of numbers; `more` is its title, scale and axis, which one mark of several has to give."""
    return {"field": field, "type": "quantitative", **more}


def name(field: str, **more: Any) -> Spec:
    """A channel of names, or with `scale` None of colours and shapes as they are."""
    return {"field": field, "type": "nominal", **more}


def percent_axis(**more: Any) -> Spec:
    """Of differences: +1,000, +3, 0, -3."""
    return {"format": "+,~r", "labelExpr": f"datum.value === 0 ? '0' : {MINUS}", **more}


def named_places(title: str, names: Sequence[str], margin: float, width: int = WHOLE, **axis: Any) -> Spec:
    """The places 0, 1, ... along x with their names, in lines where they are long; `width` is that of the chart."""
    letters = max(_FEWEST_LETTERS, int(width / len(names) / LETTER) - 1)
    lines = json.dumps([break_label(name, letters) for name in names])
    shown = {"values": list(range(len(names))), "labelExpr": f"split({lines}[datum.value], '\\n')", "grid": False}
    scale = {"domain": [-margin, len(names) - 1 + margin], "nice": False}
    return number("x", title=title, scale=scale, axis={**shown, **axis})


# Ink is the colour of the page's text, so that charts follow a dark page.
_INK = {"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
_AXIS = {**_INK, "domainColor": INK, "tickColor": INK, "gridColor": INK, "gridOpacity": 0.13, "domainOpacity": 0.5}
_CONFIG = {
    "background": "transparent",
    "font": "sans-serif",
    "aria": False,
    "padding": _PADDING,
    "axis": _AXIS,
    "legend": {**_INK, "symbolOpacity": 1},
    "view": {"stroke": None},
}


def render(chart: Spec, rows: Sequence[Row], look: str) -> str:
    """A chart as SVG with these rows in the place of its data named "rows", to be put into a page as it is.

    `look` is its class.
    """
    import vl_convert  # noqa: PLC0415 - only pages with charts need the renderer

    whole = {**chart, "config": _CONFIG, "datasets": {"rows": list(rows)}}
    return _prepare_inline(vl_convert.vegalite_to_svg(whole, vl_version=_VEGA_LITE), look)


# The figure as a whole has a description; those of its parts, in the words of the renderer, help nobody. The page has
# the font. What else is left out is what SVG takes for granted.
_NOISE = re.compile(
    r' (?:xmlns|xmlns:xlink|version|class|role|aria-[a-z]+|pointer-events|font-family|font-size)="[^"]*"'
    r'| (?:opacity|stroke-width)="1"| [xy]2="0"|<path d="(?:M0,0h0v0h0Z)?"(?: display="none")?/>'
)
_NUMBERS = re.compile(r' (?:d|transform|x2|y2)="[^"]*"')
_WIDTH = re.compile(r'<svg\b[^>]*? width="([\d.]+)"')
_CLIP = re.compile(r'(?<=id="|rl\(#)clip\d+')


def least_width(width: float) -> str:
    """An attribute of a drawing that is laid out for so many pixels: a page shrinks it no further than can be read."""
    return f'style="min-width:{_LEAST_SCALE * width:.0f}px"'


def _prepare_inline(svg: str, look: str) -> str:
    """Smaller, without namespaces (HTML needs none), with names of clip paths that are unique in the page.

    A tenth of a pixel is as fine as anybody sees. The renderer numbers its clip paths from its start on: named after
    the chart they are the same each time.
    """
    svg = _NOISE.sub("", _NOISE.sub("", svg))
    svg = _WIDTH.sub(lambda found: f'{found[0]} class="{look}" {least_width(float(found[1]))}', svg, count=1)
    svg = _NUMBERS.sub(lambda found: re.sub(r"(\.\d)\d+", r"\1", found[0]), svg)
    places = {name: place for place, name in enumerate(dict.fromkeys(_CLIP.findall(svg)))}
    prefix = f"c{zlib.crc32(_CLIP.sub('', svg).encode()):x}"
    return _CLIP.sub(lambda found: f"{prefix}-{places[found[0]]}", svg)
