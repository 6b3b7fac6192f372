"""Charts of single runs over their seconds, and of single visits slice by slice."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from pgstrata.model.answer import Answer
from pgstrata.model.metrics import METRICS, ROUND_TPS
from pgstrata.model.runs import RunRecord
from pgstrata.report.answer.notes import visits_in_slices
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.round_rows import Point
from pgstrata.report.figures.run_lines import Line, choose_lines, spread
from pgstrata.report.figures.scales import are_far_apart
from pgstrata.report.figures.second_panels import (
    Course,
    Panel,
    colour_of,
    draw_panels,
    fit_scale,
    line_sample,
    mark_of,
)
from pgstrata.report.sentences.names import count, name_environment

MOST_VISITS: Final = 4


def draw_over_time(answer: Answer, cell: str, title: str) -> Figure | None:
    """Some runs of each environment over their seconds, one panel per environment.

    All panels have one scale, unless that would flatten some of them.
    """
    experiment = answer.study.plan.experiment
    names = [each.name for each in experiment.environments]
    found: dict[str, list[Course]] = {}
    for line in choose_lines(answer, cell):
        if points := _points(line):
            course = Course(points=points, colour=colour_of(names.index(line.environment)), thin=True)
            found.setdefault(line.environment, []).append(course)
    if not found:
        return None
    courses = [course for own in found.values() for course in own]
    apart = are_far_apart([max(value for _, value in course.points) for course in courses])
    panels = [
        Panel(
            title=name_environment(experiment.environment(name), experiment),
            unit=experiment.metric,
            courses=tuple(own),
            scale=fit_scale(own if apart else courses),
        )
        for name, own in found.items()
    ]
    label = f"{METRICS[experiment.metric].title} over the seconds of {count(len(courses), 'run')}, "
    label += "one panel per environment"
    if apart:
        title, label = (f"{text}; each panel has a scale of its own" for text in (title, label))
    return Figure(title=title, label=label, draw=partial(draw_panels, panels, ()))


def _points(line: Line) -> tuple[Point, ...]:
    found = zip(line.times, line.values, strict=True)
    return tuple((time, value) for time, value in found if math.isfinite(time) and math.isfinite(value))


def draw_rounds(answer: Answer, cell: str, title: str) -> Figure | None:
    """Some visits of a cell, one panel each: throughput of every slice, on one logarithmic scale."""
    experiment = answer.study.plan.experiment
    names = [each.name for each in experiment.environments]
    visits = spread(visits_in_slices(answer.study, cell), MOST_VISITS)
    drawn = [{name: _rounds(run, names.index(name)) for name, run in visit.runs.items()} for visit in visits]
    courses = [course for known in drawn for course in known.values() if course.points]
    if not courses:
        return None
    scale = fit_scale(courses, log=True)
    panels = [
        Panel(title=f"block {visit.block}", unit="tps of a slice, log", courses=tuple(known.values()), scale=scale)
        for visit, known in zip(visits, drawn, strict=True)
    ]
    looks = {name: line_sample(course) for known in drawn for name, course in known.items()}
    shown = [each for each in experiment.environments if each.name in looks]
    legend = [(looks[each.name], name_environment(each, experiment)) for each in shown]
    label = f"Throughput of every slice in {count(len(visits), 'visit')}, a colour for each environment"
    return Figure(title=title, label=label, draw=partial(draw_panels, panels, legend, "seconds since the first slice"))


def _rounds(run: RunRecord, place: int) -> Course:
    """Start in seconds and throughput of each round that has both."""
    points = tuple(
        (time, value)
        for series in run.series
        if series.metric == ROUND_TPS
        for time, value in zip(series.times, series.values, strict=True)
        if math.isfinite(time) and 0 < value < math.inf
    )
    return Course(points=points, colour=colour_of(place), thin=True, mark=mark_of(place))
