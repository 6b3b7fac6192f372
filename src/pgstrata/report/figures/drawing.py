"""What all charts share: the library, which is loaded late, colours and shapes of environments, and SVG for a page.

Everything that needs altair is imported inside the functions: the rest of pgstrata starts without it. Colour never
stands alone: shapes, labels or separate panels say the same.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pgstrata.model.experiment import Experiment
from pgstrata.report.figures.run_points import Axis

T = TypeVar("T")

# Okabe and Ito: told apart with every kind of colour vision, on white and on black.
_COLOURS = ("#7f8790", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#a6761d")
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left")
_DASHES = ([1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [1, 3], [4, 4])
INK = "currentColor"
# Colours of verdicts, and of what has none.
BETTER, WORSE, OPEN = "#0072b2", "#d55e00", "#7f8790"
# The labels of the library have another minus sign than the figures in the text.
MINUS = "datum.value === 0 ? '0' : replace(datum.label, '\u2212', '-')"
WIDTH = 900
# A label that `break_label` broke into lines, as an expression of the library.
LINES = "split(datum.label, '\\n')"
_PADDING = {"left": 14, "right": 14, "top": 4, "bottom": 4}
# Columns of a legend by the length of the longest name in it; longer ones get a line of their own.
_LEGEND_COLUMNS = ((12, 5), (20, 4), (28, 3), (48, 2))


def load_altair() -> Any:
    """The library, without its types: importing it takes longer than everything else that starts pgstrata."""
    import altair as alt  # noqa: PLC0415 - see above

    return alt


def own_rows() -> Any:
    """A place for the rows that `render_figure` puts in later: altair would spend seconds on validating them."""
    return load_altair().NamedData("rows")


def single_row(row: Mapping[str, Any]) -> Any:
    """Data of its own for one mark."""
    return load_altair().Data(values=[row])


def axis_of_steps(axis: Axis) -> Any:
    """Clients or scale, each doubling as wide as the next."""
    alt = load_altair()
    values = sorted({getattr(cell, axis.name) for cell in axis.cells})
    scale = alt.Scale(type="log", base=2, nice=False, padding=14)
    return alt.X("at:Q").title(axis.name).scale(scale).axis(values=values, format="~s", grid=False)


def colour_scale(experiment: Experiment, labels: Mapping[str, str]) -> Any:
    """Each environment's colour, the same in all charts, with a legend below."""
    alt = load_altair()
    domain = [labels[item.name] for item in experiment.environments]
    return alt.Color("name:N", sort=None).scale(domain=domain, range=_repeat(_COLOURS, domain)).legend(_legend(domain))


def shape_scale(experiment: Experiment, labels: Mapping[str, str]) -> Any:
    """Each environment's shape, beside its colour."""
    alt = load_altair()
    domain = [labels[item.name] for item in experiment.environments]
    return alt.Shape("name:N", sort=None).scale(domain=domain, range=_repeat(_SHAPES, domain)).legend(_legend(domain))


def dash_scale(experiment: Experiment, labels: Mapping[str, str]) -> Any:
    """Each environment's way to draw a line, beside its colour."""
    alt = load_altair()
    domain = [labels[item.name] for item in experiment.environments]
    scale = alt.Scale(domain=domain, range=_repeat(_DASHES, domain))
    return alt.StrokeDash("name:N", sort=None).scale(scale).legend(_legend(domain))


def _repeat(choices: Sequence[T], domain: Sequence[str]) -> list[T]:
    return [choices[place % len(choices)] for place in range(len(domain))]


def _legend(domain: Sequence[str]) -> Any:
    """Below the chart; names that are long get a line of their own instead of running into each other."""
    alt = load_altair()
    longest = max(len(name) for name in domain)
    columns = next((columns for limit, columns in _LEGEND_COLUMNS if longest <= limit), 1)
    expression = "replace(datum.label, /\\n/g, '')"
    return alt.Legend(
        orient="bottom", title=None, columns=columns, labelLimit=WIDTH - 120, labelExpr=expression, columnPadding=18
    )


# ------------------------------------------------------------------------------------------------ SVG


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
    "header": _INK,
    "view": {"stroke": None},
}


def render_figure(chart: Any, rows: Sequence[Mapping[str, Any]]) -> str:
    """The chart as SVG with these rows, to be put into a page as it is."""
    return render_specification(chart.to_dict(), rows)


def render_specification(specification: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """A Vega-Lite specification as SVG with these rows in the place of its data named "rows".

    Of many small panels altair would need seconds for copies and checks of what it was given.
    """
    import vl_convert  # noqa: PLC0415 - as altair

    whole = {**specification, "config": _CONFIG, "datasets": {"rows": list(rows)}}
    version = ".".join(load_altair().SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return _prepare_inline(vl_convert.vegalite_to_svg(whole, vl_version=version))


# The figure as a whole has a description; those of its parts, in the words of the renderer, help nobody. The page has
# the font. What else is left out is what SVG takes for granted.
_NOISE = re.compile(
    r' (?:xmlns|xmlns:xlink|version|class|role|aria-[a-z]+|pointer-events|font-family|font-size)="[^"]*"'
    r'| (?:opacity|stroke-width)="1"| [xy]2="0"|<path d="(?:M0,0h0v0h0Z)?"(?: display="none")?/>'
)
_NUMBERS = re.compile(r' (?:d|transform|x2|y2)="[^"]*"')
_CLIP = re.compile(r'(?<=id="|rl\(#)clip\d+')


def _prepare_inline(svg: str) -> str:
    """Smaller, without namespaces (HTML needs none), with names of clip paths that are unique in the page.

    A tenth of a pixel is as fine as anybody sees. The renderer numbers its clip paths from its start on: named after
    the chart they are the same each time.
    """
    svg = _NOISE.sub("", _NOISE.sub("", svg))
    svg = _NUMBERS.sub(lambda found: re.sub(r"(\.\d)\d+", r"\1", found[0]), svg)
    places = {name: place for place, name in enumerate(dict.fromkeys(_CLIP.findall(svg)))}
    prefix = f"c{zlib.crc32(_CLIP.sub('', svg).encode()):x}"
    return _CLIP.sub(lambda found: f"{prefix}-{places[found[0]]}", svg)
