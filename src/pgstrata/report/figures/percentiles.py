"""Latency as a distribution: by how much each percentile moved, with the figures of its own comparison."""

from __future__ import annotations

from functools import partial

from pgstrata.model.answer import Answer, QuantileShift
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.drawing import (
    INK,
    MINUS,
    WIDTH,
    colour_scale,
    load_altair,
    own_rows,
    render_figure,
    shape_scale,
    single_row,
)
from pgstrata.report.figures.run_points import label_environments

_FEWEST = 3
_GAP = 0.6


def shifts_of(answer: Answer, cell: str) -> tuple[QuantileShift, ...]:
    """All percentiles of a cell that were compared: by environment, then from the lowest to the highest."""
    return tuple(item for item in answer.shifts if item.cell == cell)


def name_percentile(shift: QuantileShift) -> str:
    """p50, p99."""
    return f"p{shift.quantile * 100:.0f}"


def draw_quantiles(answer: Answer, cell: str, title: str) -> Figure | None:
    """The shift function: difference of each percentile, with its pointwise interval; None with fewer than three."""
    alt = load_altair()
    experiment = answer.study.plan.experiment
    labels = label_environments(experiment)
    shown = [item for item in shifts_of(answer, cell) if item.effect is not None]
    steps = [name for _, name in sorted({(item.quantile, name_percentile(item)) for item in shown})]
    if len(steps) < _FEWEST:
        return None
    names = list(dict.fromkeys(item.environment for item in shown))
    rows = [
        {
            "name": labels[item.environment],
            "x": steps.index(name_percentile(item)) + (names.index(item.environment) + 1) / (len(names) + 1) * _GAP
            - _GAP / 2,
            "y": _percent(item.effect),
            "low": _percent(item.interval.low) if item.interval else None,
            "high": _percent(item.interval.high) if item.interval else None,
        }
        for item in shown
    ]  # fmt: skip
    ticks = "[" + ", ".join(f"'{step}'" for step in steps) + "]"
    x = alt.X("x:Q", title="percentile of latency").scale(domain=[-0.5, len(steps) - 0.5], nice=False)
    x = x.axis(values=list(range(len(steps))), labelExpr=f"{ticks}[datum.value]", grid=False)
    axis = alt.Axis(format="+.3~g", labelExpr=MINUS, tickCount=6)
    y, low = (alt.Y(f"{name}:Q", title="latency, difference, %", axis=axis) for name in ("y", "low"))
    base = alt.Chart(own_rows(), width=WIDTH - 90, height=190).encode(x=x, color=colour_scale(experiment, labels))
    zero = alt.Chart(single_row({"at": 0})).mark_rule(color=INK).encode(y="at:Q")
    whiskers = base.transform_filter("datum.low !== null").mark_rule(strokeWidth=1.6).encode(y=low, y2="high:Q")
    points = base.mark_point(filled=True, size=50, opacity=1).encode(y=y, shape=shape_scale(experiment, labels))
    label = "Difference of each percentile of latency with its pointwise interval; below zero is faster"
    return Figure(title=title, label=label, draw=partial(render_figure, alt.layer(zero, whiskers, points), rows))


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else float(f"{(ratio - 1) * 100:.4g}")
