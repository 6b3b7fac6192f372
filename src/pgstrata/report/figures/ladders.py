"""Charts of ordered axes: every level with its blocks, and the steps that stand out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import Any

from pgstrata.model.answer import Answer, OrderedAxis
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.drawing import (
    BETTER,
    INK,
    MINUS,
    OPEN,
    WIDTH,
    load_altair,
    own_rows,
    render_figure,
    single_row,
)
from pgstrata.report.sentences.names import name_factor, name_place
from pgstrata.report.sentences.ordered import LevelPoint, level_points, say_axis, say_step

_SPREAD = 0.4


def draw_axis(answer: Answer, axis: OrderedAxis) -> Figure | None:
    """Levels in their order: a dot for each block, a bar at the median, a line where a step stands out."""
    alt = load_altair()
    experiment = answer.study.plan.experiment
    points = level_points(answer, axis)
    if not points:
        return None
    names = json.dumps(list(axis.levels))
    x = alt.X("x:Q", title=name_factor(axis.factor)).scale(domain=[-0.6, len(axis.levels) - 0.4], nice=False)
    x = x.axis(values=list(range(len(axis.levels))), labelExpr=f"{names}[datum.value]", grid=False, labelFontSize=13)
    y = alt.Y("y:Q", title="difference from the block's mean, %").scale(nice=True)
    y = y.axis(format="+.3~g", labelExpr=MINUS, tickCount=6)
    base = alt.Chart(own_rows()).encode(x=x)
    dots = base.transform_filter("datum.kind === 'block'").mark_point(filled=True, size=34, opacity=0.55, color=OPEN)
    bars = base.transform_filter("datum.kind === 'median'").mark_rule(strokeWidth=4, color=INK, strokeCap="round")
    stairs = base.transform_filter("datum.kind === 'median'").mark_line(strokeWidth=1.2, color=INK, opacity=0.5)
    rows = _rows(points, len(axis.levels))
    layers = [dots.encode(y=y), stairs.encode(y=y), bars.encode(x=alt.X("left:Q"), x2="right:Q", y=y)]
    layers += _steps(axis, max(row["y"] for row in rows))
    chart = alt.layer(*layers).properties(width=WIDTH - 90, height=230)
    title = f"Along {name_factor(axis.factor)}: {name_place(axis.cell, experiment)}"
    return Figure(title=title, label=say_axis(axis, experiment), draw=partial(render_figure, chart, rows))


def _rows(points: Sequence[LevelPoint], levels: int) -> list[dict[str, Any]]:
    """Blocks side by side within their level, then the medians."""
    blocks = sorted({point.block for point in points})
    offset = {block: (place - (len(blocks) - 1) / 2) * _SPREAD / len(blocks) for place, block in enumerate(blocks)}
    rows = [
        {"kind": "block", "x": round(point.place + offset[point.block], 4), "y": _percent(point.ratio)}
        for point in points
    ]
    for place in range(levels):
        middle = median(point.ratio for point in points if point.place == place)
        ends = {"left": place - _SPREAD / 1.5, "right": place + _SPREAD / 1.5}
        rows.append({"kind": "median", "x": place, "y": _percent(middle), **ends})
    return rows


def _percent(ratio: float) -> float:
    return float(f"{(ratio - 1) * 100:.4g}")


def _steps(axis: OrderedAxis, top: float) -> list[Any]:
    """A line between the levels of each step, with its size above."""
    alt = load_altair()
    layers = []
    for step in axis.steps:
        at = axis.levels.index(step.after) - 0.5
        row = single_row({"x": at, "y": top, "text": [f"{step.after}:", say_step(step)]})
        rule = alt.Chart(row).mark_rule(color=BETTER, strokeDash=[4, 3], strokeWidth=1.6)
        text = alt.Chart(row).mark_text(dx=5, dy=-4, align="left", baseline="bottom", fontSize=12, color=INK)
        layers += [rule.encode(x="x:Q"), text.encode(x="x:Q", y="y:Q", text="text:N")]
    return layers
