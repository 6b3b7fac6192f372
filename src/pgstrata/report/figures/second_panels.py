"""Panels of lines over seconds: side by side where there is room, one below the other on a phone. As SVG.

Each panel is a drawing of its own, as wide as a phone, so that its texts can be read there; the page places them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.report.figures.labels import LINE
from pgstrata.report.figures.looks import draw_marks
from pgstrata.report.figures.plot_marks import lay_legend, text
from pgstrata.report.figures.plot_rows import WIDTH
from pgstrata.report.figures.round_rows import LEFT, RIGHT, Point, draw_axis, draw_line
from pgstrata.report.figures.run_lines import break_label
from pgstrata.report.figures.scales import Scale, Tick, choose_seconds, even_ticks, log_ticks, value_scale
from pgstrata.report.figures.vega import COLOURS, INK

_HEIGHT: Final = 104.0
_LETTERS: Final = 56
"""Letters of a line that has room above a panel."""
_DASHES: Final = ("", "6 2", "2 2", "8 2 2 2", "1 3", "4 4")
_EVENT: Final = 2.6
_APART: Final = 7.0
"""Pixels between the heights of two kinds of events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One line: seconds and values, its colour, whether it is drawn thin, and the `mark` drawn at each point."""

    points: tuple[Point, ...]
    colour: str
    dash: str = ""
    thin: bool = False
    mark: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Seconds in which something happened, with the number of its mark and its colour; `kind` is its height."""

    seconds: tuple[float, ...]
    mark: int
    colour: str
    kind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Lines on one axis, with a title above. `unit` is that of the values; `log` means a logarithmic axis."""

    title: str
    unit: str
    courses: tuple[Course, ...]
    scale: Scale
    events: tuple[Events, ...] = ()


def colour_of(place: int) -> str:
    """Colour of the environment with this index, as in the other charts."""
    return COLOURS[place % len(COLOURS)]


def dash_of(place: int) -> str:
    """Dashes of the environment with this index, as SVG."""
    return _DASHES[place % len(_DASHES)]


def mark_of(place: int) -> int:
    """Mark of the environment with this index; it changes when the colours repeat."""
    return place + place // len(COLOURS)


def fit_scale(courses: Sequence[Course], *, log: bool = False) -> Scale:
    """An axis for all these lines, from zero or logarithmic."""
    values = [value for course in courses for _, value in course.points]
    return value_scale(values, top=0, bottom=_HEIGHT, far_apart=log)


def draw_panels(panels: Sequence[Panel], legend: Sequence[tuple[str, str]], title: str = "seconds") -> str:
    """All panels on one axis of seconds with its `title`, and below them what their marks mean.

    Args:
        panels: at least one, with points.
        legend: marks as SVG, and what they mean; may be empty.
        title: of the axis.
    """
    last = max(time for panel in panels for course in panel.courses for time, _ in course.points)
    drawn = [_draw_panel(panel, max(last, 1.0), title) for panel in panels]
    if legend:
        parts, height = lay_legend(legend, -8)
        drawn.append(_wrap("plot legend", height, parts))
    return "".join(drawn)


def line_sample(course: Course) -> str:
    """A short piece of a line as SVG, for a legend."""
    mark = "" if course.mark is None else f'<path d="{draw_marks(course.mark, [(0, 0)], 2.4)}" fill="{course.colour}"/>'
    return f'<path d="M-6,0H6" {_stroke(course)}/>{mark}'


def _wrap(look: str, height: float, parts: Sequence[str]) -> str:
    head = f'<svg class="{look}" viewBox="0 0 {WIDTH} {height:.0f}" fill="none" stroke-linejoin="round">'
    return "".join([head, *parts, "</svg>"])


def _draw_panel(panel: Panel, last: float, title: str) -> str:
    lines = break_label(panel.title, _LETTERS - len(panel.unit)).split("\n")
    top = LINE * len(lines) + 8
    heading = [text(0, LINE * place - 2, line, more=' font-weight="600"') for place, line in enumerate(lines, 1)]
    unit = [text(RIGHT, LINE * len(lines) - 2, panel.unit, anchor="end")] if panel.unit else []
    seconds = choose_seconds(last)
    xs = [_x(second, last) for second in seconds]
    axis, foot = draw_axis([str(second) for second in seconds], xs, title, top + _HEIGHT)
    inner = "".join([*_draw_grid(panel.scale), *_draw_courses(panel, last), *_draw_events(panel, last)])
    return _wrap("plot", foot + 5, [*heading, *unit, f'<g transform="translate(0 {top:.0f})">{inner}</g>', *axis])


def _x(second: float, last: float) -> float:
    return LEFT + (RIGHT - 6 - LEFT) * min(max(second / last, 0.0), 1.0)


def _draw_grid(scale: Scale) -> Iterator[str]:
    ticks = _ticks(scale)
    lines = "".join(f"M{LEFT:.0f},{scale.at(tick.value):.1f}H{RIGHT:.0f}" for tick in ticks)
    yield f'<path d="{lines}" stroke="{INK}" opacity=".13"/>'
    for tick in ticks:
        yield text(LEFT - 5, scale.at(tick.value) + 4, tick.text, anchor="end")


def _ticks(scale: Scale) -> tuple[Tick, ...]:
    return log_ticks(scale.low, scale.high) if scale.log else even_ticks(scale.low, scale.high)


def _draw_courses(panel: Panel, last: float) -> Iterator[str]:
    for course in panel.courses:
        at = [(_x(time, last), panel.scale.at(value)) for time, value in course.points]
        yield f'<path d="{draw_line(at)}" {_stroke(course)}/>'
        if course.mark is not None:
            yield f'<path d="{draw_marks(course.mark, at, 2.4)}" fill="{course.colour}"/>'


def _stroke(course: Course) -> str:
    width, opacity = ("0.9", ' opacity=".75"') if course.thin else ("1.4", "")
    dash = f' stroke-dasharray="{course.dash}"' if course.dash else ""
    return f'stroke="{course.colour}" stroke-width="{width}"{opacity}{dash}'


def _draw_events(panel: Panel, last: float) -> Iterator[str]:
    """Marks of events along the bottom, each kind at its own height."""
    for each in panel.events:
        at = [(_x(second, last), _HEIGHT - 4 - _APART * each.kind) for second in each.seconds]
        if at:
            yield f'<path d="{draw_marks(each.mark, at, _EVENT)}" fill="{each.colour}" opacity=".9"/>'
