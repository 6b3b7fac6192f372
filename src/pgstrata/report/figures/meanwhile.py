"""The chart of throughput, latency, host and server second by second: small panels with one course in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from pgstrata.compare.courses import MOST_ENVIRONMENTS, CellCourses, ComparedCourse, find_courses
from pgstrata.model.answer import Answer
from pgstrata.report.blocks.model import Figure, begin
from pgstrata.report.figures.looks import EVENT_MARKS, draw_marks
from pgstrata.report.figures.round_rows import Point
from pgstrata.report.figures.second_panels import (
    Course,
    Events,
    Panel,
    colour_of,
    dash_of,
    draw_panels,
    fit_scale,
    line_sample,
)
from pgstrata.report.figures.vega import INK
from pgstrata.report.sentences.events import EVENT_WORDS
from pgstrata.report.sentences.names import count, name_environment
from pgstrata.units import Unit

_TIMES: Final = {Unit.RATIO: 100.0, Unit.SECONDS: 1e3}
_UNITS: Final = {Unit.RATIO: "%", Unit.SECONDS: "ms", Unit.COUNT: "", Unit.CPUS: "CPUs"}


def draw_meanwhile(answer: Answer, cell: str, title: str) -> Figure | None:
    """A panel for the throughput and for each course that tells something; None where nothing does."""
    found = find_courses(answer.study, cell)
    if found is None:
        return None
    experiment = answer.study.plan.experiment
    places = {each.name: place for place, each in enumerate(experiment.environments)}
    events = tuple(_events(found, places))
    panels = [
        _panel(course, places, events if place < found.leading else ()) for place, course in enumerate(found.courses)
    ]
    drawn = {line.environment for course in found.courses for line in course.lines}
    legend = [
        (line_sample(_course(places[each.name])), name_environment(each, experiment))
        for each in experiment.environments
        if each.name in drawn
    ]
    legend += [
        (f'<path d="{draw_marks(EVENT_MARKS[kind], [(0, 0)], 2.6)}" fill="{INK}"/>', EVENT_WORDS[kind])
        for kind in EVENT_MARKS
        if kind in found.events
    ]
    draw = partial(draw_panels, panels, legend)
    return Figure(title=title + _left_out(answer, found), label=_describe(found), draw=draw)


def _course(place: int, points: tuple[Point, ...] = ()) -> Course:
    return Course(points=points, colour=colour_of(place), dash=dash_of(place))


def _panel(course: ComparedCourse, places: Mapping[str, int], events: tuple[Events, ...]) -> Panel:
    """One course of several environments; the kinds of events stand along its bottom."""
    times = _TIMES.get(course.unit, 1.0)
    lines = tuple(
        _course(places[line.environment], tuple(zip(line.times, (times * value for value in line.values), strict=True)))
        for line in course.lines
    )
    unit = _UNITS.get(course.unit, course.unit.value)
    return Panel(title=begin(course.title), unit=unit, courses=lines, scale=fit_scale(lines), events=events)


def _events(found: CellCourses, places: Mapping[str, int]) -> Iterator[Events]:
    for height, kind in enumerate(kind for kind in EVENT_MARKS if kind in found.events):
        for name, seconds in found.events[kind].items():
            yield Events(seconds=seconds, mark=EVENT_MARKS[kind], colour=colour_of(places[name]), kind=height)


def _left_out(answer: Answer, found: CellCourses) -> str:
    """What is not drawn, behind a title."""
    names = answer.study.plan.experiment.environments
    texts = [f"{MOST_ENVIRONMENTS} of {len(names)} environments"] if len(names) > MOST_ENVIRONMENTS else []
    texts += [f"{found.left} more that differ or move are not drawn"] if found.left else []
    return "".join(f"; {text}" for text in texts)


def _describe(found: CellCourses) -> str:
    runs = count(max(line.runs for panel in found.courses for line in panel.lines), "run")
    titles = "; ".join(panel.title for panel in found.courses)
    marks = ", ".join(EVENT_WORDS[kind] for kind in EVENT_MARKS if kind in found.events)
    marked = f". Marks from the log: {marks}" if marks else ""
    return f"Medians over up to {runs} of each environment, second by second: {titles}{marked}"
