"""Charts of the runs themselves: over their seconds, block by block, along clients or scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import Any

from pgstrata.model.anomaly import AnomalyKind
from pgstrata.model.answer import Answer
from pgstrata.model.metrics import METRICS
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.drawing import (
    INK,
    LINES,
    WIDTH,
    axis_of_steps,
    colour_scale,
    load_altair,
    own_rows,
    render_figure,
    shape_scale,
    single_row,
)
from pgstrata.report.figures.panels import Panel, arrange_panels, choose_ticks
from pgstrata.report.figures.run_points import Axis, Dot, Step, choose_lines, label_environments, place_dots, take_steps
from pgstrata.report.sentences.names import count

_MOST_TICKS = 6
_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)
# Where panels on one scale would flatten some of them, each has a scale of its own.
_MOST_APART = 4.0


def draw_over_time(answer: Answer, cell: str, title: str) -> Figure | None:
    """Some runs of each environment over their seconds, one panel per environment.

    All panels have one scale, unless that would flatten some of them.
    """
    alt = load_altair()
    experiment = answer.study.plan.experiment
    labels = label_environments(experiment)
    lines = choose_lines(answer, cell)
    if not lines:
        return None
    rows = [
        {"name": labels[line.environment], "run": line.run, "time": round(time, 2), "value": float(f"{value:.4g}")}
        for line in lines
        for time, value in zip(line.times, line.values, strict=True)
    ]
    last = max(time for line in lines for time in line.times)
    chart = (
        alt.Chart(own_rows(), width=(WIDTH - 90) / 2, height=110)
        .mark_line(strokeWidth=0.9, opacity=0.75)
        .encode(
            x=alt.X("time:Q").title("seconds").scale(nice=False).axis(values=choose_seconds(last), format="d"),
            y=alt.Y("value:Q").title(experiment.metric).scale(zero=True).axis(tickCount=4, format="~s"),
            detail="run:N",
            color=colour_scale(experiment, labels).legend(None),
            facet=alt.Facet("name:N", columns=2, sort=[labels[item.name] for item in experiment.environments])
            .title(None)
            .header(labelExpr=LINES, labelLimit=0, labelAnchor="start", labelFontWeight="bold"),
        )
    )
    label = f"{METRICS[experiment.metric].title} over the seconds of {count(len(lines), 'run')}, "
    label += "one panel per environment"
    if are_far_apart([max(line.values) for line in lines]):
        chart = chart.resolve_scale(y="independent")
        title, label = (f"{text}; each panel has a scale of its own" for text in (title, label))
    return Figure(title=title, label=label, draw=partial(render_figure, chart, rows))


def choose_seconds(last: float) -> list[int]:
    """Whole seconds for the ticks of an axis, few enough that their labels stand apart."""
    step = next((step for step in _SECONDS if last / step <= _MOST_TICKS), math.ceil(last / _MOST_TICKS))
    return list(range(0, math.floor(last) + 1, step))


def are_far_apart(tops: Sequence[float]) -> bool:
    """Whether the lowest of these would be flat on a scale that reaches to the highest."""
    return max(tops) > _MOST_APART * min(tops)


def draw_by_block(answer: Answer, cell: str, title: str) -> Figure | None:
    """Every run of a cell, block by block; those of a block are joined, so that drift shows as blocks that wander.

    The axis is logarithmic: the same height is the same ratio, in every panel. What lies far from the rest has a panel
    of its own, so that differences within a block can be seen on either side.
    """
    alt = load_altair()
    dots = place_dots(answer, cell)
    panels = arrange_panels(dots)
    if not panels:
        return None
    rows = [_dot_row(answer, dot, panels) for dot in dots]
    charts = [_block_panel(answer, cell, panels, place, max(dot.block for dot in dots)) for place in range(len(panels))]
    chart = charts[0] if len(charts) == 1 else alt.vconcat(*charts, spacing=8)
    if len(charts) > 1:
        chart = chart.resolve_scale(color="independent", shape="independent")
    title_of = METRICS[answer.study.plan.experiment.metric].title
    label = f"{title_of} of {count(len(rows), 'run')} by block, on a logarithmic scale; invalid runs are crosses"
    return Figure(title=title, label=label, draw=partial(render_figure, chart, rows))


def _dot_row(answer: Answer, dot: Dot, panels: Sequence[Panel]) -> dict[str, Any]:
    """Usable runs are always within their panel; a cross that is not stands at its edge with an arrow."""
    place = next((place for place, panel in enumerate(panels) if dot.environment in panel.environments), 0)
    panel = panels[place]
    sign = "✕↓" if dot.value < panel.low else "✕↑" if dot.value > panel.high else "✕"
    return {
        "name": label_environments(answer.study.plan.experiment)[dot.environment],
        "block": dot.block,
        "place": round(dot.place, 4),
        "value": float(f"{min(max(dot.value, panel.low), panel.high):.5g}"),
        "valid": dot.valid,
        "panel": place,
        "sign": sign,
    }


def _block_panel(answer: Answer, cell: str, panels: Sequence[Panel], place: int, blocks: int) -> Any:
    alt = load_altair()
    experiment = answer.study.plan.experiment
    labels = label_environments(experiment)
    panel, last = panels[place], place == len(panels) - 1
    x = alt.X("place:Q").title("block" if last else None).scale(domain=[0.4, blocks + 0.6], nice=False)
    x = x.axis(values=list(range(1, blocks + 1)), format="d", grid=False, labels=last, ticks=last)
    scale = alt.Scale(type="log", domain=[panel.low, panel.high], nice=False)
    y = alt.Y("value:Q").title(f"{experiment.metric}, log").scale(scale).axis(format="~s", values=list(panel.ticks))
    height = 190 if len(panels) == 1 else 150
    base = alt.Chart(own_rows(), width=WIDTH - 90, height=height).encode(x=x, y=y)
    base = base.transform_filter(f"datum.panel === {place}")
    good = base.transform_filter("datum.valid")
    joined = good.mark_line(color=INK, strokeWidth=0.8, opacity=0.45).encode(detail="block:N", order="place:Q")
    colour, shape = colour_scale(experiment, labels), shape_scale(experiment, labels)
    points = good.mark_point(filled=True, size=58, opacity=1)
    points = points.encode(color=colour if last else colour.legend(None), shape=shape if last else shape.legend(None))
    bad = base.transform_filter("!datum.valid").mark_text(fontSize=12, color=INK).encode(text="sign:N")
    return alt.layer(*_baseline_layers(answer, cell, panel, scale), joined, points, bad)


def _baseline_layers(answer: Answer, cell: str, panel: Panel, scale: Any) -> list[Any]:
    """The baseline's median as a line, in the panel that has it."""
    experiment = answer.study.plan.experiment
    runs = [dot.value for dot in place_dots(answer, cell) if dot.valid and dot.environment == experiment.baseline]
    if not runs or experiment.baseline not in panel.environments:
        return []
    line = load_altair().Chart(single_row({"at": median(runs)})).mark_rule(color=INK, strokeDash=[3, 3], opacity=0.6)
    return [line.encode(y=load_altair().Y("at:Q", scale=scale))]


