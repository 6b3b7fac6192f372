"""Charts of visits in slices: what every environment did in each of its turns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from pgstrata.model.answer import Answer
from pgstrata.model.metrics import ROUND_TPS
from pgstrata.model.runs import RunRecord
from pgstrata.report.answer.slice_scatter import visits_in_slices
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.drawing import (
    WIDTH,
    colour_scale,
    load_altair,
    own_rows,
    render_figure,
    shape_scale,
)
from pgstrata.report.figures.panels import choose_ticks
from pgstrata.report.figures.run_points import label_environments, spread
from pgstrata.report.sentences.names import count

MOST_VISITS = 4
_PADDING = 1.03


def draw_rounds(answer: Answer, cell: str, title: str) -> Figure | None:
    """Some visits of a cell, one panel each: throughput of every slice, on one logarithmic scale."""
    alt = load_altair()
    experiment = answer.study.plan.experiment
    visits = spread(visits_in_slices(answer.study, cell), MOST_VISITS)
    labels = label_environments(experiment)
    rows: list[dict[str, Any]] = [
        {"name": labels[name], "visit": f"block {visit.block}", "time": round(time, 2), "value": float(f"{value:.4g}")}
        for visit in visits
        for name, run in visit.runs.items()
        for time, value in _slices(run)
    ]
    if not rows:
        return None
    values = [row["value"] for row in rows]
    low, high = min(values) / _PADDING, max(values) * _PADDING
    axis = alt.Axis(format="~s", values=list(choose_ticks(low, high)))
    y = alt.Y("value:Q", title="tps of a slice, log", axis=axis)
    y = y.scale(type="log", domain=[low, high], nice=False)
    x = alt.X("time:Q").title("seconds since the first slice").scale(nice=False).axis(format="~g", grid=False)
    base = alt.Chart().encode(x=x, y=y, color=colour_scale(experiment, labels))
    lines = base.mark_line(strokeWidth=1, opacity=0.5)
    points = base.mark_point(filled=True, size=30, opacity=1).encode(shape=shape_scale(experiment, labels))
    order = [f"block {visit.block}" for visit in visits]
    chart = alt.layer(lines, points, data=own_rows()).properties(width=(WIDTH - 90) / 2, height=130)
    header = alt.Header(labelAnchor="start", labelFontWeight="bold")
    chart = chart.facet(facet=alt.Facet("visit:N", sort=order, title=None, header=header), columns=2)
    label = f"Throughput of every slice in {count(len(visits), 'visit')}, a colour for each environment"
    return Figure(title=title, label=label, draw=partial(render_figure, chart, rows))


def _slices(run: RunRecord) -> Iterator[tuple[float, float]]:
    """Start in seconds and throughput of each round that has both."""
    for series in run.series:
        if series.metric == ROUND_TPS:
            for time, value in zip(series.times, series.values, strict=True):
                if math.isfinite(time) and 0 < value < math.inf:
                    yield time, value
