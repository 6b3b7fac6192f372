"""Which courses of host and server are told, and what their lines show."""

from dataclasses import replace

import pytest

from courses import SECONDS, find_in, lay_courses
from pgstrata.model.metrics import Series
from pgstrata.model.runs import Validity


def test_what_differs_comes_first_and_what_moves_after_it(desk):
    baseline = desk.answer().study.plan.experiment.baseline
    found = find_in(
        lay_courses(
            desk,
            {
                "context_switches": lambda name, at: 5e4,
                "host_user_cpu": lambda name, at: 1.0 if name == baseline else 1.6,
                "disk_throughput@data": lambda name, at: 4e6 * (1 + (at % 10 == 0)),
                "autovacuum_cpu": lambda name, at: 0.0 if name == baseline else 1e-4,
            },
        )
    )
    titles = [panel.title for panel in found.courses if panel.title != "throughput"]
    assert titles[0] == "CPU of all programs"
    assert "bytes read from disks and written to them (data)" in titles
    # what hardly exists is not worth a panel, however different it is
    assert "CPU of autovacuum" not in titles
    assert found.left == 0


def test_one_disk_is_shown_apart_where_it_did_something_else_than_all(desk):
    def titles(part):
        found = find_in(
            lay_courses(
                desk,
                {
                    "disk_queue": lambda name, at: 2.0 * (1 + (at > 15)),
                    "disk_queue@data": lambda name, at: part * 2 * (1 + (at > 15)),
                },
            )
        )
        return [panel.title for panel in found.courses if "queues" in panel.title]

    assert titles(1.0) == ["requests in the disks' queues"]
    assert len(titles(0.5)) == 2


def test_rates_that_come_with_throughput_are_no_difference(desk):
    answer = desk.answer()
    rates = {run.environment: run.value("tps") for run in answer.study.runs}
    assert max(rates.values()) > 0
    found = find_in(
        lay_courses(
            desk,
            {
                "page_faults": lambda name, at: 10 * rates[name],
                "wal_bytes": lambda name, at: 1e6 * (1 + (at > 15)),
            },
        )
    )
    assert "page faults" not in [panel.title for panel in found.courses]


def test_a_line_is_the_median_over_the_runs_that_may_enter(desk):
    answer = lay_courses(desk, {"host_user_cpu": lambda name, at: at})
    spoilt = tuple(
        replace(
            run, validity=Validity.INVALID, series=(Series(metric="host_user_cpu", times=SECONDS, values=(99.0,) * 30),)
        )
        if run.block == 1
        else run
        for run in answer.study.runs
    )
    found = find_in(replace(answer, study=replace(answer.study, runs=spoilt)))
    (panel,) = [panel for panel in found.courses if panel.title == "CPU of all programs"]
    for line in panel.lines:
        assert line.times == tuple(second - 0.5 for second in SECONDS)
        assert line.values == pytest.approx(SECONDS, rel=0.05)


def test_stretches_of_which_nothing_is_known_are_left_out(desk):
    found = find_in(lay_courses(desk, {"host_user_cpu": lambda name, at: float("nan") if at < 10 else at}))
    (panel,) = [panel for panel in found.courses if panel.title == "CPU of all programs"]
    assert all(min(line.times) == 9.5 for line in panel.lines)


def test_courses_that_say_nothing_are_not_drawn(desk):
    found = find_in(
        lay_courses(desk, {"context_switches": lambda name, at: 5e4, "autovacuum_cpu": lambda name, at: 0.0})
    )
    assert [panel.title for panel in found.courses] == ["throughput"]
