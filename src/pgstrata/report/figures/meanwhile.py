"""The chart of what host and server did second by second: small panels with one course in each."""

from __future__ import annotations

from typing import Any, Final

from pgstrata.compare.courses import MOST_ENVIRONMENTS, CellCourses, ComparedCourse, find_courses
from pgstrata.model.answer import Answer
from pgstrata.model.experiment import Experiment
from pgstrata.report.blocks.model import Figure, begin
from pgstrata.report.figures import vega
from pgstrata.report.figures.run_lines import label_environments
from pgstrata.report.figures.runs import choose_seconds
from pgstrata.report.figures.vega import INK, Spec
from pgstrata.report.sentences.names import count
from pgstrata.units import Unit

_HEIGHT: Final = 96
_MARK: Final = "checkpoint"
_AXES: Final = {Unit.RATIO: ("", ".0%"), Unit.COUNT: ("", "~g"), Unit.CPUS: ("CPUs", "~g")}
_LABELS: Final = 44
"""Pixels for the labels of an axis, so that panels below each other begin alike."""


def draw_meanwhile(answer: Answer, cell: str, title: str) -> Figure | None:
    """A panel for the throughput and for each course that tells something; None where nothing does."""
    found = find_courses(answer.study, cell)
    if found is None:
        return None
    experiment = answer.study.plan.experiment
    labels = label_environments(experiment)
    rows: list[dict[str, Any]] = [
        {"panel": place, "name": labels[line.environment], "time": time, "value": vega.rounded(value)}
        for place, panel in enumerate(found.courses)
        for line in panel.lines
        for time, value in zip(line.times, line.values, strict=True)
    ]
    rows += [
        {"panel": _MARK, "name": labels[name], "time": time, "value": 0.0}
        for name, times in found.checkpoints.items()
        for time in times
    ]
    last = max(row["time"] for row in rows)
    charts = [_panel(experiment, panel, place, last) for place, panel in enumerate(found.courses)]
    chart = vega.beside(charts, spacing=18, resolve={"scale": {"color": "shared", "strokeDash": "shared"}})
    return vega.figure(title + _left_out(answer, found), _describe(found), chart, rows)


def _panel(experiment: Experiment, panel: ComparedCourse, place: int, last: float) -> Spec:
    unit, form = _AXES.get(panel.unit, (panel.unit.value, "~s"))
    seconds = {"values": choose_seconds(last), "format": "d"}
    x = vega.number("time", title="seconds", scale={"nice": False, "domain": [0, last]}, axis=seconds)
    axis = {"tickCount": 4, "format": form, "minExtent": _LABELS}
    y = vega.number("value", title=unit or " ", scale={"zero": True}, axis=axis)
    dashes = vega.by_environment(experiment, "strokeDash")
    layers = [vega.mark("line", {"strokeWidth": 1.4}, where=f"datum.panel === {place}", **dashes)]
    if place == 0:
        look = {"shape": "triangle-up", "filled": True, "size": 46, "opacity": 0.9, "yOffset": -4}
        layers.append(vega.mark("point", look, where=f"datum.panel === '{_MARK}'"))
    heading = {"text": begin(panel.title), "anchor": "start", "fontSize": 12, "color": INK}
    shared = {"x": x, "y": y, **vega.by_environment(experiment, "color")}
    return vega.layered(layers, width=(vega.WIDTH - 130) / 2, height=_HEIGHT, encoding=shared, title=heading)


def _left_out(answer: Answer, found: CellCourses) -> str:
    """What is not drawn, behind a title."""
    names = answer.study.plan.experiment.environments
    texts = [f"{MOST_ENVIRONMENTS} of {len(names)} environments"] if len(names) > MOST_ENVIRONMENTS else []
    texts += [f"{found.left} more that differ or move are not drawn"] if found.left else []
    return "".join(f"; {text}" for text in texts)


def _describe(found: CellCourses) -> str:
    runs = count(max(line.runs for panel in found.courses for line in panel.lines), "run")
    titles = "; ".join(panel.title for panel in found.courses)
    return f"Medians over up to {runs} of each environment, second by second: {titles}"
