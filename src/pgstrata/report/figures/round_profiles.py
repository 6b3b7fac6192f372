"""The chart of how rounds go within a visit, over all visits of a cell: whether the first ones differ. As SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Final

from pgstrata.compare.rounds import CellRounds, Profile
from pgstrata.model.experiment import Experiment
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.round_rows import (
    LEFT,
    RIGHT,
    Point,
    Sheet,
    choose_environments,
    draw_axis,
    draw_frame,
    draw_line,
    find_half,
    make_sheet,
    say_left,
    say_span,
    wrap,
)
from pgstrata.report.figures.scales import step_between
from pgstrata.report.sentences.names import count

_MOST_POINTS: Final = 120
_MOST_NUMBERS: Final = 6
_MARGIN: Final = 4.0


def draw_within(found: CellRounds, experiment: Experiment, *, said: str) -> Figure | None:
    """Medians over all visits by round, and the band that holds half of the visits; None where no visit has two rounds.

    Args:
        found: the rounds of a cell.
        experiment: names and order of the environments.
        said: what the chart shows, for those who do not see it.
    """
    profiles = {name: each for name, each in found.profiles.items() if len(each.middle) > 1}
    if not profiles:
        return None
    shown = choose_environments(experiment, profiles)
    ends = [end for name in shown for each in (profiles[name].low, profiles[name].high) for end in each]
    half = find_half([abs(math.log(end)) for end in ends])
    visits = max(profiles[name].visits for name in shown)
    title = (
        f"Within a visit: median of {count(visits, 'visit')}, with a band that contains half of them; each row covers "
        f"{say_span(half)} around the median of the visit{say_left(profiles)}"
    )
    sheet = make_sheet(found, experiment, dict.fromkeys(profiles, 1.0), half, _MOST_POINTS, f"{title}. {said}")
    return Figure(title=title, label=sheet.label, draw=partial(_draw, sheet, profiles))


def _draw(sheet: Sheet, profiles: Mapping[str, Profile]) -> str:
    rounds = max(len(profiles[name].middle) for name in sheet.names)
    parts: list[str] = []
    for name, top in sheet.tops.items():
        parts += draw_frame(sheet.names[name], top, "0")
        parts += _draw_profile(sheet, profiles[name], sheet.colours[name], rounds, top)
    step = max(1, round(step_between(0, rounds, _MOST_NUMBERS)))
    numbers = sorted({1, *range(step, rounds + 1, step)})
    texts, xs = [str(number) for number in numbers], [_at(number, rounds) for number in numbers]
    axis, foot = draw_axis(texts, xs, "round", sheet.bottom)
    return wrap(sheet, foot + 6, [*parts, *axis])


def _at(number: float, rounds: int) -> float:
    """The pixel of a round, counted from 1."""
    return LEFT + _MARGIN + (RIGHT - LEFT - 2 * _MARGIN) * (number - 1) / max(1, rounds - 1)


def _draw_profile(sheet: Sheet, profile: Profile, colour: str, rounds: int, top: float) -> Iterator[str]:
    """Of very many rounds the medians of neighbouring ones."""
    length = len(profile.middle)
    size = math.ceil(length / sheet.bins)
    starts = range(0, length, size)
    xs = [_at(1 + start + (min(size, length - start) - 1) / 2, rounds) for start in starts]

    def points(values: Sequence[float]) -> list[Point]:
        found = (median(values[start : start + size]) for start in starts)
        return [(x, sheet.y(value, top)) for x, value in zip(xs, found, strict=True)]

    band = [*points(profile.high), *reversed(points(profile.low))]
    outline = "L".join(f"{x:.1f},{y:.1f}" for x, y in band)
    yield f'<path d="M{outline}z" fill="{colour}" opacity=".25"/>'
    yield f'<path d="{draw_line(points(profile.middle))}" stroke="{colour}" stroke-width="1.5"/>'
