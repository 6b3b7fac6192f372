"""The chart of what host and server did meanwhile."""

from dataclasses import replace

from courses import find_in, lay_courses
from pgstrata.model.metrics import Series
from rendering import render_html


def test_of_many_courses_that_differ_some_are_drawn_and_it_says_how_many_are_not(desk):
    baseline = desk.answer().study.plan.experiment.baseline
    disks = {f"disk_queue@{number}": 1 + number / 10 for number in range(1, 12)}
    answer = lay_courses(
        desk, {name: lambda own, at, more=more: 2.0 + more * (own != baseline) for name, more in disks.items()}
    )
    found = find_in(answer)
    assert found.left == len(disks) - sum("queues" in panel.title for panel in found.courses) > 0
    assert f"; {found.left} more that differ or move are not drawn" in render_html(answer)


def test_a_study_without_courses_has_no_such_part(desk):
    answer = desk.answer()
    runs = tuple(replace(run, series=()) for run in answer.study.runs)
    answer = replace(answer, study=replace(answer.study, runs=runs))
    assert find_in(answer) is None
    assert "host and server did meanwhile" not in render_html(answer)


def test_courses_and_checkpoints_are_drawn(desk):
    answer = lay_courses(desk, {"host_user_cpu": lambda name, at: at})
    event = Series(metric="checkpoint_starts", times=(3.0,), values=(1.0,))
    runs = tuple(replace(run, series=(*run.series, event)) for run in answer.study.runs)
    answer = replace(answer, study=replace(answer.study, runs=runs))
    assert all(seconds == (3.0,) for seconds in find_in(answer).checkpoints.values())
    page = render_html(answer)
    assert "What host and server did meanwhile" in page
    assert "CPU of all programs" in page
