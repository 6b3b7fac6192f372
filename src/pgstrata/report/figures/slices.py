"""Charts of visits in slices: what every environment did in each of its turns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pgstrata.model.answer import Answer
from pgstrata.model.metrics import ROUND_TPS
from pgstrata.model.runs import RunRecord
from pgstrata.report.answer.slice_scatter import visits_in_slices
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures import vega
from pgstrata.report.figures.panels import choose_ticks
from pgstrata.report.figures.run_points import label_environments, spread
from pgstrata.report.sentences.names import count

MOST_VISITS = 4
_PADDING = 1.03


def draw_rounds(answer: Answer, cell: str, title: str) -> Figure | None:
    """Some visits of a cell, one panel each: throughput of every slice, on one logarithmic scale."""
    experiment = answer.study.plan.experiment
    visits = spread(visits_in_slices(answer.study, cell), MOST_VISITS)
    labels = label_environments(experiment)
    rows: list[dict[str, Any]] = [
        {"name": labels[name], "visit": f"block {visit.block}", "time": round(time, 2), "value": vega.rounded(value)}
        for visit in visits
        for name, run in visit.runs.items()
        for time, value in _slices(run)
    ]
    if not rows:
        return None
    values = [row["value"] for row in rows]
    low, high = min(values) / _PADDING, max(values) * _PADDING
    scale = {"type": "log", "domain": [low, high], "nice": False}
    ticks = {"format": "~s", "values": list(choose_ticks(low, high))}
    y = vega.number("value", title="tps of a slice, log", axis=ticks, scale=scale)
    x = vega.number(
        "time", title="seconds since the first slice", scale={"nice": False}, axis={"format": "~g", "grid": False}
    )
    layers = [
        vega.mark("line", {"strokeWidth": 1, "opacity": 0.5}),
        vega.mark("point", {"filled": True, "size": 30, "opacity": 1}, **vega.by_environment(experiment, "shape")),
    ]
    shared = {"x": x, "y": y, **vega.by_environment(experiment, "color")}
    order = [f"block {visit.block}" for visit in visits]
    chart = vega.in_panels({"layer": layers, "height": 130, "encoding": shared}, "visit", order)
    label = f"Throughput of every slice in {count(len(visits), 'visit')}, a colour for each environment"
    return vega.figure(title, label, chart, rows)


def _slices(run: RunRecord) -> Iterator[tuple[float, float]]:
    """Start in seconds and throughput of each round that has both."""
    for series in run.series:
        if series.metric == ROUND_TPS:
            for time, value in zip(series.times, series.values, strict=True):
                if math.isfinite(time) and 0 < value < math.inf:
                    yield time, value
