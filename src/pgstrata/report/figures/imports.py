"""Charts of other tools' results: differences, every value, and levels of an ordered axis."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from pgstrata.compare.one_look import ImportAnswer
from pgstrata.compare.pairing.arms import sort_observations
from pgstrata.compare.pairing.levels import read_levels
from pgstrata.compare.pairing.pairs import to_ratio
from pgstrata.model.answer import ALL_CELLS, Comparison, OrderedAxis
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures import vega
from pgstrata.report.figures.effects import NamedDifference, choose_domain, draw_differences, draw_levels
from pgstrata.report.figures.run_lines import break_label, spread
from pgstrata.report.sentences.factors import LevelPoint

_MOST_DOTS: Final = 3000
_HEIGHT: Final = 240


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
    places: dict[str, int] = {}
    rows = []
    for each in found:
        places[each.target] = places.get(each.target, 0) + 1
        at = each.key.number if each.key is not None else places[each.target]
        rows.append({"name": break_label(each.target), "x": at, "y": vega.rounded(each.measurements[metric])})
    rows = list(spread(rows, _MOST_DOTS))
    names = [break_label(name) for name in (answer.question.baseline, *answer.question.environments)]
    title = "block, in the order of the file" if answer.paired else "value, in the order of the file"
    scale = {"type": "log", "nice": False, "padding": 8}
    shared = {
        "x": vega.number("x", title=title, axis={"tickMinStep": 1, "format": "d", "grid": False}),
        "y": vega.number("y", title=metric, scale=scale, axis={"tickCount": 5, "format": "~s"}),
        **vega.by_name(names, "color"),
    }
    look = {"filled": True, "size": 46, "opacity": 0.8}
    layers = [vega.mark("point", look, **vega.by_name(names, "shape"))]
    if answer.paired:
        layers.insert(0, vega.mark("line", {"strokeWidth": 1, "opacity": 0.4}))
    label = f"{len(rows)} values of {metric} by {'block' if answer.paired else 'place in the file'}"
    return vega.figure("", label, vega.layered(layers, width=vega.WHOLE, height=_HEIGHT, encoding=shared), rows)


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
