"""Latency as a distribution: by how much each percentile moved, with the figures of its own comparison."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pgstrata.compare.judging import threshold_of
from pgstrata.model.answer import Answer, Comparison
from pgstrata.report.drawing import (
    INK,
    MINUS,
    WIDTH,
    Figure,
    colour_scale,
    load_altair,
    own_rows,
    render_figure,
    shape_scale,
    single_row,
)
from pgstrata.report.names import name_environment
from pgstrata.report.points import label_environments
from pgstrata.report.verdicts import render_threshold

_QUANTILE = re.compile(r"latency_p(?P<percent>\d+)$")
_FEWEST = 3
_GAP = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileRow:
    """One percentile of one environment against the baseline."""

    name: str
    percentile: int
    threshold: str
    comparison: Comparison


def quantile_rows(answer: Answer, cell: str) -> tuple[QuantileRow, ...]:
    """All percentiles of a cell that were compared: by environment, then from the lowest to the highest."""
    experiment = answer.study.plan.experiment
    rows = [
        QuantileRow(
            name=name_environment(experiment.environment(item.environment), experiment),
            percentile=int(found["percent"]),
            threshold=render_threshold(threshold_of(experiment, item.metric)),
            comparison=item,
        )
        for item in answer.comparisons
        for found in (_QUANTILE.match(item.metric),)
        if found is not None and item.cell == cell and item.reference in {"", experiment.baseline}
    ]
    names = list(dict.fromkeys(row.name for row in rows))
    return tuple(sorted(rows, key=lambda row: (names.index(row.name), row.percentile)))


def draw_quantiles(answer: Answer, cell: str, title: str) -> Figure | None:
    """The shift function: difference of each percentile, with its interval; None with fewer than three percentiles."""
    alt = load_altair()
    experiment = answer.study.plan.experiment
    labels = label_environments(experiment)
    shown = [row for row in quantile_rows(answer, cell) if row.comparison.effect is not None]
    steps = sorted({row.percentile for row in shown})
    if len(steps) < _FEWEST:
        return None
    names = list(dict.fromkeys(row.comparison.environment for row in shown))
    rows = [
        {
            "name": labels[row.comparison.environment],
            "x": steps.index(row.percentile) + (names.index(row.comparison.environment) + 1) / (len(names) + 1) * _GAP
            - _GAP / 2,
            "y": _percent(row.comparison.effect),
            "low": _percent(row.comparison.interval.low) if row.comparison.interval else None,
            "high": _percent(row.comparison.interval.high) if row.comparison.interval else None,
        }
        for row in shown
    ]  # fmt: skip
    ticks = "[" + ", ".join(f"'p{step}'" for step in steps) + "]"
    x = alt.X("x:Q", title="percentile of latency").scale(domain=[-0.5, len(steps) - 0.5], nice=False)
    x = x.axis(values=list(range(len(steps))), labelExpr=f"{ticks}[datum.value]", grid=False)
    axis = alt.Axis(format="+.3~g", labelExpr=MINUS, tickCount=6)
    y, low = (alt.Y(f"{name}:Q", title="latency, difference, %", axis=axis) for name in ("y", "low"))
    base = alt.Chart(own_rows(), width=WIDTH - 90, height=190).encode(x=x, color=colour_scale(experiment, labels))
    zero = alt.Chart(single_row({"at": 0})).mark_rule(color=INK).encode(y="at:Q")
    whiskers = base.transform_filter("datum.low !== null").mark_rule(strokeWidth=1.6).encode(y=low, y2="high:Q")
    points = base.mark_point(filled=True, size=70, opacity=1).encode(y=y, shape=shape_scale(experiment, labels))
    label = "Difference of each percentile of latency with its interval; below zero is faster"
    return Figure(title=title, label=label, svg=render_figure(alt.layer(zero, whiskers, points), rows))


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else float(f"{(ratio - 1) * 100:.4g}")
