"""Charts of differences from the baseline, with their intervals.

An axis that reaches to one huge difference would squeeze all others to dots at its zero. So it covers what lies around
the threshold, where the doubt is, and whatever lies farther out is an arrow at its edge with its figures beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from pgstrata.compare.headlines import primary_comparisons
from pgstrata.model.answer import Answer, Comparison, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.drawing import (
    BETTER,
    INK,
    LINES,
    MINUS,
    OPEN,
    WIDTH,
    WORSE,
    axis_of_steps,
    colour_scale,
    load_altair,
    own_rows,
    render_figure,
    shape_scale,
    single_row,
)
from pgstrata.report.figures.run_points import Axis, break_label, label_environments
from pgstrata.report.sentences.names import name_environment
from pgstrata.report.sentences.verdicts import (
    name_baseline,
    render_interval,
    render_threshold,
    shown_interval,
    verdict_label,
)
from pgstrata.units import render_percent_change

_LONGEST_IN_TITLE = 48
# The axis reaches at least so many thresholds, and at most so many times as far as the lower half of the differences.
_LEAST_REACH = 12
_MOST_REACH = 4
_STEPS = (0, 10, 30, 100, 300, 1000, 3000, 10000)


def draw_effects(answer: Answer, cell: str, title: str) -> Figure | None:
    """Each environment's difference from the baseline in a cell, with interval; None where there is nothing to draw."""
    found = [item for item in primary_comparisons(answer) if item.cell == cell]
    if not found:
        return None
    experiment = answer.study.plan.experiment
    domain = choose_domain(primary_comparisons(answer), experiment.threshold)
    rows = [_effect_row(experiment, item, domain) for item in found]
    outside = any(row["arrow"] or row["low_end"] is not None or row["high_end"] is not None for row in rows)
    label = "; ".join(f"{row['name']}: {row['words']}".replace("\n", "") for row in rows)
    return Figure(
        title=title,
        label=f"Differences with intervals. {label}",
        draw=lambda: render_figure(_effects_chart(experiment, rows, domain, outside=outside), rows),
    )


def _effects_chart(
    experiment: Experiment, rows: Sequence[dict[str, Any]], domain: tuple[float, float], *, outside: bool
) -> Any:
    alt = load_altair()
    title = f"difference from {_shorten(name_baseline(experiment))}, %"
    title += "; arrows point to what lies outside" if outside else ""
    scale, axis = alt.Scale(domain=list(domain), nice=False), alt.Axis(format="+.3~g", tickCount=7, labelExpr=MINUS)
    y = (
        alt.Y("name:N")
        .title(None)
        .scale(domain=[row["name"] for row in rows])
        .axis(labelExpr=LINES, labelLimit=0, grid=False, labelPadding=8)
    )
    base = alt.Chart(own_rows()).encode(y=y, color=alt.Color("colour:N", scale=None))
    x = {name: alt.X(f"{name}:Q", title=title, scale=scale, axis=axis) for name in ("low", "at", "low_end", "high_end")}
    bars = base.mark_rule(strokeWidth=3, strokeCap="round").encode(x=x["low"], x2="high:Q")
    ends = [
        base.mark_point(filled=True, size=60, opacity=1, shape=shape).encode(x=x[name])
        for name, shape in (("low_end", "triangle-left"), ("high_end", "triangle-right"))
    ]
    dots = base.mark_point(filled=True, opacity=1).encode(
        x=x["at"], shape=alt.Shape("shape:N", scale=None), size=alt.Size("size:Q", scale=None)
    )
    words = base.mark_text(align="left", dx=12, fontSize=12).encode(
        text="words:N", x=alt.value(470), color=alt.value(INK)
    )
    lines = max(row["name"].count("\n") for row in rows) + 1
    layers = [*_threshold_layers(experiment, "x"), bars, *ends, dots, words]
    return alt.layer(*layers).properties(width=470, height=alt.Step(18 + 14 * lines))


