"""Charts of other tools' results: differences, every value, and levels of an ordered axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import Final

from pgstrata.compare.one_look import ImportAnswer
from pgstrata.compare.pairing.arms import sort_observations
from pgstrata.compare.pairing.levels import read_levels
from pgstrata.compare.pairing.pairs import to_ratio
from pgstrata.model.answer import ALL_CELLS, Comparison, OrderedAxis
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.dots import Across, DotPanel, Dots, draw_dots
from pgstrata.report.figures.effects import NamedDifference, choose_domain, draw_differences, draw_levels
from pgstrata.report.figures.round_rows import Point
from pgstrata.report.figures.run_lines import break_label, spread
from pgstrata.report.figures.runs import choose_ticks
from pgstrata.report.figures.scales import Tick, even_ticks, exact_number
from pgstrata.report.sentences.factors import LevelPoint

_MOST_DOTS: Final = 3000
_HEIGHT: Final = 240.0
_MARGIN: Final = 0.6
"""Room left and right of the first and the last value, in blocks."""
_ROOM: Final = 1.03
"""The ends of the axis, as a multiple of the smallest and the largest value."""
_LEAST, _MOST = 1e-100, 1e100
"""Values outside of these are not drawn: an axis could not show them."""


def draw_comparisons(answer: ImportAnswer, shown: Sequence[tuple[str, Comparison, str]]) -> Figure:
    """A chart of differences from the baseline; `shown` has name, comparison and verdict in words for each row."""
    question = answer.question
    rows = [NamedDifference(name=break_label(name), comparison=item, label=label) for name, item, label in shown]
    domain = choose_domain(answer.comparisons, question.threshold)
    return draw_differences(rows, baseline=question.baseline, threshold=question.threshold, domain=domain)


def draw_values(answer: ImportAnswer, cell: str) -> Figure | None:
    """A chart of every value of a cell, by block or else in the order of the file; the scale is logarithmic."""
    metric = answer.question.metric
    found = [each for each in answer.observations if each.cell == cell]
    if not found:
        return None
    counted: dict[str, int] = {}
    points: list[tuple[str, Point]] = []
    for each in found:
        counted[each.target] = counted.get(each.target, 0) + 1
        at = each.key.number if each.key is not None else counted[each.target]
        points.append((each.target, (float(at), each.measurements[metric])))
    shown = [each for each in spread(points, _MOST_DOTS) if each[1][1] == 0 or _LEAST < abs(each[1][1]) < _MOST]
    if not shown:
        return None
    title = "block, in the order of the file" if answer.paired else "value, in the order of the file"
    places = [x for _, (x, _) in shown]
    across = Across(title=title, low=min(places) - _MARGIN, high=max(places) + _MARGIN)
    label = f"{len(shown)} values of {metric} by {'block' if answer.paired else 'place in the file'}"
    panel = _value_panel(answer, shown)
    return Figure(title="", label=label, draw=partial(draw_dots, [panel], across, height=_HEIGHT))


def _value_panel(answer: ImportAnswer, shown: Sequence[tuple[str, Point]]) -> DotPanel:
    """On a logarithmic scale, unless some values have no logarithm."""
    values = [value for _, (_, value) in shown]
    log = min(values) > 0
    if log:
        low, high = min(values) / _ROOM, max(values) * _ROOM
    else:
        room = (_ROOM - 1) * (max(values) - min(values)) or 1.0
        low, high = min(values) - room, max(values) + room
    ticks = choose_ticks(low, high) if log else tuple(each.value for each in even_ticks(low, high, 5))
    names = (answer.question.baseline, *answer.question.environments)
    return DotPanel(
        title=f"{answer.question.metric}, log" if log else answer.question.metric,
        low=low,
        high=high,
        log=log,
        ticks=tuple(Tick(value=value, text=exact_number(value)) for value in ticks),
        dots=tuple(
            Dots(
                name=name,
                place=place,
                points=tuple(point for target, point in shown if target == name),
                joined=answer.paired,
            )
            for place, name in enumerate(names)
            if any(target == name for target, _ in shown)
        ),
    )


def draw_steps(answer: ImportAnswer, axis: OrderedAxis, *, title: str, label: str) -> Figure | None:
    """A chart of levels in the order of the file, each relative to the mean of its block; None without blocks."""
    question = answer.question
    if not answer.paired:
        return None
    cells = question.cells if axis.cell == ALL_CELLS else (axis.cell,)
    logs = read_levels(sort_observations(answer.observations), question.metric, axis.levels, cells)
    points = []
    for block in sorted({block for found in logs.values() for block in found}):
        if all(block in logs[name] for name in axis.levels):
            means = [logs[name][block] for name in axis.levels]
            centre = fmean(means)
            points += [
                LevelPoint(place=place, block=block, ratio=to_ratio(mean - centre)) for place, mean in enumerate(means)
            ]
    return draw_levels(axis, points, factor="environment", title=title, label=label) if points else None
