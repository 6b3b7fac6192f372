"""Which courses of host and server are drawn, and what their lines show."""

from dataclasses import replace

import numpy as np
import pytest

from pgstrata.model.metrics import Series
from pgstrata.model.runs import Validity
from pgstrata.report.figures.meanwhile import find_meanwhile
from rendering import render_html

SECONDS = tuple(float(second) for second in range(1, 31))


def lay(desk, courses, *, seed=1):
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


def names(answer):
    return [item.name for item in answer.study.plan.experiment.environments]


def found_in(answer):
    return find_meanwhile(answer.study, answer.study.plan.experiment.cells[0].identity)


def test_what_differs_comes_first_and_what_moves_after_it(desk):
    baseline = desk.answer().study.plan.experiment.baseline
    found = found_in(
        lay(
            desk,
            {
                "context_switches": lambda name, at: 5e4,
                "host_user_cpu": lambda name, at: 1.0 if name == baseline else 1.6,
                "disk_throughput@data": lambda name, at: 4e6 * (1 + (at % 10 == 0)),
                "autovacuum_cpu": lambda name, at: 0.0 if name == baseline else 1e-4,
            },
        )
    )
    titles = [panel.title for panel in found.panels if panel.title != "throughput"]
    assert titles[0] == "CPU of all programs"
    assert "bytes read from disks and written to them (data)" in titles
    # what hardly exists is not worth a panel, however different it is
    assert "CPU of autovacuum" not in titles
    assert found.left == 0


def test_of_many_courses_that_differ_some_are_drawn_and_it_says_how_many_are_not(desk):
    baseline = desk.answer().study.plan.experiment.baseline
    disks = {f"disk_queue@{number}": 1 + number / 10 for number in range(1, 12)}
    answer = lay(
        desk, {name: lambda own, at, more=more: 2.0 + more * (own != baseline) for name, more in disks.items()}
    )
    found = found_in(answer)
    assert found.left == len(disks) - sum("queues" in panel.title for panel in found.panels) > 0
    assert f"; {found.left} more that differ or move are not drawn" in render_html(answer)


def test_one_disk_is_shown_apart_where_it_did_something_else_than_all(desk):
    def titles(part):
        found = found_in(
            lay(
                desk,
                {
                    "disk_queue": lambda name, at: 2.0 * (1 + (at > 15)),
                    "disk_queue@data": lambda name, at: part * 2 * (1 + (at > 15)),
                },
            )
        )
        return [panel.title for panel in found.panels if "queues" in panel.title]

    assert titles(1.0) == ["requests in the disks' queues"]
    assert len(titles(0.5)) == 2


def test_rates_that_come_with_throughput_are_no_difference(desk):
    answer = desk.answer()
    rates = {run.environment: run.value("tps") for run in answer.study.runs}
    assert max(rates.values()) > 0
    found = found_in(
        lay(
            desk,
            {
                "page_faults": lambda name, at: 10 * rates[name],
                "wal_bytes": lambda name, at: 1e6 * (1 + (at > 15)),
            },
        )
    )
    assert "page faults" not in [panel.title for panel in found.panels]


def test_a_line_is_the_median_over_the_runs_that_may_enter(desk):
    answer = lay(desk, {"host_user_cpu": lambda name, at: at})
    spoilt = tuple(
        replace(
            run, validity=Validity.INVALID, series=(Series(metric="host_user_cpu", times=SECONDS, values=(99.0,) * 30),)
        )
        if run.block == 1
        else run
        for run in answer.study.runs
    )
    found = found_in(replace(answer, study=replace(answer.study, runs=spoilt)))
    (panel,) = [panel for panel in found.panels if panel.title == "CPU of all programs"]
    for line in panel.lines:
        assert line.times == tuple(second - 0.5 for second in SECONDS)
        assert line.values == pytest.approx(SECONDS, rel=0.05)


def test_stretches_of_which_nothing_is_known_are_left_out(desk):
    found = found_in(lay(desk, {"host_user_cpu": lambda name, at: float("nan") if at < 10 else at}))
    (panel,) = [panel for panel in found.panels if panel.title == "CPU of all programs"]
    assert all(min(line.times) == 9.5 for line in panel.lines)


def test_courses_that_say_nothing_are_not_drawn(desk):
    assert (
        found_in(lay(desk, {"context_switches": lambda name, at: 5e4, "autovacuum_cpu": lambda name, at: 0.0})) is None
    )


def test_a_study_without_courses_has_no_such_part(desk):
    answer = desk.answer()
    runs = tuple(replace(run, series=()) for run in answer.study.runs)
    answer = replace(answer, study=replace(answer.study, runs=runs))
    assert found_in(answer) is None
    assert "host and server did meanwhile" not in render_html(answer)


def test_courses_and_checkpoints_are_drawn(desk):
    answer = lay(desk, {"host_user_cpu": lambda name, at: at})
    event = Series(metric="checkpoint_starts", times=(3.0,), values=(1.0,))
    runs = tuple(replace(run, series=(*run.series, event)) for run in answer.study.runs)
    answer = replace(answer, study=replace(answer.study, runs=runs))
    assert all(seconds == (3.0,) for seconds in found_in(answer).checkpoints.values())
    page = render_html(answer)
    assert "What host and server did meanwhile" in page
    assert "CPU of all programs" in page
