"""The chart of throughput, latency, host and server second by second: small panels with one course in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pgstrata.compare.courses import MOST_ENVIRONMENTS, CellCourses, ComparedCourse, find_courses
from pgstrata.model.answer import Answer
from pgstrata.model.experiment import Experiment
from pgstrata.report.blocks.model import Figure, begin
from pgstrata.report.figures import vega
from pgstrata.report.figures.run_lines import label_environments
from pgstrata.report.figures.runs import choose_seconds
from pgstrata.report.figures.vega import INK, Spec
from pgstrata.report.sentences.events import EVENT_WORDS
from pgstrata.report.sentences.names import count
from pgstrata.units import Unit

_HEIGHT: Final = 96
_MARK: Final = "event"
_SHAPES: Final = (
    ("square", "■"), ("triangle-up", "▲"), ("diamond", "◆"), ("triangle-down", "▼"), ("cross", "✚"),
    ("triangle-right", "▶"),
)  # fmt: skip
_SIGNS: Final = dict(zip(EVENT_WORDS, _SHAPES, strict=True))
"""Shape and sign of each kind of log event."""
_MARK_HEIGHT: Final = 9
_AXES: Final = {
    Unit.RATIO: ("", ".0%"), Unit.COUNT: ("", "~g"), Unit.CPUS: ("CPUs", "~g"), Unit.SECONDS: ("ms", "~g")
}  # fmt: skip
_MILLI: Final = 1e3
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
        {"panel": place, "name": labels[line.environment], "time": time, "value": vega.rounded(times * value)}
        for place, panel in enumerate(found.courses)
        for times in (_MILLI if panel.unit is Unit.SECONDS else 1.0,)
        for line in panel.lines
        for time, value in zip(line.times, line.values, strict=True)
    ]
    rows += [
        {"panel": _MARK, "kind": kind, "name": labels[name], "time": time, "value": 0.0}
        for kind, seconds in found.events.items()
        for name, times in seconds.items()
        for time in times
    ]
    last = max(row["time"] for row in rows)
    marked = [kind for kind in _SIGNS if kind in found.events]
    charts = [
        _panel(experiment, panel, place, last, marked if place < found.leading else ())
        for place, panel in enumerate(found.courses)
    ]
    chart = vega.beside(charts, spacing=18, resolve={"scale": {"color": "shared", "strokeDash": "shared"}})
    return vega.figure(title + _left_out(answer, found), _describe(found), chart, rows)


def _panel(experiment: Experiment, panel: ComparedCourse, place: int, last: float, marked: Sequence[str]) -> Spec:
    """One course; the kinds of events in `marked` stand along its bottom, each kind at its own height."""
    unit, form = _AXES.get(panel.unit, (panel.unit.value, "~s"))
    seconds = {"values": choose_seconds(last), "format": "d"}
    x = vega.number("time", title="seconds", scale={"nice": False, "domain": [0, last]}, axis=seconds)
    axis = {"tickCount": 4, "format": form, "minExtent": _LABELS}
    y = vega.number("value", title=unit or " ", scale={"zero": True}, axis=axis)
    dashes = vega.by_environment(experiment, "strokeDash")
    layers = [vega.mark("line", {"strokeWidth": 1.4}, where=f"datum.panel === {place}", **dashes)]
    for height, kind in enumerate(marked):
        look = {"filled": True, "size": 40, "opacity": 0.9, "yOffset": -4 - _MARK_HEIGHT * height}
        where = f"datum.panel === '{_MARK}' && datum.kind === '{kind}'"
        layers.append(vega.mark("point", {**look, "shape": _SIGNS[kind][0]}, where=where))
    heading: Spec = {"text": begin(panel.title), "anchor": "start", "fontSize": 12, "color": INK}
    if marked and place == 0:
        heading |= {"subtitle": [f"{_SIGNS[kind][1]} {EVENT_WORDS[kind]}" for kind in marked]}
        heading |= {"subtitleColor": INK, "subtitleFontSize": 11}
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
    marks = ", ".join(EVENT_WORDS[kind] for kind in _SIGNS if kind in found.events)
    marked = f". Marks from the log: {marks}" if marks else ""
    return f"Medians over up to {runs} of each environment, second by second: {titles}{marked}"
