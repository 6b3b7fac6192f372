"""The chart of a live server: load by class of wait events over time, and throughput, with the windows marked.

Of an environment of a study the same by block.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
_TICKS_NARROW: Final = 4
_COLUMNS, _COLUMNS_NARROW = 6, 2
_ROOM: Final = 1.05
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
    length = courses.starts[1] - courses.starts[0] if len(courses.starts) > 1 else 1
    first = courses.starts[0]
    rows = [*_load_rows(courses, first, length), *_throughput_rows(courses, first, length)]
    spans = [(comparison, "compared with")] if comparison is not None else []
    last = courses.starts[-1] + length - first
    for span, kind in [*spans, *((window, "window") for window in windows)]:
        until = min(last, span.end - first)
        rows.append({"panel": "span", "kind": kind, "time": max(0, span.begin - first), "until": until})
    wide, narrow = (_clock(first, last, most) for most in (_TICKS, _TICKS_NARROW))
    marked = f"the window is {say_window(windows[0])}" if said is None else said
    text = f"Load by class of wait events and throughput over time; {marked}."
    title = "Load by what sessions waited for, and throughput"
    return _figure(title, text, _Look(names=[name for name, _ in courses.load]), rows, (wide, narrow))


def draw_blocks(sides: Sequence[tuple[str, Courses]]) -> tuple[Figure, ...]:
    """The same for each environment of a study, by block and on the same axes; `sides` are names and runs."""
    sums: dict[str, float] = {}
    for _, courses in sides:
        for name, values in courses.load:
            sums[name] = sums.get(name, 0.0) + math.fsum(filter(math.isfinite, values))
    names = sorted(sums, key=lambda name: -sums[name])
    drawn = []
    for _, courses in sides:
        load = dict(courses.load)
        empty = (0.0,) * len(courses.starts)
        ordered = replace(
            courses,
            starts=tuple(range(len(courses.starts))),
            load=tuple((name, load.get(name, empty)) for name in names),
        )
        drawn.append([*_load_rows(ordered, 0, 1), *_throughput_rows(ordered, 0, 1)])
    tops = {
        field: _ROOM * max((row[field] for rows in drawn for row in rows if field in row), default=1.0) or 1.0
        for field in ("to", "value")
    }
    look = _Look(names=names, tops=tops, unit="tps", dots=True)
    return tuple(
        _figure("", f"Load by class of wait events, and throughput, of {name} by block.", look, rows, _blocks(courses))
        for (name, courses), rows in zip(sides, drawn, strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """Classes from the bottom to the top; ends of the axes by field where they are fixed; what the line shows."""

    names: Sequence[str]
    tops: Mapping[str, float] | None = None
    unit: str = "commits per second"
    dots: bool = False

    def scale(self, field: str) -> Spec:
        """The axis of a field."""
        return {"zero": True} if self.tops is None else {"domain": [0, self.tops[field]], "nice": False}


def _figure(title: str, text: str, look: _Look, rows: Sequence[vega.Row], axes: tuple[Spec, Spec]) -> Figure:
    wide, narrow = axes
    charts = (
        _chart(look, wide, vega.WHOLE, _COLUMNS),
        _chart(look, narrow, vega.NARROW, _COLUMNS_NARROW),
    )
    return vega.figure(title, text, charts[0], rows, charts[1])


def _chart(look: _Look, x: Spec, width: int, columns: int) -> Spec:
    panels = [_load_panel(look, x, width, columns), _throughput_panel(look, x, width)]
    return {"data": {"name": "rows"}, "vconcat": panels, "spacing": 14}


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


def _clock(first: int, last: int, most: int) -> Spec:
    """The axis of a time with at most so many labels."""
    step = next((each for each in _STEPS if last / each <= most), 86400)
    offset = -first % step
    values = list(range(offset, last + 1, step))
    pattern = "%H:%M:%S" if step % 60 else "%H:%M"
    labels = {str(value): local(first + value).strftime(pattern) for value in values}
    return _axis(values, labels, last, title=None)


def _blocks(courses: Courses) -> tuple[Spec, Spec]:
    """Axes of blocks, wide and narrow."""
    number = len(courses.starts)
    blocks = courses.blocks or tuple(range(1, number + 1))
    labels = {str(place + 0.5): str(block) for place, block in enumerate(blocks)}
    wide, narrow = (
        _axis([place + 0.5 for place in range(0, number, math.ceil(number / most))], labels, number, title="block")
        for most in (3 * _TICKS, 2 * _TICKS)
    )
    return wide, narrow


def _axis(values: Sequence[float], labels: Mapping[str, str], last: int, *, title: str | None) -> Spec:
    axis = {"values": values, "labelExpr": f"{json.dumps(labels)}[datum.value]", "grid": False, "title": title}
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


def _load_panel(look: _Look, x: Spec, width: int, columns: int) -> Spec:
    shown = [_NAMES.get(name, name) for name in look.names]
    colours = {"domain": shown, "range": [_COLOURS.get(name, _OTHER) for name in look.names]}
    legend = {"orient": "top", "title": None, "columns": columns, "columnPadding": 16}
    axis = {"tickCount": 5, "format": ",~r", "minExtent": _LABELS}
    y = vega.number("from", title="active sessions", scale=look.scale("to"), axis=axis)
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
    return {"width": width, "height": _HEIGHT, "layer": [bars, *_spans(x)]}


def _throughput_panel(look: _Look, x: Spec, width: int) -> Spec:
    axis = {"tickCount": 4, "format": ",~r", "minExtent": _LABELS}
    y = vega.number("value", title=look.unit, scale=look.scale("value"), axis=axis)
    line = {"strokeWidth": 1.6, "color": INK, **({"point": {"color": INK, "size": 26}} if look.dots else {})}
    drawn = vega.mark("line", line, where="datum.panel === 'tps'", x=vega.number("time", **x), y=y)
    return {"width": width, "height": _LOW, "layer": [drawn, *_spans(x)]}
