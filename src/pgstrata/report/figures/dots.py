"""Charts of single values and of intervals, in panels below each other: drawn in two widths, as SVG.

All marks of one look are one path, so that a page of thousands of runs stays small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.report.figures.labels import thin_out
from pgstrata.report.figures.looks import draw_marks
from pgstrata.report.figures.plot_marks import lay_legend, text
from pgstrata.report.figures.round_rows import Point, draw_line
from pgstrata.report.figures.scales import Scale, Tick, step_between
from pgstrata.report.figures.second_panels import colour_of, mark_of
from pgstrata.report.figures.vega import INK, PHONE, WIDTH, least_width

_WIDTHS: Final = ((float(WIDTH), "wide"), (float(PHONE), "narrow"))
"""Pixels of both drawings, and how a page calls them."""
_LEFT: Final = 50.0
_HEAD: Final = 19.0
"""Pixels for the title above a panel."""
_GAP: Final = 6.0
_APART: Final = 36.0
"""Pixels between two numbers on the axis below, at least."""
_MARK, _LEAST_MARK, _DENSE = 3.6, 1.8, 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """Points of one environment, with the index that gives it colour and mark.

    `spans` are intervals: x, low and high. `joined` means that a line goes through all points.
    """

    name: str
    place: int
    points: tuple[Point, ...]
    spans: tuple[tuple[float, float, float], ...] = ()
    joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DotPanel:
    """Points on an axis from `low` to `high`; all lie within it.

    `chains` are thin lines that join points of several environments. `level` is a dashed line across, `zero` a solid
    one. `signs` are short texts with their places.
    """

    title: str
    low: float
    high: float
    ticks: tuple[Tick, ...]
    dots: tuple[Dots, ...]
    log: bool = False
    chains: tuple[tuple[Point, ...], ...] = ()
    level: float | None = None
    zero: float | None = None
    signs: tuple[tuple[float, float, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Across:
    """The axis below all panels, from `low` to `high`: `names` of the places 0, 1, ..., or whole numbers."""

    title: str
    low: float
    high: float
    names: tuple[str, ...] = ()


def draw_dots(panels: Sequence[DotPanel], across: Across, *, height: float) -> str:
    """Both drawings: panels of that height below each other, and a legend."""
    return "".join(_draw(panels, across, height, width, look) for width, look in _WIDTHS)


def _draw(panels: Sequence[DotPanel], across: Across, height: float, width: float, look: str) -> str:
    x = Scale(low=across.low, high=across.high, start=_LEFT, end=width - 6)
    parts: list[str] = []
    top = 0.0
    for panel in panels:
        top += _HEAD
        parts.append(text(0, top - 7, panel.title, more=' font-weight="600"'))
        parts.append(f'<g transform="translate(0 {top:.0f})">{"".join(_draw_panel(panel, x, height))}</g>')
        top += height + _GAP
    axis, foot = _draw_axis(across, x, top - _GAP)
    legend, bottom = lay_legend(_legend(panels), foot, width)
    size = f'width="{width:.0f}" height="{bottom:.0f}" viewBox="0 0 {width:.0f} {bottom:.0f}" {least_width(width)}'
    return f'<svg class="{look}" {size} fill="none" stroke-linejoin="round">{"".join([*parts, *axis, *legend])}</svg>'


def _draw_panel(panel: DotPanel, x: Scale, height: float) -> Iterator[str]:
    y = Scale(low=panel.low, high=panel.high, start=height, end=0, log=panel.log)

    def at(points: Sequence[Point]) -> list[Point]:
        return [(x.at(place), y.at(value)) for place, value in points]

    def line_across(value: float) -> str:
        return f"M{x.start:.0f},{y.at(value):.1f}H{x.end:.0f}"

    yield f'<path d="{"".join(line_across(tick.value) for tick in panel.ticks)}" stroke="{INK}" opacity=".13"/>'
    for tick in panel.ticks:
        yield text(x.start - 5, y.at(tick.value) + 4, tick.text, anchor="end")
    if panel.zero is not None:
        yield f'<path d="{line_across(panel.zero)}" stroke="{INK}" stroke-width="1.2"/>'
    if panel.level is not None:
        yield f'<path d="{line_across(panel.level)}" stroke="{INK}" stroke-dasharray="3 3" opacity=".6"/>'
    if chains := "".join(draw_line(at(points)) for points in panel.chains if len(points) > 1):
        yield f'<path d="{chains}" stroke="{INK}" stroke-width=".8" opacity=".45"/>'
    size = _size_marks(panel, x)
    for each in panel.dots:
        yield from _draw_dots(each, at(each.points), [(x.at(a), y.at(b), y.at(c)) for a, b, c in each.spans], size)
    for place, value, sign in panel.signs:
        yield text(x.at(place), y.at(value) + 4, sign, anchor="middle")


def _draw_dots(
    dots: Dots, points: Sequence[Point], spans: Sequence[tuple[float, float, float]], size: float
) -> Iterator[str]:
    colour = colour_of(dots.place)
    if spans:
        lines = "".join(f"M{x:.1f},{low:.1f}V{high:.1f}" for x, low, high in spans)
        yield f'<path d="{lines}" stroke="{colour}" stroke-width="1.6"/>'
    if dots.joined and len(points) > 1:
        yield f'<path d="{draw_line(points)}" stroke="{colour}" opacity=".4"/>'
    if points:
        yield f'<path d="{draw_marks(mark_of(dots.place), points, size)}" fill="{colour}"/>'


def _size_marks(panel: DotPanel, x: Scale) -> float:
    """Half the width of marks: smaller where many stand beside each other."""
    columns = len({place for each in panel.dots for place, _ in each.points})
    return min(_MARK, max(_LEAST_MARK, _DENSE * (x.end - x.start) / max(1, columns)))


def _draw_axis(across: Across, x: Scale, bottom: float) -> tuple[list[str], float]:
    ticks = [*enumerate(across.names)] if across.names else [(n, str(n)) for n in _choose_numbers(across, x)]
    xs = [x.at(place) for place, _ in ticks]
    shown = thin_out([said for _, said in ticks], xs)
    parts = [
        text(at, bottom + 15, said, anchor="middle")
        for at, (_, said), here in zip(xs, ticks, shown, strict=True)
        if here
    ]
    return [*parts, text((x.start + x.end) / 2, bottom + 30, across.title, anchor="middle")], bottom + 30


def _choose_numbers(across: Across, x: Scale) -> list[int]:
    first, last = math.ceil(across.low), math.floor(across.high)
    most = max(1, int((x.end - x.start) / _APART))
    step = max(1, round(step_between(0, last, most))) if last > most else 1
    numbers = list(range(step * math.ceil(first / step), last + 1, step))
    return [first, *numbers] if numbers and numbers[0] - first > step / 2 else numbers


def _legend(panels: Sequence[DotPanel]) -> list[tuple[str, str]]:
    named = {each.place: each.name for panel in panels for each in panel.dots}
    return [
        (f'<path d="{draw_marks(mark_of(place), [(0, 0)], _MARK)}" fill="{colour_of(place)}"/>', named[place])
        for place in sorted(named)
    ]
