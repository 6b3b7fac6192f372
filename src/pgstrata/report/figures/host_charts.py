"""The chart of what host and server did second by second: small panels, one course in each."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from pgstrata.model.answer import Answer
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.drawing import (
    INK,
    WIDTH,
    colour_scale,
    dash_scale,
    load_altair,
    own_rows,
    render_figure,
)
from pgstrata.report.figures.host_courses import MOST_ENVIRONMENTS, Meanwhile, MeanwhilePanel, find_meanwhile
from pgstrata.report.figures.run_points import label_environments
from pgstrata.report.figures.runs import choose_seconds
from pgstrata.report.sentences.names import count
from pgstrata.units import Unit

_COLUMNS: Final = 2
_HEIGHT: Final = 96
_MARK: Final = "checkpoint"
_AXES: Final = {Unit.RATIO: ("", ".0%"), Unit.COUNT: ("", "~g"), Unit.CPUS: ("CPUs", "~g")}
_LABELS: Final = 44
"""Pixels for the labels of an axis, so that panels below each other begin alike."""


def draw_meanwhile(answer: Answer, cell: str, title: str) -> Figure | None:
    """A panel for the throughput and for each course that tells something; None where nothing does."""
    found = find_meanwhile(answer.study, cell)
    if found is None:
        return None
    alt = load_altair()
    experiment = answer.study.plan.experiment
    labels = label_environments(experiment)
    rows: list[dict[str, Any]] = [
        {"panel": place, "name": labels[line.environment], "time": time, "value": float(f"{value:.4g}")}
        for place, panel in enumerate(found.panels)
        for line in panel.lines
        for time, value in zip(line.times, line.values, strict=True)
    ]
    rows += [
        {"panel": _MARK, "name": labels[name], "time": time, "value": 0.0}
        for name, times in found.checkpoints.items()
        for time in times
    ]
    last = max(row["time"] for row in rows)
    panels = [_panel(answer, panel, place, last, labels) for place, panel in enumerate(found.panels)]
    chart = alt.concat(*panels, columns=_COLUMNS, spacing=18).resolve_scale(color="shared", strokeDash="shared")
    return Figure(
        title=title + _left_out(answer, found), label=_describe(found), draw=partial(render_figure, chart, rows)
    )


def _panel(answer: Answer, panel: MeanwhilePanel, place: int, last: float, labels: Any) -> Any:
    alt = load_altair()
    experiment = answer.study.plan.experiment
    unit, form = _AXES.get(panel.unit, (panel.unit.value, "~s"))
    base = alt.Chart(own_rows(), width=(WIDTH - 130) / _COLUMNS, height=_HEIGHT).encode(
        x=alt.X("time:Q")
        .title("seconds")
        .scale(nice=False, domain=[0, last])
        .axis(values=choose_seconds(last), format="d"),
        y=alt.Y("value:Q").title(unit or " ").scale(zero=True).axis(tickCount=4, format=form, minExtent=_LABELS),
        color=colour_scale(experiment, labels),
    )
    line = base.transform_filter(f"datum.panel === {place}").mark_line(strokeWidth=1.4)
    layers = [line.encode(strokeDash=dash_scale(experiment, labels))]
    if place == 0:
        marks = base.transform_filter(f"datum.panel === '{_MARK}'")
        layers.append(marks.mark_point(shape="triangle-up", filled=True, size=46, opacity=0.9, yOffset=-4))
    heading = alt.TitleParams(panel.title[:1].upper() + panel.title[1:], anchor="start", fontSize=12, color=INK)
    return alt.layer(*layers).properties(title=heading)


def _left_out(answer: Answer, found: Meanwhile) -> str:
    """What is not drawn, behind a title."""
    names = answer.study.plan.experiment.environments
    texts = [f"{MOST_ENVIRONMENTS} of {len(names)} environments"] if len(names) > MOST_ENVIRONMENTS else []
    texts += [f"{found.left} more that differ or move are not drawn"] if found.left else []
    return "".join(f"; {text}" for text in texts)


def _describe(found: Meanwhile) -> str:
    runs = count(max(line.runs for panel in found.panels for line in panel.lines), "run")
    titles = "; ".join(panel.title for panel in found.panels)
    return f"Medians over up to {runs} of each environment, second by second: {titles}"