def draw_along(answer: Answer, axis: Axis) -> Figure | None:
    """The primary metric along clients or scale: medians of the runs, whiskers from the smallest to the largest."""
    alt = load_altair()
    experiment = answer.study.plan.experiment
    labels = label_environments(experiment)
    steps = take_steps(answer, axis)
    if not steps:
        return None
    kinks = _places_of_kinks(answer, axis)
    rows = [
        {"name": labels[step.environment], "at": step.at, "value": step.value, "low": step.low, "high": step.high,
         "kink": (step.environment, step.at) in kinks}
        for step in steps
    ]  # fmt: skip
    axis_y, scale, title_y = alt.Axis(format="~s", tickCount=5), alt.Scale(zero=True), experiment.metric
    if _is_flattened(steps):
        ticks = choose_ticks(min(step.low for step in steps), max(step.high for step in steps))
        axis_y, title_y = alt.Axis(format="~s", values=list(ticks)), f"{experiment.metric}, log"
        scale = alt.Scale(type="log", nice=False, padding=8)
    y, low = (alt.Y(f"{name}:Q", title=title_y, axis=axis_y, scale=scale) for name in ("value", "low"))
    base = alt.Chart(own_rows(), width=WIDTH - 90, height=230).encode(
        x=axis_of_steps(axis), color=colour_scale(experiment, labels)
    )
    lines = base.mark_line(strokeWidth=1.6).encode(y=y)
    points = base.mark_point(filled=True, size=58, opacity=1).encode(y=y, shape=shape_scale(experiment, labels))
    whiskers = base.mark_rule(strokeWidth=1.2).encode(y=low, y2="high:Q")
    rings = base.transform_filter("datum.kink").mark_point(size=260, strokeWidth=1.4, opacity=1)
    layers = [whiskers, lines, points, *([rings.encode(y=y, color=alt.value(INK))] if kinks else [])]
    what = METRICS[experiment.metric].title
    title = f"{what[:1].upper()}{what[1:]} against {axis.name}: {axis.title}"
    label = f"{title}: median of the runs, whiskers from the smallest to the largest"
    title, label = (f"{text}; rings mark kinks" for text in (title, label)) if kinks else (title, label)
    return Figure(title=title, label=label, draw=partial(render_figure, alt.layer(*layers), rows))


def _places_of_kinks(answer: Answer, axis: Axis) -> set[tuple[str, float]]:
    """By environment and number of clients; what new blocks called a transient is none."""
    cells = {cell.identity: float(cell.clients) for cell in axis.cells} if axis.name == "clients" else {}
    return {
        (one.environment, cells[one.cell])
        for one in answer.anomalies
        if one.kind is AnomalyKind.KINK and one.cell in cells
    }


def _is_flattened(steps: Sequence[Step]) -> bool:
    """Whether environments lie so far apart somewhere that a scale from zero would flatten one of them."""
    places: dict[float, list[float]] = {}
    for step in steps:
        places.setdefault(step.at, []).append(step.value)
    return min(step.low for step in steps) > 0 and any(map(are_far_apart, places.values()))
