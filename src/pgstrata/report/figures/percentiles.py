"""Latency as a distribution: by how much each percentile moved, with the figures of its own comparison."""

from __future__ import annotations

from pgstrata.model.answer import Answer, QuantileShift
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures import vega
from pgstrata.report.figures.run_points import label_environments
from pgstrata.report.figures.vega import INK

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
    experiment = answer.study.plan.experiment
    labels = label_environments(experiment)
    shown = [(item, item.effect) for item in shifts_of(answer, cell) if item.effect is not None]
    steps = [name for _, name in sorted({(item.quantile, name_percentile(item)) for item, _ in shown})]
    if len(steps) < _FEWEST:
        return None
    names = list(dict.fromkeys(item.environment for item, _ in shown))
    rows = [
        {
            "name": labels[item.environment],
            "x": steps.index(name_percentile(item))
            + (names.index(item.environment) + 1) / (len(names) + 1) * _GAP
            - _GAP / 2,
            "y": vega.percent(effect),
            "low": vega.percent(item.interval.low) if item.interval else None,
            "high": vega.percent(item.interval.high) if item.interval else None,
        }
        for item, effect in shown
    ]
    described = {"title": "latency, difference, %", "axis": vega.percent_axis(tickCount=6)}
    y, low = (vega.number(field, **described) for field in ("y", "low"))
    layers = [
        vega.mark("rule", {"color": INK}, row={"at": 0}, x=None, color=None, y=vega.number("at")),
        vega.mark("rule", {"strokeWidth": 1.6}, where="datum.low !== null", y=low, y2={"field": "high"}),
        vega.mark("point", {"filled": True, "size": 50, "opacity": 1}, y=y, **vega.by_environment(experiment, "shape")),
    ]
    shared = {"x": vega.named_places("percentile of latency", steps, 0.5), **vega.by_environment(experiment, "color")}
    chart = vega.layered(layers, width=vega.WHOLE, height=190, encoding=shared)
    label = "Difference of each percentile of latency with its pointwise interval; below zero is faster"
    return vega.figure(title, label, chart, rows)
