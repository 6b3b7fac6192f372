"""Charts of differences from the baseline with their intervals, and along ordered factors.

An axis that reaches to one huge difference would squeeze all others to dots at its zero. So it covers what lies around
the threshold, where the doubt is, and whatever lies farther out is an arrow at its edge with its figures beside it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from pgstrata.compare.headlines import primary_comparisons
from pgstrata.model.answer import Answer, Comparison, OrderedAxis, Verdict
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures import vega
from pgstrata.report.figures.run_lines import break_label, label_environments, lines_above
from pgstrata.report.figures.vega import INK, Spec
from pgstrata.report.sentences.factors import LevelPoint, level_points, say_axis, say_step
from pgstrata.report.sentences.names import name_factor, name_place
from pgstrata.report.sentences.verdicts import (
    name_baseline,
    render_shown,
    shown_interval,
    verdict_label,
)
from pgstrata.units import render_percent_change

_LONGEST_IN_TITLE = 48
_WIDTH = 470
_NARROW = vega.NARROW + 54
_LINE = 13
# The axis reaches at least so many thresholds, and at most so many times as far as the lower half of the differences.
_LEAST_REACH = 12
_MOST_REACH = 4


def draw_effects(answer: Answer, cell: str) -> Figure | None:
    """Each environment's difference from the baseline in a cell, with interval; None where there is nothing to draw."""
    found = [item for item in primary_comparisons(answer) if item.cell == cell]
    if not found:
        return None
    experiment = answer.study.plan.experiment
    labels = label_environments(experiment)
    shown = [_name_difference(labels, item) for item in found]
    domain = choose_domain(primary_comparisons(answer), experiment.threshold)
    return draw_differences(shown, baseline=name_baseline(experiment), threshold=experiment.threshold, domain=domain)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDifference:
    """A comparison with the name of its row in a chart, and its verdict in a word or two."""

    name: str
    comparison: Comparison
    label: str


def _name_difference(labels: Mapping[str, str], comparison: Comparison) -> NamedDifference:
    return NamedDifference(name=labels[comparison.environment], comparison=comparison, label=verdict_label(comparison))


def draw_differences(
    shown: Sequence[NamedDifference], *, baseline: str, threshold: float, domain: tuple[float, float]
) -> Figure:
    """Differences from the baseline with their intervals, a row each; `domain` as of `choose_domain`."""
    rows = [_effect_row(each, domain) for each in shown]
    most = _count_lines(rows)
    for row in rows:
        row["lines"] = [*[""] * (most - len(row["lines"])), *row["lines"]]
    outside = any(row["arrow"] or row["low_end"] is not None or row["high_end"] is not None for row in rows)
    label = "; ".join(f"{row['name']}: {row['words']}".replace("\n", "") for row in rows)
    title = f"difference from {_shorten(baseline)}, %"
    title += "; arrows point to what lies outside" if outside else ""
    scale = {"domain": list(domain), "nice": False}
    chart, narrow = (
        layout([*vega.threshold_band(threshold, "x"), *_marks(scale, title, **where)], rows)
        for layout, where in ((_beside, {}), (_above, {"yOffset": _shift(rows) - 2}))
    )
    return vega.figure("", f"Differences with intervals. {label}", chart, rows, narrow)


def _marks(scale: Spec, title: str, **where: float) -> list[Spec]:
    """Intervals, arrows at what leaves the axis, and differences; `where` moves them within their row."""

    def x(field: str) -> Spec:
        return vega.number(field, title=title, scale=scale, axis=vega.percent_axis(tickCount=7))

    bar, end = {"strokeWidth": 3, "strokeCap": "round", **where}, {"filled": True, "size": 60, "opacity": 1, **where}
    shape, size = vega.name("shape", scale=None), vega.number("size", scale=None)
    colour = vega.name("colour", scale=None)
    return [
        vega.mark("rule", bar, x=x("low"), x2={"field": "high"}, color=colour),
        vega.mark("point", {**end, "shape": "triangle-left"}, x=x("low_end"), color=colour),
        vega.mark("point", {**end, "shape": "triangle-right"}, x=x("high_end"), color=colour),
        vega.mark("point", {"filled": True, "opacity": 1, **where}, x=x("at"), shape=shape, size=size, color=colour),
    ]


def _beside(layers: Sequence[Spec], rows: Sequence[vega.Row]) -> Spec:
    """Names at the left of the marks, figures at the right."""
    words = {"align": "left", "dx": 12, "fontSize": 12, "color": INK}
    said = vega.mark("text", words, x={"value": _WIDTH}, text={"field": "words"})
    axis = {"labelExpr": vega.LINES, "labelLimit": 0, "grid": False, "labelPadding": 8}
    lines = max((row["name"].count("\n") for row in rows), default=0) + 1
    return _in_rows([*layers, said], rows, axis, width=_WIDTH, step=18 + 14 * lines)


def _above(layers: Sequence[Spec], rows: Sequence[vega.Row]) -> Spec:
    """Names and figures above the marks."""
    place = {"dy": -_shift(rows) - 11, "baseline": "top", "align": "left", "lineHeight": _LINE}
    said = vega.mark("text", {**place, "fontSize": 12, "color": INK}, x={"value": 0}, text={"field": "lines"})
    return _in_rows([*layers, said], rows, None, width=_NARROW, step=26 + 2 * _shift(rows))


def _in_rows(layers: Sequence[Spec], rows: Sequence[vega.Row], axis: Spec | None, *, width: int, step: float) -> Spec:
    y = vega.name("name", title=None, scale={"domain": [row["name"] for row in rows]}, axis=axis)
    return vega.layered(layers, width=width, height={"step": step}, encoding={"y": y})


