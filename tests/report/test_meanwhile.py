"""The chart of what host and server did meanwhile."""

from dataclasses import replace

from courses import find_in, lay_courses
from pgstrata.model.courses import EVENTS
from pgstrata.model.metrics import Series
from pgstrata.report.figures.meanwhile import draw_meanwhile
from pgstrata.report.sentences.events import EVENT_WORDS
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


def with_series(answer, *series):
    runs = tuple(replace(run, series=(*run.series, *series)) for run in answer.study.runs)
    return replace(answer, study=replace(answer.study, runs=runs))


def test_percentiles_of_latency_stand_behind_throughput_and_before_the_courses(desk):
    answer = lay_courses(
        desk, {name: lambda own, at: 0.1 * at for name in ("latency_p95", "latency_p50", "host_user_cpu")}
    )
    found = find_in(answer)
    titles = [panel.title for panel in found.courses]
    assert titles == ["throughput", "median latency", "p95 latency", "CPU of all programs"]
    assert found.leading == 3


def test_latencies_are_drawn_in_milliseconds(desk):
    svg = draw_meanwhile(lay_courses(desk, {"latency_p95": lambda own, at: 0.0025}), "simple-update-s10-c2", "x").svg
    assert ">ms<" in svg
    assert ">2.5<" in svg or ">2<" in svg


def test_throughput_is_drawn_by_the_second_also_where_no_course_tells_anything(desk):
    found = find_in(desk.answer())
    assert ([panel.title for panel in found.courses], found.leading, found.left) == (["throughput"], 1, 0)


def test_every_kind_of_log_event_is_marked_by_environment_and_named(desk):
    kinds = {kind: Series(metric=kind, times=(2.0, 5.0), values=(1.0, 3.0)) for kind in EVENTS}
    answer = with_series(desk.answer(blocks=2), *kinds.values())
    found = find_in(answer)
    names = {each.name for each in answer.study.plan.experiment.environments}
    assert found.events.keys() == EVENTS.keys()
    assert all(set(seconds) == names and set(seconds.values()) == {(2.0, 5.0)} for seconds in found.events.values())
    page = render_html(answer)
    assert set(EVENT_WORDS) == set(EVENTS)
    assert all(f">{word}<" in page for word in EVENT_WORDS.values())


def test_events_of_very_long_runs_are_marked_by_steps(desk):
    many = Series(metric="errors", times=tuple(float(second) for second in range(36_000)), values=(1.0,) * 36_000)
    found = find_in(with_series(desk.answer(blocks=1), many))
    assert all(len(seconds) <= 120 and seconds[0] == 0.0 for seconds in found.events["errors"].values())


def test_courses_and_checkpoints_are_drawn(desk):
    answer = lay_courses(desk, {"host_user_cpu": lambda name, at: at})
    event = Series(metric="checkpoint_starts", times=(3.0,), values=(1.0,))
    runs = tuple(replace(run, series=(*run.series, event)) for run in answer.study.runs)
    answer = replace(answer, study=replace(answer.study, runs=runs))
    assert all(seconds == (3.0,) for seconds in find_in(answer).events["checkpoint_starts"].values())
    page = render_html(answer)
    assert ">checkpoint began<" in page
    assert "What host and server did meanwhile" in page
    assert "CPU of all programs" in page
