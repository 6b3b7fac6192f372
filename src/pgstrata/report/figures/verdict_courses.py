"""Charts of how verdicts came about: each block's difference, and the interval narrowing from look to look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgstrata.compare.verdicts.history import Look, Story
from pgstrata.model.answer import Answer, Comparison, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures import vega
from pgstrata.report.figures.run_lines import break_label
from pgstrata.report.figures.vega import INK, Spec
from pgstrata.report.sentences.names import name_environment
from pgstrata.report.sentences.verdicts import render_shown, verdict_label

_HEIGHT = 150
# One block in so many may lie outside its axis, at either end.
_OUTLIERS = 8
_MOST_TICKS = 12
_COLOURS = {Verdict.BETTER: vega.BETTER, Verdict.WORSE: vega.WORSE, Verdict.COLLAPSED: vega.WORSE}


def draw_courses(answer: Answer, stories: Sequence[Story], title: str) -> Figure | None:
    """One panel for each comparison, as wide as a phone; None where there is none."""
    if not stories:
        return None
    experiment = answer.study.plan.experiment
    panels = []
    for story in stories:
        domain = domain_of(story, experiment.threshold)
        panels.append((_panel(experiment, story, domain), [_row(look, domain) for look in story.looks]))
    described = (f"{_name(story.comparison, experiment)}: {describe_course(story.comparison)}" for story in stories)
    label = f"How the verdicts came about, block by block. {'; '.join(described)}"
    return vega.panels(title, label, panels)


def describe_course(comparison: Comparison) -> str:
    """Faster, decided after 8 of 60 blocks."""
    label = verdict_label(comparison)
    if comparison.decided_at is None:
        return f"{label} after {comparison.blocks} of {comparison.planned_blocks} blocks"
    return f"{label}, decided after {comparison.decided_at} of {comparison.planned_blocks} blocks"


def _name(comparison: Comparison, experiment: Experiment) -> str:
    return name_environment(experiment.environment(comparison.environment), experiment)


def _row(look: Look, domain: tuple[float, float]) -> Mapping[str, Any]:
    """What is drawn of one look; a block outside the axis is an arrow at its edge."""
    change = (look.ratio - 1) * 100
    shape = "triangle-up" if change > domain[1] else "triangle-down" if change < domain[0] else "circle"
    row = {
        "n": look.n,
        "block": vega.rounded(min(max(change, domain[0]), domain[1])),
        "shape": shape,
        "fill": INK if look.counted else "transparent",
    }
    ends = {"effect": look.effect} if look.counted else {}
    if look.interval is not None:
        ends |= {"low": look.interval.low, "high": look.interval.high}
    if look.equivalence is not None:
        ends |= {"inner_low": look.equivalence.low, "inner_high": look.equivalence.high}
    return {**row, **{name: vega.percent(ratio) for name, ratio in ends.items()}}


def domain_of(story: Story, threshold: float) -> tuple[float, float]:
    """Ends of its axis in percent: zero, threshold and intervals whole; blocks far outside stand at the edge."""
    blocks = sorted(look.ratio for look in story.looks)
    aside = len(blocks) // _OUTLIERS
    shown = [1 - 1.3 * threshold, 1 + 1.3 * threshold, blocks[aside], blocks[-1 - aside]]
    for look in story.looks:
        for interval in (look.interval, look.equivalence):
            shown += [interval.low, interval.high] if interval is not None else []
    low, high = (min(shown) - 1) * 100, (max(shown) - 1) * 100
    edge = 0.06 * (high - low)
    return low - edge, high + edge


# ------------------------------------------------------------------------------------------------ one panel


def _panel(experiment: Experiment, story: Story, domain: tuple[float, float]) -> Spec:
    comparison = story.comparison
    blocks = max(comparison.planned_blocks, story.looks[-1].n)
    scale = {"domain": [0.4, blocks + 0.6], "nice": False}
    numbers = {"format": "d", "grid": False, "tickMinStep": 1, "tickCount": min(blocks, _MOST_TICKS)}
    end = {"color": INK, "strokeDash": [3, 3], "opacity": 0.7}
    layers = [
        *vega.threshold_band(experiment.threshold, "y"),
        *_course(_COLOURS.get(comparison.verdict, vega.OPEN), domain),
        *([vega.mark("rule", end, row={"n": comparison.decided_at + 0.5})] if comparison.decided_at else []),
    ]
    shared = {"x": vega.number("n", title="block", scale=scale, axis=numbers)}
    title = _title(comparison, experiment)
    return vega.layered(layers, title=title, width=vega.NARROW + 20, height=_HEIGHT, encoding=shared)


def _title(comparison: Comparison, experiment: Experiment) -> Spec:
    return {
        "text": break_label(_name(comparison, experiment)).split("\n"),
        "subtitle": [describe_course(comparison), render_shown(comparison)],
        "anchor": "start",
        "fontSize": 12,
        "subtitleFontSize": 11,
        "color": INK,
        "subtitleColor": INK,
    }


def _course(colour: str, domain: tuple[float, float]) -> list[Spec]:
    """For each look the interval, thin, and the one of equivalence, thick, where it had them; estimates, and blocks."""

    def y(field: str) -> Spec:
        scale = {"domain": list(domain), "nice": False}
        return vega.number(field, title="difference, %", scale=scale, axis=vega.percent_axis(tickCount=5))

    thin, thick = {"strokeWidth": 1.4, "opacity": 0.9}, {"strokeWidth": 7, "opacity": 0.32}
    dot = {"size": 26, "strokeWidth": 1, "opacity": 1, "color": INK}
    shape, fill = vega.name("shape", scale=None), vega.name("fill", scale=None)
    return [
        *(
            vega.mark("rule", {**look, "color": colour}, where=f"isValid(datum.{low})", y=y(low), y2={"field": high})
            for look, low, high in ((thin, "low", "high"), (thick, "inner_low", "inner_high"))
        ),
        vega.mark("line", {"strokeWidth": 1.6, "color": colour}, where="isValid(datum.effect)", y=y("effect")),
        vega.mark("point", dot, y=y("block"), shape=shape, fill=fill),
    ]
