"""Panels by second, as wide as a phone: nothing is cut, covered or outside, and each environment has its look."""

from __future__ import annotations

from dataclasses import replace

import pytest

from courses import lay_courses
from drawn import boxes, drawings, lengthen, texts
from pgstrata.model.courses import EVENTS
from pgstrata.model.metrics import Series
from pgstrata.report.figures.meanwhile import draw_meanwhile
from pgstrata.report.figures.over_time import draw_over_time, draw_rounds
from pgstrata.report.figures.run_lines import break_label
from pgstrata.report.figures.scales import short_number
from pgstrata.report.sentences.names import name_environment

CELL = "simple-update-s10-c2"


def with_events(answer):
    kinds = tuple(Series(metric=kind, times=(2.0, 5.0), values=(1.0, 3.0)) for kind in EVENTS)
    runs = tuple(replace(run, series=(*run.series, *kinds)) for run in answer.study.runs)
    return replace(answer, study=replace(answer.study, runs=runs))


def by_second(desk):
    courses = {"host_user_cpu": lambda own, at: at, "disk_queue@nvme0n1": lambda own, at: 2 + 3 * (own == "pg18")}
    return draw_meanwhile(with_events(lengthen(lay_courses(desk, courses))), CELL, "x")


def by_run(desk):
    return draw_over_time(lengthen(desk.answer(blocks=2)), CELL, "x")


def by_slice(desk):
    return draw_rounds(lengthen(desk.slices(desk.answer(blocks=9))), CELL, "x")


@pytest.mark.parametrize("draw", [by_second, by_run, by_slice])
def test_no_text_of_a_panel_covers_another_and_none_leaves_it(desk, draw):
    for root in drawings(draw(desk).svg):
        width, height = map(float, root.get("viewBox").split()[2:])
        found = boxes(root)
        assert all(box.left >= -1 and box.left + box.width <= width + 6 for box in found)
        assert all(box.top >= -1 and box.top + box.height <= height + 1 for box in found)
        assert not [(one, other) for at, one in enumerate(found) for other in found[:at] if one.overlaps(other)]


@pytest.mark.parametrize("draw", [by_second, by_run, by_slice])
def test_names_that_are_longer_than_a_line_are_whole(desk, draw):
    experiment = lengthen(desk.answer(blocks=1)).study.plan.experiment
    said = "".join(text for root in drawings(draw(desk).svg) for text in texts(root))
    assert all(name_environment(each, experiment) in said for each in experiment.environments)


def test_each_environment_has_a_panel_of_its_runs_and_the_same_colour_as_in_the_others(desk):
    panels = drawings(by_run(desk).svg)
    colours = [{path.get("stroke") for path in root.iter("path")} - {"currentColor"} for root in panels]
    assert [len(found) for found in colours] == [1, 1, 1, 1]
    legend = drawings(by_slice(desk).svg)[-1]
    assert legend.get("class") == "plot legend"
    assert [path.get("stroke") for path in legend.iter("path") if path.get("stroke")] == [
        found.pop() for found in colours
    ]


def test_events_of_each_kind_stand_in_the_panel_of_throughput_and_below_all_what_they_are(desk):
    first, *_, legend = drawings(by_second(desk).svg)
    filled = [path for path in first.iter("path") if path.get("fill")]
    assert len(filled) == len(EVENTS) * 4
    assert len([path for path in legend.iter("path") if path.get("fill")]) == len(EVENTS)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("18 (options.extra_work = 1000)", ["18 (options.", "extra_work = ", "1000)"]),
        ("/opt/builds/one-of-ours", ["/opt/builds/", "one-of-ours"]),
        ("abcdefghijklmnopqrstu", ["abcdefghijkl", "mnopqrstu"]),
        ("16.2", ["16.2"]),
        ("", [""]),
    ],
)
def test_a_label_is_broken_between_words_and_parts_of_names(text, lines):
    assert break_label(text, 12).split("\n") == lines


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.00002, "0.00002"),
        (0.25, "0.25"),
        (999.7, "1k"),
        (12_500, "12.5k"),
        (999_999, "1M"),
        (-1500, "-1.5k"),
    ],
)
def test_numbers_of_an_axis_are_short_and_have_no_exponent(value, text):
    assert short_number(value) == text