def _shift(rows: Sequence[vega.Row]) -> float:
    """Pixels by which marks stand below the middle of their row, where names and figures are above them."""
    return _LINE * _count_lines(rows) / 2


def _count_lines(rows: Sequence[vega.Row]) -> int:
    return max((len(row["lines"]) for row in rows), default=1)


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
    changes = ((ratio - 1) * 100 for ratio in ratios if ratio is not None)
    return tuple(change for change in changes if math.isfinite(change))


def _effect_row(shown: NamedDifference, domain: tuple[float, float]) -> dict[str, Any]:
    """What is drawn of one comparison; nothing of it lies outside the axis, and what would is marked by arrows."""
    comparison = shown.comparison
    change, *ends = _span(comparison) or (None,)
    low, high = (min(ends), max(ends)) if ends else (None, None)
    arrow = _arrow(change, domain)
    decided = comparison.verdict in {Verdict.BETTER, Verdict.WORSE}
    words = f"{render_shown(comparison)}  {shown.label}".strip()
    return {
        "name": shown.name,
        "lines": [*lines_above(shown.name.replace("\n", ""), words)],
        "change": change,
        "arrow": arrow,
        "at": _clamp(change, domain),
        "low": _clamp(low, domain),
        "high": _clamp(high, domain),
        "low_end": domain[0] if not arrow and _arrow(low, domain) == "triangle-left" else None,
        "high_end": domain[1] if not arrow and _arrow(high, domain) == "triangle-right" else None,
        "colour": vega.OPEN if not decided else vega.BETTER if comparison.verdict is Verdict.BETTER else vega.WORSE,
        "shape": arrow or ("diamond" if decided else "circle"),
        "size": 170 if arrow else 110,
        "words": words,
    }


def _arrow(change: float | None, domain: tuple[float, float]) -> str:
    """The arrow that points to where a difference lies; empty where it lies on the axis."""
    if change is None or domain[0] <= change <= domain[1]:
        return ""
    return "triangle-right" if change > domain[1] else "triangle-left"


def _clamp(change: float | None, domain: tuple[float, float]) -> float | None:
    return None if change is None else min(max(change, domain[0]), domain[1])


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_IN_TITLE else "the baseline"


_SPREAD = 0.4
_BLOCKS, _MEDIANS = "datum.kind === 'block'", "datum.kind === 'median'"


def draw_axis(answer: Answer, axis: OrderedAxis) -> Figure | None:
    """Levels in their order: a dot for each block, a bar at the median, a line where a step stands out."""
    points = level_points(answer, axis)
    if not points:
        return None
    experiment, factor = answer.study.plan.experiment, name_factor(axis.factor)
    title = f"Along {factor}: {name_place(axis.cell, experiment)}"
    return draw_levels(axis, points, factor=factor, title=title, label=say_axis(axis, experiment))


def draw_levels(axis: OrderedAxis, points: Sequence[LevelPoint], *, factor: str, title: str, label: str) -> Figure:
    """The same for points that are known."""
    rows = _level_rows(points, len(axis.levels))
    wide, narrow = (_levels_chart(axis, rows, factor, width) for width in (vega.WHOLE, vega.NARROW))
    return vega.figure(title, label, wide, rows, narrow)


def _levels_chart(axis: OrderedAxis, rows: Sequence[vega.Row], factor: str, width: int) -> Spec:
    y = vega.number("y", title="difference from the block's mean, %", axis=vega.percent_axis(tickCount=6))
    stair = {"strokeWidth": 1.2, "color": INK, "opacity": 0.5}
    bar = {"strokeWidth": 4, "color": INK, "strokeCap": "round"}
    ends: Spec = {"x": vega.number("left"), "x2": {"field": "right"}}
    layers = [
        vega.mark("point", {"filled": True, "size": 34, "opacity": 0.55, "color": vega.OPEN}, where=_BLOCKS, y=y),
        vega.mark("line", stair, where=_MEDIANS, y=y),
        vega.mark("rule", bar, where=_MEDIANS, y=y, **ends),
        *_step_lines(axis, max(row["y"] for row in rows), whole=width == vega.WHOLE),
    ]
    shared = {"x": vega.named_places(factor, axis.levels, 0.6, width, labelFontSize=13)}
    return vega.layered(layers, width=width, height=230, encoding=shared)


def _level_rows(points: Sequence[LevelPoint], levels: int) -> list[dict[str, Any]]:
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


def _step_lines(axis: OrderedAxis, top: float, *, whole: bool) -> list[Spec]:
    """A line between the levels of each step, with its size above; `whole`: there is room for its interval."""
    rule = {"color": vega.BETTER, "strokeDash": [4, 3], "strokeWidth": 1.6}
    text = {"dy": -4, "baseline": "bottom", "fontSize": 12, "color": INK}
    layers = []
    for step in axis.steps:
        at = axis.levels.index(step.after) - 0.5
        said = say_step(step) if whole else render_percent_change(step.effect)
        row = {"x": at, "y": top, "text": [*break_label(f"{step.after}:").split("\n"), said]}
        # at the side with more room
        side = {"align": "left", "dx": 5} if at < (len(axis.levels) - 1) / 2 or whole else {"align": "right", "dx": -5}
        layers += [
            vega.mark("rule", rule, row=row, x=vega.number("x")),
            vega.mark(
                "text", {**text, **side}, row=row, x=vega.number("x"), y=vega.number("y"), text={"field": "text"}
            ),
        ]
    return layers
