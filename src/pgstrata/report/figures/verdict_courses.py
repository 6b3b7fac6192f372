"""Charts of how verdicts came about: each block's difference, and the interval narrowing from look to look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pgstrata.model.answer import Answer, Comparison, Lane, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.drawing import BETTER, INK, MINUS, OPEN, WIDTH, WORSE, render_specification
from pgstrata.report.figures.run_points import break_label
from pgstrata.report.figures.verdict_looks import Look, Story, domain_of
from pgstrata.report.sentences.names import name_environment
from pgstrata.report.sentences.verdicts import render_interval, shown_interval, verdict_label
from pgstrata.units import render_percent_change

_COLUMNS = 2
_HEIGHT = 150
_MOST_TICKS = 12
_COLOURS = {Verdict.BETTER: BETTER, Verdict.WORSE: WORSE, Verdict.COLLAPSED: WORSE}

# Written in the language of the charts itself: see `render_specification`.
_Spec = dict[str, Any]


def draw_courses(answer: Answer, stories: Sequence[Story], title: str) -> Figure | None:
    """One panel for each comparison; None where there is none."""
    if not stories:
        return None
    experiment = answer.study.plan.experiment
    domains = [domain_of(story, experiment.threshold) for story in stories]
    rows = [_row(look, place, domains[place]) for place, story in enumerate(stories) for look in story.looks]
    panels = [_panel(experiment, story, place, domains[place]) for place, story in enumerate(stories)]
    chart = {"data": {"name": "rows"}, "columns": _COLUMNS, "spacing": 26, "concat": panels}
    described = (f"{_name(story.comparison, experiment)}: {describe_course(story.comparison)}" for story in stories)
    label = f"How the verdicts came about, block by block. {'; '.join(described)}"
    return Figure(title=title, label=label, draw=partial(render_specification, chart, rows))


def describe_course(comparison: Comparison) -> str:
    """Faster, decided after 7 of 24 blocks."""
    label = verdict_label(comparison)
    if comparison.decided_at is None:
        return f"{label} after {comparison.blocks} of {comparison.planned_blocks} blocks"
    lane = "fast lane, " if comparison.lane is Lane.FAST else ""
    return f"{label}, {lane}decided after {comparison.decided_at} of {comparison.planned_blocks} blocks"


def _name(comparison: Comparison, experiment: Experiment) -> str:
    return name_environment(experiment.environment(comparison.environment), experiment)


def _row(look: Look, place: int, domain: tuple[float, float]) -> Mapping[str, Any]:
    """What is drawn of one look; a block outside the axis is an arrow at its edge."""
    change = (look.ratio - 1) * 100
    shape = "triangle-up" if change > domain[1] else "triangle-down" if change < domain[0] else "circle"
    row = {
        "panel": place,
        "n": look.n,
        "block": _round(min(max(change, domain[0]), domain[1])),
        "shape": shape,
        "fill": INK if look.counted else "transparent",
    }
    ends = {"effect": look.effect} if look.counted else {}
    if look.interval is not None:
        ends |= {"low": look.interval.low, "high": look.interval.high}
    if look.equivalence is not None:
        ends |= {"inner_low": look.equivalence.low, "inner_high": look.equivalence.high}
    return {**row, **{name: _round((ratio - 1) * 100) for name, ratio in ends.items()}}


def _round(value: float) -> float:
    return float(f"{value:.4g}")


# ------------------------------------------------------------------------------------------------ one panel


def _panel(experiment: Experiment, story: Story, place: int, domain: tuple[float, float]) -> _Spec:
    comparison = story.comparison
    blocks = max(comparison.planned_blocks, story.looks[-1].n)
    return {
        "title": _title(comparison, experiment),
        "width": (WIDTH - 130) / _COLUMNS,
        "height": _HEIGHT,
        "transform": [{"filter": f"datum.panel === {place}"}],
        "encoding": {"x": _x_axis(blocks)},
        "layer": [
            *_ground(experiment.threshold, domain),
            *_intervals(_COLOURS.get(comparison.verdict, OPEN), domain),
            _blocks(domain),
            *_ending(comparison),
        ],
    }


def _title(comparison: Comparison, experiment: Experiment) -> _Spec:
    return {
        "text": break_label(_name(comparison, experiment)).split("\n"),
        "subtitle": [describe_course(comparison), _figures(comparison)],
        "anchor": "start",
        "fontSize": 12,
        "subtitleFontSize": 11,
        "color": INK,
        "subtitleColor": INK,
    }


def _figures(comparison: Comparison) -> str:
    if comparison.effect is None:
        return ""
    return f"{render_percent_change(comparison.effect)} {render_interval(shown_interval(comparison))}".rstrip()


def _x_axis(blocks: int) -> _Spec:
    axis = {"title": "block", "format": "d", "grid": False, "tickMinStep": 1, "tickCount": min(blocks, _MOST_TICKS)}
    return {"field": "n", "type": "quantitative", "scale": {"domain": [0.4, blocks + 0.6], "nice": False}, "axis": axis}


def _y_axis(field: str, domain: tuple[float, float]) -> _Spec:
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"domain": list(domain), "nice": False},
        "axis": {"title": "difference, %", "format": "+.3~g", "tickCount": 5, "labelExpr": MINUS},
    }


def _ground(threshold: float, domain: tuple[float, float]) -> list[_Spec]:
    """The band of the threshold and the line of no difference; they begin at the left edge."""
    band = {"from": -threshold * 100, "to": threshold * 100, "zero": 0}
    return [
        {
            "data": {"values": [band]},
            "mark": {"type": "rect", "color": OPEN, "opacity": 0.16},
            "encoding": {"x": None, "y": _y_axis("from", domain), "y2": {"field": "to"}},
        },
        {
            "data": {"values": [band]},
            "mark": {"type": "rule", "color": INK},
            "encoding": {"x": None, "y": _y_axis("zero", domain)},
        },
    ]


def _intervals(colour: str, domain: tuple[float, float]) -> list[_Spec]:
    """For each look that had them the interval, thin, and the one of equivalence, thick; the estimate as a line."""
    bars = [("low", "high", 1.4, 0.9), ("inner_low", "inner_high", 7, 0.32)]
    spans = [
        {
            "transform": [{"filter": f"isValid(datum.{low})"}],
            "mark": {"type": "rule", "strokeWidth": width, "opacity": opacity, "color": colour},
            "encoding": {"y": _y_axis(low, domain), "y2": {"field": high}},
        }
        for low, high, width, opacity in bars
    ]
    line = {
        "transform": [{"filter": "isValid(datum.effect)"}],
        "mark": {"type": "line", "strokeWidth": 1.6, "color": colour},
        "encoding": {"y": _y_axis("effect", domain)},
    }
    return [*spans, line]


def _blocks(domain: tuple[float, float]) -> _Spec:
    return {
        "mark": {"type": "point", "size": 26, "strokeWidth": 1, "opacity": 1, "color": INK},
        "encoding": {
            "y": _y_axis("block", domain),
            "shape": {"field": "shape", "type": "nominal", "scale": None},
            "fill": {"field": "fill", "type": "nominal", "scale": None},
        },
    }


def _ending(comparison: Comparison) -> list[_Spec]:
    """Where the verdict fell."""
    if comparison.decided_at is None:
        return []
    return [
        {
            "data": {"values": [{"n": comparison.decided_at + 0.5}]},
            "mark": {"type": "rule", "color": INK, "strokeDash": [3, 3], "opacity": 0.7},
        }
    ]
