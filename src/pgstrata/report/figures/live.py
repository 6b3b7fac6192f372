"""The chart of a live server: load by class of wait events over time, and throughput, with the windows marked."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pgstrata.model.archive import Span
from pgstrata.model.explanation import Courses
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures import vega
from pgstrata.report.figures.vega import INK, Spec
from pgstrata.report.live.words import local, say_window

_HEIGHT: Final = 210
_LOW: Final = 110
_RUNNING: Final = "running"
_NAMES: Final = {_RUNNING: "CPU and run queue"}
# Okabe and Ito, as in the charts of where a transaction's time goes
_COLOURS: Final = {
    _RUNNING: "#009e73", "IO": "#0072b2", "LWLock": "#d55e00", "Lock": "#cc79a7", "IPC": "#a6761d",
    "Timeout": "#f0e442", "Client": "#56b4e9",
}  # fmt: skip
_OTHER: Final = "#8c6bb1"
_LABELS: Final = 44
_TICKS: Final = 8
_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


def draw_courses(
    courses: Courses, windows: Sequence[Span], comparison: Span | None = None, said: str | None = None
) -> Figure:
    """Two panels below each other along the same clock.

    Args:
        courses: what is drawn.
        windows: shaded.
        comparison: marked by its edges.
        said: what the windows are, for those who do not see them; None: there is one.
    """
    names = [name for name, _ in courses.load]
    length = courses.starts[1] - courses.starts[0] if len(courses.starts) > 1 else 1
    first = courses.starts[0]
    rows = [*_load_rows(courses, first, length), *_throughput_rows(courses, first, length)]
    spans = [(comparison, "compared with")] if comparison is not None else []
    last = courses.starts[-1] + length - first
    for span, kind in [*spans, *((window, "window") for window in windows)]:
        until = min(last, span.end - first)
        rows.append({"panel": "span", "kind": kind, "time": max(0, span.begin - first), "until": until})
    x = _clock(first, last)
    chart = {
        "data": {"name": "rows"},
        "vconcat": [_load_panel(names, x), _throughput_panel(x)],
        "spacing": 14,
    }
    marked = f"the window is {say_window(windows[0])}" if said is None else said
    text = f"Load by class of wait events and throughput over time; {marked}."
    return vega.figure("Load by what sessions waited for, and throughput", text, chart, rows)


def _load_rows(courses: Courses, first: int, length: int) -> Iterator[dict[str, Any]]:
    """Classes above each other in each cell."""
    for place, start in enumerate(courses.starts):
        base = 0.0
        at = {"panel": "load", "time": start - first, "until": start - first + length}
        for name, values in courses.load:
            if math.isfinite(values[place]) and values[place] > 0:
                top = base + values[place]
                yield {**at, "name": _NAMES.get(name, name), "from": vega.rounded(base), "to": vega.rounded(top)}
                base = top


def _throughput_rows(courses: Courses, first: int, length: int) -> Iterator[dict[str, Any]]:
    for start, value in zip(courses.starts, courses.throughput, strict=True):
        if math.isfinite(value):
            yield {"panel": "tps", "time": start - first + length / 2, "value": vega.rounded(value)}


def _clock(first: int, last: int) -> Spec:
    step = next((each for each in _STEPS if last / each <= _TICKS), 86400)
    offset = -first % step
    values = list(range(offset, last + 1, step))
    pattern = "%H:%M:%S" if step % 60 else "%H:%M"
    labels = {str(value): local(first + value).strftime(pattern) for value in values}
    axis = {"values": values, "labelExpr": f"{json.dumps(labels)}[datum.value]", "grid": False, "title": None}
    return {"scale": {"domain": [0, last], "nice": False}, "axis": axis}


def _spans(x: Spec) -> list[Spec]:
    """The window shaded and its edges; the comparison window by its edges alone."""
    where = "datum.panel === 'span' && datum.kind === 'window'"
    shade = vega.mark(
        "rect", {"color": INK, "opacity": 0.08}, where=where, x=vega.number("time", **x), x2={"field": "until"}, y=None
    )
    look = {"strokeDash": [4, 3], "strokeWidth": 1.1, "opacity": 0.8, "color": INK}
    edges = [
        vega.mark("rule", look, where="datum.panel === 'span'", x=vega.number(field, **x), y=None)
        for field in ("time", "until")
    ]
    return [shade, *edges]


def _load_panel(names: list[str], x: Spec) -> Spec:
    shown = [_NAMES.get(name, name) for name in names]
    colours = {"domain": shown, "range": [_COLOURS.get(name, _OTHER) for name in names]}
    legend = {"orient": "top", "title": None, "columns": 6, "columnPadding": 16}
    axis = {"tickCount": 5, "format": ",~r", "minExtent": _LABELS}
    y = vega.number("from", title="active sessions", scale={"zero": True}, axis=axis)
    bars = vega.mark(
        "rect",
        {"strokeWidth": 0.5},
        where="datum.panel === 'load'",
        x=vega.number("time", **x),
        x2={"field": "until"},
        y=y,
        y2={"field": "to"},
        color=vega.name("name", sort=None, scale=colours, legend=legend),
        stroke=vega.name("name", sort=None, scale=colours, legend=None),
    )
    return {"width": vega.WHOLE, "height": _HEIGHT, "layer": [bars, *_spans(x)]}


def _throughput_panel(x: Spec) -> Spec:
    axis = {"tickCount": 4, "format": ",~r", "minExtent": _LABELS}
    y = vega.number("value", title="commits per second", scale={"zero": True}, axis=axis)
    look = {"strokeWidth": 1.6, "color": INK}
    line = vega.mark("line", look, where="datum.panel === 'tps'", x=vega.number("time", **x), y=y)
    return {"width": vega.WHOLE, "height": _LOW, "layer": [line, *_spans(x)]}
