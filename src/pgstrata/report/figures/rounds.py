"""The chart of all rounds of a cell in slices, visit after visit, with log events and background load. As SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Final

from pgstrata.compare.rounds import CellRounds, Turn
from pgstrata.model.experiment import Experiment
from pgstrata.model.runs import Validity
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.looks import EVENT_MARKS, draw_marks
from pgstrata.report.figures.plot_marks import lay_legend, text
from pgstrata.report.figures.round_rows import (
    GAP,
    HEAD,
    HEIGHT,
    LEFT,
    RIGHT,
    Sheet,
    draw_axis,
    draw_frame,
    draw_line,
    find_half,
    make_sheet,
    say_left,
    say_span,
    wrap,
)
from pgstrata.report.figures.run_lines import spread
from pgstrata.report.figures.scales import short_number
from pgstrata.report.figures.vega import INK, OPEN
from pgstrata.report.sentences.events import EVENT_WORDS
from pgstrata.units import render_share

_LANE: Final = 20.0
_LEAST_FULL: Final = 0.1
"""Share of the CPUs that fills the lane at least, so that next to nothing looks like that."""
_PAD: Final = 0.1
"""Share of the width of a visit that stays free at either side."""
_MOST_FAR: Final = 40
_APART: Final = 4.0
"""Pixels between two marks of one kind in the same row."""
_STACKED: Final = 5.5
_MOST_SLOTS: Final = 30
"""Up to so many visits have lines between them."""
_CROSS: Final = "m-2.5,-2.5l5,5m0,-5l-5,5"
_GREY: Final = f'stroke="{OPEN}" stroke-dasharray="2 2"'
_HOLLOW: Final = f'stroke="{INK}" stroke-width="1.1"'


def draw_visits(found: CellRounds, experiment: Experiment, *, bins: int, said: str) -> Figure:
    """Throughput of each environment by round, visit after visit, with log events and excluded runs.

    Args:
        found: the rounds of a cell.
        experiment: names and order of the environments.
        bins: most points of one environment in one visit; of more rounds median, smallest and largest are drawn.
        said: what the chart shows, for those who do not see it.
    """
    middles = found.medians()
    half = find_half(_sizes(found, middles))
    title = f"All visits in order: each row covers {say_span(half)} around its median{say_left(middles)}"
    sheet = make_sheet(found, experiment, middles, half, bins, f"{title}. {said}")
    return Figure(title=title, label=sheet.label, draw=partial(_draw, sheet))


def _sizes(found: CellRounds, middles: Mapping[str, float]) -> list[float]:
    """How far rounds that are in an estimate lie from the median of their environment, as logarithms."""
    return [
        abs(math.log(value / middles[name]))
        for visit in found.visits
        for name, turn in visit.turns.items()
        if turn.validity is not Validity.INVALID
        for value in turn.values
        if 0 < value < math.inf
    ]


def _draw(sheet: Sheet) -> str:
    parts = list(_draw_slots(sheet))
    for name, top in sheet.tops.items():
        parts += draw_frame(sheet.names[name], top, short_number(sheet.middles[name]))
        parts += _draw_rounds(sheet, name, top)
        parts += _draw_spoilt(sheet, name, top)
        parts += _draw_far(sheet, name, top)
        parts += _draw_events(sheet, name, top)
    lane, foot = _draw_background(sheet)
    texts = [str(visit.block) for visit in sheet.found.visits]
    axis, foot = draw_axis(texts, [_middle(sheet, place) for place in range(len(texts))], "block", foot)
    legend, height = lay_legend(_legend(sheet), foot)
    return wrap(sheet, height, [*parts, *lane, *axis, *legend])


def _x(sheet: Sheet, place: int, time: float) -> float:
    """The pixel of a time within the visit at that place."""
    slot = (RIGHT - LEFT) / len(sheet.found.visits)
    pad = _PAD * slot if len(sheet.found.visits) > 1 else 0.0
    return LEFT + place * slot + pad + (slot - 2 * pad) * min(max(time / sheet.found.length, 0.0), 1.0)


def _middle(sheet: Sheet, place: int) -> float:
    return _x(sheet, place, sheet.found.length / 2)


def _turns(sheet: Sheet, name: str) -> Iterator[tuple[int, Turn]]:
    """Of one environment, with the places of their visits."""
    for place, visit in enumerate(sheet.found.visits):
        if name in visit.turns:
            yield place, visit.turns[name]


def _draw_slots(sheet: Sheet) -> Iterator[str]:
    number = len(sheet.found.visits)
    if 1 < number <= _MOST_SLOTS:
        slot = (RIGHT - LEFT) / number
        lines = "".join(f"M{LEFT + place * slot:.1f},{sheet.head:.0f}V{sheet.bottom:.0f}" for place in range(1, number))
        yield f'<path d="{lines}" stroke="{INK}" opacity=".13"/>'


def _draw_rounds(sheet: Sheet, name: str, top: float) -> Iterator[str]:
    """Medians as a line for each visit, the smallest and the largest around them; of excluded runs dashed and grey."""
    sound: list[str] = []
    spoilt: list[str] = []
    whiskers: list[str] = []
    middle = sheet.middles[name]
    for place, turn in _turns(sheet, name):
        bins = _bin_rounds(turn, sheet.bins)
        xs = [_x(sheet, place, time) for time, *_ in bins]
        line = draw_line([(x, sheet.y(value / middle, top)) for x, (_, _, value, _) in zip(xs, bins, strict=True)])
        if turn.validity is Validity.INVALID:
            spoilt.append(line)
            continue
        sound.append(line)
        whiskers += [
            f"M{x:.1f},{sheet.y(low / middle, top):.1f}V{sheet.y(high / middle, top):.1f}"
            for x, (_, low, _, high) in zip(xs, bins, strict=True)
            if low < high
        ]
    colour = f'stroke="{sheet.colours[name]}"'
    looks = ((whiskers, f'{colour} opacity=".4"'), (sound, f'{colour} stroke-width="1.4"'), (spoilt, _GREY))
    for paths, look in looks:
        if drawn := "".join(paths):
            yield f'<path d="{drawn}" {look}/>'


def _bin_rounds(turn: Turn, most: int) -> list[tuple[float, float, float, float]]:
    """Time, smallest, median and largest of at most so many groups of neighbouring rounds."""
    known = [
        (time, value)
        for time, value in zip(turn.times, turn.values, strict=True)
        if math.isfinite(time) and 0 < value < math.inf
    ]
    size = max(1, math.ceil(len(known) / most))
    groups = [known[start : start + size] for start in range(0, len(known), size)]
    values = [[value for _, value in group] for group in groups]
    return [
        ((group[0][0] + group[-1][0]) / 2, min(found), median(found), max(found))
        for group, found in zip(groups, values, strict=True)
    ]


def _draw_spoilt(sheet: Sheet, name: str, top: float) -> Iterator[str]:
    """A cross above each excluded run, a hollow triangle above each suspect one."""
    marks = []
    for place, turn in _turns(sheet, name):
        x = _middle(sheet, place)
        if turn.validity is Validity.INVALID:
            marks.append(f"M{x:.1f},{top + 4:.1f}{_CROSS}")
        elif turn.validity is Validity.SUSPECT:
            marks.append(_triangle(x, top + 5))
    if marks:
        yield f'<path d="{"".join(marks)}" {_HOLLOW}/>'


def _triangle(x: float, y: float) -> str:
    return draw_marks(2, [(x, y)], 2.4)


def _draw_far(sheet: Sheet, name: str, top: float) -> Iterator[str]:
    found = [each for each in sheet.found.far if each.environment == name and math.isfinite(each.time)]
    at = [
        (_x(sheet, each.place, each.time), sheet.y(each.value / sheet.middles[name], top))
        for each in spread(found, _MOST_FAR)
    ]
    if at:
        yield f'<path d="{draw_marks(3, at, 2.6)}" {_HOLLOW}/>'


def _draw_events(sheet: Sheet, name: str, top: float) -> Iterator[str]:
    """What the server's log tells, along the bottom of its row, each kind at its own height."""
    height = top + HEIGHT - 3
    for kind, mark in EVENT_MARKS.items():
        xs = sorted(_x(sheet, place, time) for place, turn in _turns(sheet, name) for time in turn.events.get(kind, ()))
        at = [(x, height) for x in _thin(xs)]
        if at:
            yield f'<path d="{draw_marks(mark, at, 2.4)}" fill="{INK}" opacity=".8"/>'
            height -= _STACKED


