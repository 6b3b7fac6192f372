"""Answers whose runs have courses of host and server."""

from dataclasses import replace

import numpy as np

from pgstrata.compare.courses import find_courses
from pgstrata.model.metrics import Series

SECONDS = tuple(float(second) for second in range(1, 31))


def lay_courses(desk, courses, *, seed=1):
    """The answer of a desk whose runs have these courses: by name, a function of environment and second."""
    rng = np.random.default_rng(seed)
    answer = desk.answer()

    def series(run):
        return tuple(
            Series(
                metric=name.partition("@")[0],
                subject=name.partition("@")[2],
                times=SECONDS,
                values=tuple(value(run.environment, at) * rng.normal(1, 0.02) for at in SECONDS),
            )
            for name, value in courses.items()
        )

    runs = tuple(replace(run, series=(*run.series, *series(run))) for run in answer.study.runs)
    return replace(answer, study=replace(answer.study, runs=runs))


def find_in(answer):
    return find_courses(answer.study, answer.study.plan.experiment.cells[0].identity)
