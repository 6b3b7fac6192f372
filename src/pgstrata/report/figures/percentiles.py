"""The chart of percentiles of latency, and below it the shift function: how much each differs from the baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from pgstrata.model.answer import Answer, QuantileShift
from pgstrata.model.experiment import Experiment
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures import vega
from pgstrata.report.figures.dots import Across, DotPanel, Dots, draw_dots
from pgstrata.report.figures.scales import Tick, even_ticks, log_ticks, signed_number
from pgstrata.report.sentences.names import name_environment

_FEWEST: Final = 3
_GAP: Final = 0.6
_ROOM: Final = 0.06
"""Room above and below what is drawn, as a share of it."""
_HEIGHT: Final = 150.0
_BEYOND: Final = 1.08
_LEAST: Final = 1e-9
"""Seconds that have a place on a logarithmic axis."""


def shifts_of(answer: Answer, cell: str) -> tuple[QuantileShift, ...]:
    """All percentiles of a cell that were compared: by environment, then from the lowest to the highest."""
    return tuple(item for item in answer.shifts if item.cell == cell)


def name_percentile(shift: QuantileShift) -> str:
    """p50, p99."""
    return f"p{shift.quantile * 100:.0f}"


def draw_quantiles(answer: Answer, cell: str, title: str) -> Figure | None:
    """Each percentile, and the shift function with its band below; None with fewer than three percentiles."""
    known = ((item, item.effect) for item in shifts_of(answer, cell))
    shown = [(item, effect) for item, effect in known if effect is not None and math.isfinite(effect)]
    steps = tuple(name for _, name in sorted({(item.quantile, name_percentile(item)) for item, _ in shown}))
    if len(steps) < _FEWEST:
        return None
    experiment = answer.study.plan.experiment
    panels = [*_values(experiment, [item for item, _ in shown], steps), _changes(experiment, shown, steps)]
    across = Across(title="percentile of latency", low=-0.5, high=len(steps) - 0.5, names=steps)
    label = (
        "Each percentile of latency, and its difference from the baseline, with a band that holds for all of them; "
        "below zero is faster"
    )
    return Figure(title=title, label=label, draw=partial(draw_dots, panels, across, height=_HEIGHT))


def _values(experiment: Experiment, items: Sequence[QuantileShift], steps: Sequence[str]) -> Iterator[DotPanel]:
    """The distributions themselves: latency at each percentile, in ms, that of the baseline too."""
    found: dict[str, dict[int, float]] = {}
    for item in items:
        at = steps.index(name_percentile(item))
        for name, value in ((experiment.baseline, item.baseline_value), (item.environment, item.value)):
            if value is not None and _LEAST < value < math.inf:
                found.setdefault(name, {}).setdefault(at, value * 1e3)
    values = [value for each in found.values() for value in each.values()]
    if not values:
        return
    low, high = min(values) / _BEYOND, max(values) * _BEYOND
    yield DotPanel(
        title="latency, ms, log",
        low=low,
        high=high,
        log=True,
        ticks=log_ticks(low, high),
        dots=tuple(
            Dots(
                name=name_environment(each, experiment),
                place=place,
                points=tuple((float(at), value) for at, value in sorted(found[each.name].items())),
                joined=True,
            )
            for place, each in enumerate(experiment.environments)
            if each.name in found
        ),
    )


def _changes(experiment: Experiment, shown: Sequence[tuple[QuantileShift, float]], steps: Sequence[str]) -> DotPanel:
    """Environments side by side at each percentile, in percent."""
    names = list(dict.fromkeys(item.environment for item, _ in shown))
    places = {each.name: place for place, each in enumerate(experiment.environments)}
    dots = []
    for rank, name in enumerate(names):
        aside = (rank + 1) / (len(names) + 1) * _GAP - _GAP / 2
        own = [
            (steps.index(name_percentile(item)) + aside, item, effect)
            for item, effect in shown
            if item.environment == name
        ]
        dots.append(
            Dots(
                name=name_environment(experiment.environment(name), experiment),
                place=places[name],
                points=tuple((x, vega.percent(effect)) for x, _, effect in own),
                spans=tuple(
                    (x, vega.percent(item.interval.low), vega.percent(item.interval.high))
                    for x, item, _ in own
                    if item.interval is not None and math.isfinite(item.interval.high)
                ),
            )
        )
    values = [value for each in dots for _, value in each.points]
    ends = [*values, *(end for each in dots for _, *both in each.spans for end in both)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    room = _ROOM * (high - low) or 1.0
    low, high = low - room, high + room
    ticks = tuple(Tick(value=each.value, text=signed_number(each.value)) for each in even_ticks(low, high, 6))
    return DotPanel(title="difference, %", low=low, high=high, ticks=ticks, dots=tuple(dots), zero=0.0)