def _thin(xs: Sequence[float]) -> Iterator[float]:
    """Without those that would cover the one before."""
    last = -math.inf
    for x in xs:
        if x - last >= _APART:
            yield x
            last = x


def _draw_background(sheet: Sheet) -> tuple[list[str], float]:
    """Bars of the CPU that others used, visit by visit, and where they end; nothing where it is not known."""
    loads = [
        (place, visit.background) for place, visit in enumerate(sheet.found.visits) if visit.background is not None
    ]
    if not loads:
        return [], sheet.bottom
    most = max(load for _, load in loads)
    top = sheet.bottom + GAP + HEAD
    foot = top + _LANE
    said = f"CPU used by other processes (at most {render_share(most)})"
    parts = [text(0, top - 5, said), f'<path d="M{LEFT},{foot}H{RIGHT}" stroke="{INK}" opacity=".35"/>']
    if most > 0:
        full = max(most, _LEAST_FULL)
        ends = [(_x(sheet, place, 0), _x(sheet, place, sheet.found.length), load / full) for place, load in loads]
        bars = [f"M{x:.1f},{foot:.1f}v{-_LANE * share:.1f}h{end - x:.1f}V{foot:.1f}z" for x, end, share in ends]
        parts.append(f'<path d="{"".join(bars)}" fill="{INK}" opacity=".45"/>')
    return parts, foot


def _legend(sheet: Sheet) -> list[tuple[str, str]]:
    """Marks of those that occur in the rows that are drawn."""
    turns = [turn for name in sheet.names for _, turn in _turns(sheet, name)]
    kinds = {kind for turn in turns for kind in turn.events}
    far = any(each.environment in sheet.names for each in sheet.found.far)
    marks: Sequence[tuple[bool, str, Callable[[], str]]] = (
        (any(turn.validity is Validity.INVALID for turn in turns), "excluded run", lambda: f"M0,0{_CROSS}"),
        (any(turn.validity is Validity.SUSPECT for turn in turns), "suspect run", lambda: _triangle(0, 0)),
        (far, "outlying round", lambda: draw_marks(3, [(0, 0)], 2.6)),
    )
    found = [(f'<path d="{draw()}" {_HOLLOW}/>', said) for there, said, draw in marks if there]
    for kind, mark in EVENT_MARKS.items():
        if kind in kinds:
            found.append((f'<path d="{draw_marks(mark, [(0, 0)], 2.4)}" fill="{INK}"/>', EVENT_WORDS[kind]))
    return found
