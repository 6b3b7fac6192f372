"""Charts of ordered axes: every level with its blocks, and the steps that stand out."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from pgstrata.model.answer import Answer, OrderedAxis
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures import vega
from pgstrata.report.figures.vega import INK, Spec
from pgstrata.report.sentences.names import name_factor, name_place
from pgstrata.report.sentences.ordered import LevelPoint, level_points, say_axis, say_step

_SPREAD = 0.4
_BLOCKS, _MEDIANS = "datum.kind === 'block'", "datum.kind === 'median'"


def draw_axis(answer: Answer, axis: OrderedAxis) -> Figure | None:
    """Levels in their order: a dot for each block, a bar at the median, a line where a step stands out."""
    experiment = answer.study.plan.experiment
    points = level_points(answer, axis)
    if not points:
        return None
    rows = _rows(points, len(axis.levels))
    factor = name_factor(axis.factor)
    y = vega.number("y", title="difference from the block's mean, %", axis=vega.percent_axis(tickCount=6))
    stair = {"strokeWidth": 1.2, "color": INK, "opacity": 0.5}
    bar = {"strokeWidth": 4, "color": INK, "strokeCap": "round"}
    ends: Spec = {"x": vega.number("left"), "x2": {"field": "right"}}
    layers = [
        vega.mark("point", {"filled": True, "size": 34, "opacity": 0.55, "color": vega.OPEN}, where=_BLOCKS, y=y),
        vega.mark("line", stair, where=_MEDIANS, y=y),
        vega.mark("rule", bar, where=_MEDIANS, y=y, **ends),
        *_steps(axis, max(row["y"] for row in rows)),
    ]
    shared = {"x": vega.named_places(factor, axis.levels, 0.6, labelFontSize=13)}
    chart = vega.layered(layers, width=vega.WHOLE, height=230, encoding=shared)
    title = f"Along {factor}: {name_place(axis.cell, experiment)}"
    return vega.figure(title, say_axis(axis, experiment), chart, rows)


def _rows(points: Sequence[LevelPoint], levels: int) -> list[dict[str, Any]]:
    """Blocks side by side within their level, then the medians."""
    blocks = sorted({point.block for point in points})
    offset = {block: (place - (len(blocks) - 1) / 2) * _SPREAD / len(blocks) for place, block in enumerate(blocks)}
    rows = [
        {"kind": "block", "x": round(point.place + offset[point.block], 4), "y": vega.percent(point.ratio)}
        for point in points
    ]
    for place in range(levels):
        middle = median(point.ratio for point in points if point.place == place)
        ends = {"left": place - _SPREAD / 1.5, "right": place + _SPREAD / 1.5}
        rows.append({"kind": "median", "x": place, "y": vega.percent(middle), **ends})
    return rows


def _steps(axis: OrderedAxis, top: float) -> list[Spec]:
    """A line between the levels of each step, with its size above."""
    rule = {"color": vega.BETTER, "strokeDash": [4, 3], "strokeWidth": 1.6}
    text = {"dx": 5, "dy": -4, "align": "left", "baseline": "bottom", "fontSize": 12, "color": INK}
    layers = []
    for step in axis.steps:
        at = axis.levels.index(step.after) - 0.5
        row = {"x": at, "y": top, "text": [f"{step.after}:", say_step(step)]}
        layers += [
            vega.mark("rule", rule, row=row, x=vega.number("x")),
            vega.mark("text", text, row=row, x=vega.number("x"), y=vega.number("y"), text={"field": "text"}),
        ]
    return layers
