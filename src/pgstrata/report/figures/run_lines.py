"""What charts are drawn from: few enough points that a report stays small, chosen so that dips stay visible."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pgstrata.model.answer import Answer
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import TPS, Series
from pgstrata.model.runs import RunRecord
from pgstrata.report.blocks.layout import split_name
from pgstrata.report.sentences.names import name_environment
from pgstrata.sources.runs import may_enter

_MOST_LINES = 400
_MOST_LINES_OF_A_PANEL = 5
_MOST_POINTS_OF_A_LINE = 150
_LABEL_WIDTH = 30
_LETTERS = 50
"""Of a line above a mark."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One run over its seconds."""

    environment: str
    run: str
    times: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One run as a whole: `block` is its number, `place` where it stands beside the others of its block."""

    environment: str
    block: int
    place: float
    value: float
    valid: bool


def label_environments(experiment: Experiment) -> Mapping[str, str]:
    """Names for charts, by environment: broken into lines rather than cut."""
    return {item.name: break_label(name_environment(item, experiment)) for item in experiment.environments}


def lines_above(name: str, words: str) -> tuple[str, ...]:
    """A name and its words above a mark of a narrow chart: one line if both have room, else words below the name."""
    whole = f"{name}: {words}"
    return (whole,) if len(whole) <= _LETTERS else (*break_label(name, _LETTERS).split("\n"), words)


def break_label(text: str, width: int = _LABEL_WIDTH) -> str:
    """Lines of at most so many characters, and blanks; without its line breaks it is the text again.

    They end after words and parts of names, and within those only if one alone is longer than a line.
    """
    lines = [""]
    for piece in (part for each in split_name(text) for part in _cut_into(each, width)):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def _cut_into(text: str, width: int) -> list[str]:
    return [text[start : start + width] for start in range(0, len(text), width)] or [text]


def choose_lines(answer: Answer, cell: str) -> tuple[Line, ...]:
    """Runs of a cell over time: some of each environment, spread over the blocks."""
    experiment = answer.study.plan.experiment
    panels = len(experiment.environments) * len(experiment.cells)
    most = max(1, min(_MOST_LINES_OF_A_PANEL, _MOST_LINES // panels))
    lines: list[Line] = []
    for environment in experiment.environments:
        found = [
            (run, series)
            for run in answer.study.runs
            if run.cell == cell and run.environment == environment.name and may_enter(run)
            for series in run.series
            if series.metric == experiment.metric and len(series.times) > 1
        ]
        for run, series in spread(found, most):
            times, values = thin(series)
            lines.append(Line(environment=environment.name, run=run.identity, times=times, values=values))
    return tuple(lines)


def spread(items: Sequence[T], most: int) -> Sequence[T]:
    """At most so many of them, evenly from first to last."""
    if len(items) <= most:
        return items
    return [items[round(place * (len(items) - 1) / max(1, most - 1))] for place in range(most)]


def thin(series: Series) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Times and values; of each stretch of a long series the smallest and the largest value, so that dips stay."""
    points = list(zip(series.times, series.values, strict=True))
    if len(points) <= _MOST_POINTS_OF_A_LINE:
        return series.times, series.values
    size = math.ceil(2 * len(points) / _MOST_POINTS_OF_A_LINE)
    kept = [point for start in range(0, len(points), size) for point in _extremes(points[start : start + size])]
    return tuple(time for time, _ in kept), tuple(value for _, value in kept)


def _extremes(stretch: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return sorted({min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])})


def place_dots(answer: Answer, cell: str) -> tuple[Dot, ...]:
    """All runs of a cell, those of a block side by side."""
    value_of = _figure_of_runs(answer, cell)
    experiment = answer.study.plan.experiment
    names = [item.name for item in experiment.environments]
    offsets = {name: (place - (len(names) - 1) / 2) * 0.6 / len(names) for place, name in enumerate(names)}
    return tuple(
        Dot(
            environment=run.environment,
            block=run.block,
            place=run.block + offsets[run.environment],
            value=value,
            valid=may_enter(run),
        )
        for run in answer.study.runs
        if run.cell == cell
        for value in (value_of(run),)
        if value is not None and math.isfinite(value)
    )


def _figure_of_runs(answer: Answer, cell: str) -> Callable[[RunRecord], float | None]:
    """The primary metric of a run; that of its slices, for all runs of a cell, where some have no unlogged stretch."""
    metric = answer.study.plan.experiment.metric
    runs = [run for run in answer.study.runs if run.cell == cell]
    if metric == TPS.name and any(run.median_round() and run.value(metric) is None for run in runs):
        return RunRecord.median_round
    return lambda run: run.value(metric)