def choose_domain(comparisons: Sequence[Comparison], threshold: float) -> tuple[float, float]:
    """Ends of the axis in percent, the same for all cells, so that they can be compared by eye.

    It covers all differences with their intervals, unless some lie so far out that the others could not be read.
    """
    spans = [span for item in comparisons for span in (_span(item),) if span]
    reaches = sorted(max(map(abs, span)) for span in spans)
    near = reaches[(len(reaches) - 1) // 2] if reaches else 0.0
    limit = max(_LEAST_REACH * threshold * 100, _MOST_REACH * near)
    ends = [1.08 * end for span in spans for end in span if abs(end) <= limit]
    band = 1.3 * threshold * 100
    return max(-100.0, min([-band, *ends])), max([band, *ends])


def _span(comparison: Comparison) -> tuple[float, ...]:
    """Effect and ends of the interval in percent; empty where there are none."""
    interval = shown_interval(comparison)
    ratios = [comparison.effect] if interval is None else [comparison.effect, interval.low, interval.high]
    return tuple((ratio - 1) * 100 for ratio in ratios if ratio is not None and math.isfinite(ratio))


def _effect_row(experiment: Experiment, comparison: Comparison, domain: tuple[float, float]) -> dict[str, Any]:
    """What is drawn of one comparison; nothing of it lies outside the axis, and what would is marked by arrows."""
    change, *ends = _span(comparison) or (None,)
    low, high = (min(ends), max(ends)) if ends else (None, None)
    arrow = _arrow(change, domain)
    decided = comparison.verdict in {Verdict.BETTER, Verdict.WORSE}
    figures = "" if comparison.effect is None else f"{render_percent_change(comparison.effect)} "
    return {
        "name": break_label(name_environment(experiment.environment(comparison.environment), experiment)),
        "change": change,
        "arrow": arrow,
        "at": _clamp(change, domain),
        "low": _clamp(low, domain),
        "high": _clamp(high, domain),
        "low_end": domain[0] if not arrow and _arrow(low, domain) == "triangle-left" else None,
        "high_end": domain[1] if not arrow and _arrow(high, domain) == "triangle-right" else None,
        "colour": OPEN if not decided else BETTER if comparison.verdict is Verdict.BETTER else WORSE,
        "shape": arrow or ("diamond" if decided else "circle"),
        "size": 170 if arrow else 110,
        "words": f"{figures}{render_interval(shown_interval(comparison))}  {verdict_label(comparison)}".strip(),
    }


def _arrow(change: float | None, domain: tuple[float, float]) -> str:
    """The arrow that points to where a difference lies; empty where it lies on the axis."""
    if change is None or domain[0] <= change <= domain[1]:
        return ""
    return "triangle-right" if change > domain[1] else "triangle-left"


def _clamp(change: float | None, domain: tuple[float, float]) -> float | None:
    return None if change is None else min(max(change, domain[0]), domain[1])


def _threshold_layers(experiment: Experiment, axis: str) -> list[Any]:
    """The band in which a difference would not matter, and the line of no difference."""
    alt = load_altair()
    threshold = experiment.threshold * 100
    band = alt.Chart(single_row({"from": -threshold, "to": threshold})).mark_rect(color=OPEN, opacity=0.16)
    line = alt.Chart(single_row({"at": 0})).mark_rule(color=INK, strokeWidth=1.2)
    if axis == "x":
        return [band.encode(x="from:Q", x2="to:Q"), line.encode(x="at:Q")]
    return [band.encode(y="from:Q", y2="to:Q"), line.encode(y="at:Q")]


def draw_effects_along(answer: Answer, axis: Axis) -> Figure | None:
    """Differences from the baseline along clients or scale, with their intervals."""
    alt = load_altair()
    experiment = answer.study.plan.experiment
    everywhere = (-math.inf, math.inf)
    labels = label_environments(experiment)
    places = {cell.identity: float(getattr(cell, axis.name)) for cell in axis.cells}
    rows = [
        {**_effect_row(experiment, item, everywhere), "name": labels[item.environment], "at": places[item.cell]}
        for item in primary_comparisons(answer)
        if item.cell in places and _span(item)
    ]
    if not rows:
        return None
    y, low = _effect_axes(answer, rows)
    base = alt.Chart(own_rows(), width=WIDTH - 90, height=200).encode(
        x=axis_of_steps(axis), color=colour_scale(experiment, labels)
    )
    lines = base.mark_line(strokeWidth=1.4).encode(y=y)
    points = base.mark_point(filled=True, size=58, opacity=1).encode(y=y, shape=shape_scale(experiment, labels))
    whiskers = base.mark_rule(strokeWidth=1.4).encode(y=low, y2="high:Q")
    heading = f"Difference against {axis.name}: {axis.title}"
    return Figure(
        title=heading,
        label=f"{heading}, with intervals; the band is the threshold of {render_threshold(experiment.threshold)}",
        draw=partial(render_figure, alt.layer(*_threshold_layers(experiment, "y"), whiskers, lines, points), rows),
    )


def _effect_axes(answer: Answer, rows: Sequence[dict[str, Any]]) -> tuple[Any, Any]:
    """A linear axis, or one that is compressed outwards where huge differences would squeeze the others."""
    alt = load_altair()
    experiment = answer.study.plan.experiment
    title = f"difference from {_shorten(name_baseline(experiment))}, %"
    near, far = choose_domain(primary_comparisons(answer), experiment.threshold)
    values = [row[name] for row in rows for name in ("change", "low", "high") if row[name] is not None]
    if near <= min(values) and max(values) <= far:
        axis, scale = alt.Axis(format="+.3~g", tickCount=6, labelExpr=MINUS), alt.Scale()
    else:
        steps = sorted({sign * step for step in _STEPS for sign in (-1, 1)})
        inside = [step for step in steps if min(values) <= step <= max(values)]
        axis = alt.Axis(format="+.3~g", values=inside, labelExpr=MINUS, labelOverlap=False)
        scale = alt.Scale(type="symlog", constant=4 * experiment.threshold * 100, nice=False, padding=8)
        title += " (compressed outwards)"
    y, low = (alt.Y(f"{name}:Q", title=title, axis=axis, scale=scale) for name in ("change", "low"))
    return y, low


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_IN_TITLE else "the baseline"
