"""What changes along the load: from how many clients on environments differ, and where one of them gives way."""

from collections.abc import Iterator
from typing import Final

from pgstrata.model.answer import Answer, LoadCourse, LoadLoss, LoadStretch, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import METRICS
from pgstrata.report.sentences.names import count, name_environment
from pgstrata.report.sentences.verdicts import render_interval, render_threshold
from pgstrata.units import render_percent_change

_MOST_SAID: Final = 6


def load_sentences(answer: Answer) -> tuple[str, ...]:
    """Differences that depend on the load; these lead, because a mean over all loads hides them."""
    experiment = answer.study.plan.experiment
    return tuple(say_course(course, experiment) for course in answer.courses if course.changes)[:_MOST_SAID]


def breakdown_sentences(answer: Answer) -> tuple[str, ...]:
    """Where environments lose or collapse as clients are added, each by its own figures."""
    experiment = answer.study.plan.experiment
    return tuple(text for course in answer.courses for text in _say_breakdown(course, experiment))[:_MOST_SAID]


def say_course(course: LoadCourse, experiment: Experiment) -> str:
    """Select-only: X has no difference larger than 3 % up to 78 clients, +12 % [+9, +15] from 111 clients on."""
    name = name_environment(experiment.environment(course.environment), experiment)
    said = [f"{_say_stretch(each, course, experiment)} {_say_place(each, course)}" for each in course.stretches]
    turns = "ahead at some loads and behind at others: " if course.turns else ""
    chance = f"p = {course.p:.2g}" if course.p is not None else ""
    return (
        f"along the load ({_name_curve(course, experiment)}), {name}: {turns}{', '.join(said)} ({chance}, exploratory)"
    )


def _say_stretch(stretch: LoadStretch, course: LoadCourse, experiment: Experiment) -> str:
    figures = "" if stretch.effect is None else render_percent_change(stretch.effect)
    figures = f"{figures} {render_interval(stretch.interval)}".strip()
    match stretch.verdict:
        case Verdict.EQUIVALENT:
            return f"no difference larger than {render_threshold(experiment.threshold)}"
        case Verdict.BETTER | Verdict.WORSE:
            return f"{figures} {METRICS[course.metric].title}"
        case Verdict.NEGLIGIBLE:
            return f"{figures}, negligible,"
        case _:
            return f"not decided ({figures})" if figures else "not decided"


def _say_place(stretch: LoadStretch, course: LoadCourse) -> str:
    if stretch.first == course.clients[0]:
        return f"up to {count(stretch.last, 'client')}"
    if stretch.last == course.clients[-1]:
        return f"from {count(stretch.first, 'client')} on"
    if stretch.first == stretch.last:
        return f"with {count(stretch.first, 'client')}"
    return f"from {stretch.first} to {count(stretch.last, 'client')}"


def _say_breakdown(course: LoadCourse, experiment: Experiment) -> Iterator[str]:
    name, curve = (
        name_environment(experiment.environment(course.environment), experiment),
        _name_curve(course, experiment),
    )
    for loss in course.losses:
        between = f"from {loss.fewer} to {count(loss.more, 'client')}"
        yield f"along the load ({curve}), {name}: {between} {_say_loss(loss, course)}"
    if course.collapsed_from is not None:
        yield f"along the load ({curve}), {name}: collapses with {count(course.collapsed_from, 'client')} or more"


def _say_loss(loss: LoadLoss, course: LoadCourse) -> str:
    return (
        f"{render_percent_change(loss.effect)} {render_interval(loss.interval)} {METRICS[course.metric].title}".replace(
            "  ", " "
        )
    )


def _name_curve(course: LoadCourse, experiment: Experiment) -> str:
    cell = experiment.cell(course.cells[0])
    scales = {each.scale for each in experiment.cells}
    return f"{cell.workload} at scale {cell.scale}" if len(scales) > 1 else cell.workload
