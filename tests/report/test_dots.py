"""Charts of single values in two widths: nothing is cut, covered or outside, and each environment has its look."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from drawn import boxes, drawings, lengthen, texts
from pgstrata.report.figures.percentiles import draw_quantiles
from pgstrata.report.figures.runs import draw_by_block
from pgstrata.report.figures.scales import exact_number, signed_number
from pgstrata.report.sentences.names import name_environment
from rendering import render_html

CELL = "simple-update-s10-c2"


def both_widths(figure):
    found = drawings(figure.svg)
    assert [root.get("class") for root in found] == ["wide", "narrow"]
    return found


def by_block(desk):
    return draw_by_block(lengthen(desk.answer(blocks=60, effects=(1.0, 0.95, 9.0, 1.0))), CELL, "x")


def by_percentile(desk):
    shifts = tuple(
        desk.shift(percent, environment=name)
        for name in ("pg18", "pg18-async")
        for percent in (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)
    )
    return draw_quantiles(replace(lengthen(desk.answer(blocks=2)), shifts=shifts), CELL, "x")


@pytest.mark.parametrize("draw", [by_block, by_percentile])
def test_no_text_covers_another_and_none_leaves_the_drawing(desk, draw):
    for root in both_widths(draw(desk)):
        width, height = map(float, root.get("viewBox").split()[2:])
        found = boxes(root)
        assert all(box.left >= -1 and box.left + box.width <= width + 6 for box in found)
        assert all(box.top >= -1 and box.top + box.height <= height + 1 for box in found)
        assert not [(one, other) for at, one in enumerate(found) for other in found[:at] if one.overlaps(other)]


def test_every_usable_run_has_its_mark_and_those_of_a_block_are_joined(desk):
    figure = draw_by_block(desk.answer(blocks=9, effects=(1.0, 0.99, 1.01, 1.0)), CELL, "x")
    for root in both_widths(figure):
        marks = [path.get("d").count("M") for path in root.iter("path") if path.get("fill")]
        # four environments, and each of them once more in the legend
        assert sorted(marks) in ([1, 1, 1, 1, 8, 9, 9, 9], [1, 1, 1, 1, 9, 9, 9, 9])
        (chains,) = [path for path in root.iter("path") if path.get("stroke-width") == ".8"]
        assert chains.get("d").count("M") == 9


def test_the_names_of_all_environments_are_whole_below_a_chart(desk):
    experiment = lengthen(desk.answer(blocks=1)).study.plan.experiment
    for root in both_widths(by_block(desk)):
        said = "".join(texts(root))
        assert all(name_environment(each, experiment) in said for each in experiment.environments)


def test_intervals_of_percentiles_are_drawn_for_each_environment(desk):
    for root in both_widths(by_percentile(desk)):
        spans = [path.get("d").count("V") for path in root.iter("path") if path.get("stroke-width") == "1.6"]
        assert spans == [11, 11]
        titles = [each.text for each in root.iter("text") if each.get("font-weight")]
        assert titles == ["latency, ms, log", "difference, %"]


def test_latency_itself_is_drawn_of_the_baseline_too(desk):
    for root in both_widths(by_percentile(desk)):
        marks = [path.get("d").count("M") for path in root.iter("path") if path.get("fill")]
        # three environments by their values, two by their differences, three in the legend
        assert sorted(marks) == [1, 1, 1, 11, 11, 11, 11, 11]


@pytest.mark.parametrize(
    ("value", "text"),
    [(12_450, "12.45k"), (3_125, "3.125k"), (950, "950"), (0.30000000000000004, "0.3"), (1.25e6, "1.25M"), (0, "0")],
)
def test_a_number_of_an_axis_that_covers_little_keeps_its_digits(value, text):
    assert exact_number(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (-0.001, "0"), (5, "+5"), (-2.5, "-2.5"), (1250, "+1,250"), (54321.4, "+54,321")]
)
def test_a_difference_on_an_axis_has_its_sign(value, text):
    assert signed_number(value) == text


def test_every_chart_of_a_report_has_a_drawing_that_a_phone_shows_whole():
    """A phone of 390 px has 337 px for a chart; `.plot` and `.panel` shrink to any width."""
    import forged_pages

    for page in (forged_pages.rich_page(long=True), forged_pages.decision_page(), forged_pages.runs_page()):
        charts = re.findall(r'<div class="chart" role="img" aria-label="[^"]*">(.*?)</div>', page, flags=re.DOTALL)
        assert charts
        for chart in charts:
            heads = re.findall(r"<svg\b[^>]*>", chart)
            looks = [re.search(r'class="([a-z ]+)"', head)[1] for head in heads]
            assert looks == ["wide", "narrow"] or not {*looks} - {"plot", "plot legend", "panel"}, looks
            for head, look in zip(heads, looks, strict=True):
                least = re.search(r"min-width:(\d+)px", head)
                assert look == "wide" or least is None or int(least[1]) <= 337, head


def test_what_is_hidden_in_one_width_is_shown_in_the_other(desk):
    page = render_html(desk.answer(blocks=2))
    wide, narrow = (len(re.findall(f'<svg [^>]*class="{look}"', page)) for look in ("wide", "narrow"))
    assert wide == narrow > 0
