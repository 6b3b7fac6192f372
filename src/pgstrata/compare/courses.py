"""Throughput, latency, host and server second by second: medians over the runs, and which courses differ or move."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.model.courses import COURSES, EVENTS, PERCENTILES, Course
from pgstrata.model.metrics import METRICS, TPS, Series
from pgstrata.model.runs import RunRecord
from pgstrata.model.study import Study
from pgstrata.sources.runs import may_enter
from pgstrata.stats.ranks import FloatArray
from pgstrata.units import Unit

LOOKED_AT: Final = (TPS.name, *PERCENTILES, *EVENTS, *COURSES)
"""Names of the series that are looked at."""
MOST_ENVIRONMENTS: Final = 6
_MOST_COURSES: Final = 8
_MOST_POINTS: Final = 120
_CLEAR: Final = 3.0
"""Standard errors between the levels of two environments."""
_LEAST: Final = 0.1
"""Share of the larger level that levels, or the seconds of a course, must be apart."""
_RATES: Final = frozenset({Unit.PER_SECOND, Unit.BYTES_PER_SECOND})
_WORTH: Final[Mapping[Unit, float]] = {
    Unit.CPUS: 0.02,
    Unit.COUNT: 0.05,
    Unit.PER_SECOND: 10.0,
    Unit.BYTES_PER_SECOND: 1e5,
    Unit.SECONDS: 5e-5,
    Unit.BYTES: 1e6,
    Unit.RATIO: 0.01,
}
"""Levels below which a course is not worth telling, whatever it does."""
_SAME: Final = 0.02
"""Minimum relative difference at which a disk gets a series of its own."""
_NEVER: Final = frozenset({"commits", "server_written"})
"""Never told: `commits` are the throughput, and Linux counts a whole large folio each time a page becomes dirty."""

_Key = tuple[str, str]
"""Name of a course and its subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The median course of one environment: `times` in seconds of the measured window, `values` in the base unit."""

    environment: str
    runs: int
    times: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCourse:
    """One course of several environments."""

    title: str
    unit: Unit
    lines: tuple[Timeline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCourses:
    """What is told of a cell: throughput and percentiles of latency first, then courses of host and server.

    `left` more courses that tell something are not among them. `leading` is the number of those that come first.
    `events` are the seconds in which the server's log of any run tells of something, by kind and environment.
    """

    courses: tuple[ComparedCourse, ...]
    leading: int
    left: int
    events: Mapping[str, Mapping[str, tuple[float, ...]]]


def find_courses(study: Study, cell: str) -> CellCourses | None:
    """The courses of a cell that tell something; None where nothing is known by the second, and in slices.

    Behind throughput and percentiles, first those whose levels differ between an environment and the baseline, the
    farthest apart first; rates are compared per transaction, so that what comes with throughput alone is no difference.
    Then, while there is room, those that move most over the seconds.
    """
    if study.plan.design(cell).sliced:
        return None
    experiment = study.plan.experiment
    names = [item.name for item in experiment.environments][:MOST_ENVIRONMENTS]
    if experiment.baseline not in names:
        names[-1] = experiment.baseline
    usable = [run for run in study.runs if run.cell == cell and may_enter(run)]
    runs = {name: [_Courses.of(run) for run in usable if run.environment == name] for name in names}
    keys = {key for found in runs.values() for run in found for key in run.series if key[0] in COURSES}
    lines = {key: line for key in sorted(keys) if (line := _timelines(runs, key))}
    told = [key for key in lines if _tells(key, lines)]
    apart = {key: _apart(runs, key, experiment.baseline) for key in told}
    first = sorted((key for key in told if apart[key] > 0), key=lambda key: -apart[key])
    motion = {key: max(_motion(line) for line in lines[key]) for key in told if not apart[key]}
    rest = sorted((key for key in motion if motion[key] >= _LEAST), key=lambda key: -motion[key])
    chosen = [*first, *rest][:_MOST_COURSES]
    leading = [
        ComparedCourse(title=METRICS[metric].title, unit=METRICS[metric].unit, lines=found)
        for metric in (TPS.name, *PERCENTILES)
        if (found := _timelines(runs, (metric, "")))
    ]
    courses = [ComparedCourse(title=_title(key), unit=_course(key).unit, lines=lines[key]) for key in chosen]
    if not leading and not courses:
        return None
    return CellCourses(
        courses=(*leading, *courses),
        leading=len(leading),
        left=len(first) + len(rest) - len(chosen),
        events={kind: seconds for kind in EVENTS if (seconds := _events(runs, kind))},
    )


def _course(key: _Key) -> Course:
    return COURSES[key[0]]


def _title(key: _Key) -> str:
    """bytes read from disks and written to them (data)."""
    title = _course(key).title
    return f"{title} ({key[1]})" if key[1] else title


@dataclass(frozen=True, slots=True, kw_only=True)
class _Courses:
    """One run: its throughput, and its series that are not empty by name and subject."""

    throughput: float | None
    series: Mapping[_Key, Series]

    @staticmethod
    def of(run: RunRecord) -> _Courses:
        found = {(each.metric, each.subject): each for each in run.series if each.times}
        return _Courses(throughput=run.value(TPS.name), series=found)


_Runs = Mapping[str, Sequence[_Courses]]
"""Runs by environment."""


def _events(runs: _Runs, kind: str) -> Mapping[str, tuple[float, ...]]:
    """When an event happened, by environment; in long runs the beginnings of the steps in which it did."""
    times = {
        name: [time for run in each if (kind, "") in run.series for time in run.series[kind, ""].times]
        for name, each in runs.items()
    }
    width = _width(time for each in times.values() for time in each)
    return {name: tuple(sorted({time // width * width for time in each})) for name, each in times.items() if each}


def _width(times: Iterable[float]) -> int:
    """Whole seconds of a step, so that there are not more than can be drawn."""
    return max(1, math.ceil(max(times, default=0.0) / _MOST_POINTS))


def _timelines(runs: _Runs, key: _Key) -> tuple[Timeline, ...]:
    """The median course of each environment that has it, all in steps of the same whole number of seconds."""
    found = {name: [run.series[key] for run in each if key in run.series] for name, each in runs.items()}
    width = _width(time for each in found.values() for series in each for time in series.times)
    made = (_timeline(name, each, width) for name, each in found.items() if each)
    return tuple(line for line in made if len(line.times) > 1)


def _timeline(environment: str, runs: Sequence[Series], width: int) -> Timeline:
    """Medians over the runs that have a value for a step, where at least half of them do."""
    steps = 1 + max(int(max(series.times) // width) for series in runs)
    values = np.full((len(runs), steps), np.nan)
    for row, series in enumerate(runs):
        values[row] = _in_steps(series, width, steps)
    there = np.isfinite(values).sum(axis=0)
    often = np.flatnonzero(2 * there >= max(1, len(runs)))
    kept = [int(step) for step in often if there[step]]
    return Timeline(
        environment=environment,
        runs=len(runs),
        times=tuple((step + 0.5) * width for step in kept),
        values=tuple(float(np.nanmedian(values[:, step])) for step in kept),
    )


def _in_steps(series: Series, width: int, steps: int) -> FloatArray:
    """Means of a run's values by step, NaN where there is none. A value stands for the second that ends at its time."""
    values = np.array(series.values, dtype=np.float64)
    places = np.clip((np.array(series.times) - 0.5) // width, 0, steps - 1).astype(np.int64)
    good = np.isfinite(values)
    total = np.bincount(places[good], values[good], minlength=steps)
    number = np.bincount(places[good], minlength=steps)
    return np.asarray(np.divide(total, number, out=np.full(steps, np.nan), where=number > 0), dtype=np.float64)


def _tells(key: _Key, lines: Mapping[_Key, Sequence[Timeline]]) -> bool:
    """Whether it is large enough to be looked at, and nothing that stands there already."""
    metric, subject = key
    if metric in _NEVER or max(map(_level, lines[key])) < _WORTH[_course(key).unit]:
        return False
    whole = lines.get((metric, ""), ()) if subject else ()
    levels = {line.environment: _level(line) for line in whole}
    return not levels or any(
        abs(_level(line) - levels.get(line.environment, 0.0)) > _SAME * _level(line) for line in lines[key]
    )


def _level(line: Timeline) -> float:
    return float(np.mean(np.abs(line.values)))


def _motion(line: Timeline) -> float:
    """The standard deviation of a course over its seconds, relative to its mean."""
    mean = _level(line)
    return float(np.std(line.values)) / mean if mean > 0 else 0.0


def _apart(runs: _Runs, key: _Key, baseline: str) -> float:
    """How far an environment's level is from the baseline's at most, relative to the larger; 0 where unclear."""
    levels = {name: _levels(found, key) for name, found in runs.items()}
    base = levels.pop(baseline)
    return max((_difference(own, base) for own in levels.values()), default=0.0)


def _levels(runs: Sequence[_Courses], key: _Key) -> FloatArray:
    """The mean of each run, of rates per transaction."""
    found = []
    for run in runs:
        if key not in run.series or not np.isfinite(run.series[key].values).any():
            continue
        level = float(np.nanmean(run.series[key].values))
        if _course(key).unit not in _RATES:
            found.append(level)
        elif run.throughput:
            found.append(level / run.throughput)
    return np.array(found)


def _difference(own: FloatArray, base: FloatArray) -> float:
    if len(own) < 2 or len(base) < 2:  # noqa: PLR2004 - of a single one nobody knows how it scatters
        return 0.0
    difference = abs(float(own.mean() - base.mean()))
    error = math.sqrt(own.var(ddof=1) / len(own) + base.var(ddof=1) / len(base))
    larger = max(abs(float(own.mean())), abs(float(base.mean())))
    return difference / larger if difference > max(_CLEAR * error, _LEAST * larger) else 0.0
