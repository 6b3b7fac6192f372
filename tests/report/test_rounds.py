"""Charts and sentences of cells in slices: rounds over the visits, and within a visit."""

from __future__ import annotations

import dataclasses
import re
import xml.etree.ElementTree as ET

import pytest

from drawn import texts
from pgstrata.compare.rounds import find_rounds
from pgstrata.model.courses import EVENTS
from pgstrata.model.metrics import Measurement, Series
from pgstrata.model.runs import Validity
from pgstrata.report.answer.turns import turn_section
from pgstrata.report.blocks.model import Details, Paragraph
from pgstrata.report.figures.labels import text_box
from pgstrata.report.figures.round_profiles import draw_within
from pgstrata.report.figures.round_rows import MOST_ENVIRONMENTS, draw_line
from pgstrata.report.figures.rounds import draw_visits
from pgstrata.report.sentences.events import EVENT_WORDS
from pgstrata.report.sentences.rounds import say_rounds
from rendering import render_html

CELL = "simple-update-s10-c2"


def change_runs(answer, change):
    study = answer.study
    return dataclasses.replace(answer, study=dataclasses.replace(study, runs=tuple(map(change, study.runs))))


def rounds_of(answer):
    return find_rounds(answer.study, CELL)


def draw(answer, bins=8):
    experiment = answer.study.plan.experiment
    found = rounds_of(answer)
    return draw_visits(found, experiment, bins=bins, said="x"), draw_within(found, experiment, said="x")


@pytest.fixture
def sliced(desk):
    return desk.slices(desk.answer(blocks=9))


def test_each_environment_has_a_row_with_its_name_and_its_median(sliced):
    visits, within = draw(sliced)
    names = ["16", "18", "18 (commit_delay = 100)", "16 a second time"]
    for figure in (visits, within):
        found = texts(ET.fromstring(figure.svg))
        assert [each for each in found if each in names] == names
    assert "block" in texts(ET.fromstring(visits.svg))
    assert {"1", "9"} <= set(texts(ET.fromstring(visits.svg)))
    assert {"1", "15", "round"} <= set(texts(ET.fromstring(within.svg)))
    assert re.match(r"All visits in order: each row covers -\d+\.\d % to \+\d+\.\d % around its median$", visits.title)
    assert within.title.startswith("Within a visit: median of 9 visits, with a band that contains half of them;")


@pytest.mark.parametrize("count", [2, 8, 12, 20])
def test_no_text_covers_another_and_none_leaves_the_chart(desk, count):
    environments = tuple(
        desk.environment(f"e{place}", (("server", str(place)), ("settings.work_mem", f"{place} MB of a long name")))
        for place in range(10, 10 + count)
    )
    answer = mark_all(desk.slices(desk.answer(environments=environments, blocks=30, seconds=2)))
    for figure in draw(answer):
        root = ET.fromstring(figure.svg)
        width = float(root.get("viewBox").split()[2])
        found = [place_box(element) for element in root.iter("text")]
        assert all(box.left >= -1 and box.left + box.width <= width + 1 for box in found)
        clashes = [(one, other) for at, one in enumerate(found) for other in found[:at] if one.overlaps(other)]
        assert clashes == []


def place_box(element):
    x, y = float(element.get("x")), float(element.get("y")) - 4
    return text_box(element.text, x, y, anchor=element.get("text-anchor", "start"))


def mark_all(answer):
    """With everything that a chart can mark."""
    events = tuple(Series(metric=kind, times=(1.0, 2.0), values=(1.0, 1.0)) for kind in EVENTS)

    def change(run):
        validity = {1: Validity.INVALID, 2: Validity.SUSPECT}.get(run.block, Validity.VALID)
        load = Measurement(metric="neighbour_share", value=0.01 * run.block)
        return dataclasses.replace(
            run, validity=validity, series=(*run.series, *events), measurements=(*run.measurements, load)
        )

    return change_runs(answer, change)


def test_marks_are_explained_where_they_occur_and_only_there(sliced):
    plain, marked = (set(texts(ET.fromstring(draw(answer)[0].svg))) for answer in (clean(sliced), mark_all(sliced)))
    words = {*EVENT_WORDS.values(), "excluded run", "suspect run"}
    assert words <= marked
    assert not words & plain
    assert "CPU used by other processes (at most 9 %)" in marked


def clean(answer):
    return change_runs(answer, lambda run: dataclasses.replace(run, validity=Validity.VALID))


def test_an_excluded_run_is_dashed_and_crossed(sliced):
    def spoil(run):
        bad = run.block == 3 and run.environment == "pg18"
        return dataclasses.replace(run, validity=Validity.INVALID if bad else Validity.VALID)

    figure, _ = draw(change_runs(sliced, spoil))
    assert figure.svg.count('stroke-dasharray="2 2"') == 1
    assert "m-2.5,-2.5l5,5m0,-5l-5,5" in figure.svg


def test_a_round_far_off_is_a_diamond_within_its_row(sliced):
    def slow(run):
        series = run.series[0]
        if (run.block, run.environment) != (4, "pg18"):
            return run
        values = (*series.values[:5], series.values[5] / 20, *series.values[6:])
        return dataclasses.replace(run, series=(dataclasses.replace(series, values=values),))

    answer = change_runs(clean(sliced), slow)
    (far,) = rounds_of(answer).far
    assert far.environment == "pg18"
    figure, _ = draw(answer)
    assert "outlying round" in texts(ET.fromstring(figure.svg))
    said = say_rounds(rounds_of(answer), answer.study.plan.experiment)
    assert "1 round is an outlier in one environment alone: 18 (1)" in said


def test_of_many_rounds_so_many_points_are_drawn_as_were_asked_for(desk):
    answer = clean(desk.slices(desk.answer(blocks=3), rounds=100))
    sizes = [len(draw(answer, bins)[0].svg) for bins in (2, 10, 100)]
    assert sizes == sorted(sizes)
    figure = draw(answer, 2)[0]
    (line,) = re.findall(r'<path d="([^"]*)" stroke="#0072b2" stroke-width="1.4"/>', figure.svg)
    assert line.count("M") == 3
    assert line.count("l") == 3


def test_lines_do_not_drift_away_by_rounding():
    points = [(0.04 * place, 0.06 * place) for place in range(1000)]
    steps = re.findall(r"l(-?[\d.]+),(-?[\d.]+)", draw_line(points))
    assert sum(float(x) for x, _ in steps) == pytest.approx(points[-1][0], abs=0.1)
    assert sum(float(y) for _, y in steps) == pytest.approx(points[-1][1], abs=0.1)
    assert draw_line([]) == ""
    assert draw_line([(1, 2)]) == "M0.0,2.0h2"


def test_of_very_many_environments_twelve_are_drawn_and_it_is_said(desk):
    environments = tuple(desk.environment(f"pg{number}", (("server", str(number)),)) for number in range(10, 30))
    answer = desk.slices(desk.answer(environments=environments, blocks=2, seconds=2))
    for figure in draw(answer):
        assert figure.title.endswith(f"; {MOST_ENVIRONMENTS} of 20 environments")


def test_the_first_sentence_says_how_visits_differ(desk):
    answer = clean(desk.slices(desk.answer(blocks=9)))

    def said(factor):
        moved = change_runs(
            answer,
            lambda run: dataclasses.replace(
                run,
                series=tuple(
                    dataclasses.replace(each, values=tuple(value * factor(run) for value in each.values))
                    for each in run.series
                ),
            ),
        )
        return say_rounds(rounds_of(moved), moved.study.plan.experiment)

    falling = said(lambda run: 0.9**run.block)
    assert re.fullmatch(
        r"Throughput differs by \d+ % between the slowest and the fastest of 9 visits and falls over time, "
        r"in all environments alike",
        falling[0],
    ), falling
    alone = said(lambda run: 0.5 if (run.block, run.environment) == (4, "pg18") else 1.0)
    assert "one environment departs from the others by up to" in alone[0]


def test_how_a_visit_begins_is_said_where_it_is_clear(sliced):
    def slow(run):
        values = tuple(value * (0.8 if place == 0 else 1) for place, value in enumerate(run.series[0].values))
        return dataclasses.replace(run, series=(dataclasses.replace(run.series[0], values=values),))

    answer = change_runs(change_runs(clean(sliced), flatten), slow)
    said = say_rounds(rounds_of(answer), answer.study.plan.experiment)
    assert any(each.startswith("The first round of a visit differs from the rest: ") for each in said), said
    assert any("(4 environments in all)" in each for each in said)


def flatten(run):
    """All rounds alike but for a little of their own."""
    values = tuple(1000 * (1 + 0.001 * ((7 * place + run.block) % 5)) for place in range(16))
    return dataclasses.replace(run, series=(dataclasses.replace(run.series[0], values=values),))


def test_the_section_has_words_charts_and_some_visits_in_detail_for_each_cell(sliced):
    section = turn_section(sliced)
    details = [block for block in section.blocks if isinstance(block, Details)]
    assert [each.title for each in details] == [
        "simple-update, scale 10, 2 clients", "select-only, scale 10, 2 clients"
    ]  # fmt: skip
    for each in details:
        said, charts, detail = each.blocks
        assert isinstance(said, Paragraph)
        assert charts.parallel
        assert len(charts.blocks) == 2
        assert detail.title == "Some visits, slice by slice"


def test_a_study_run_by_run_has_no_such_section(desk):
    assert turn_section(desk.answer(blocks=2)) is None


def test_of_a_very_large_study_some_cells_are_drawn_in_a_bounded_space(desk):
    environments = tuple(desk.environment(f"pg{number}", (("server", str(number)),)) for number in range(7, 19))
    cells = tuple(desk.cell(clients) for clients in range(1, 41))
    section = turn_section(desk.slices(desk.answer(environments=environments, cells=cells, blocks=20, seconds=2)))
    drawn = [block for block in section.blocks if isinstance(block, Details)]
    assert 0 < len(drawn) < len(cells)
    assert f"Only {len(drawn)} of 40 cells are drawn." in section.blocks[0].text
    sizes = [len(figure.blocks[0].svg) for each in drawn for figure in each.blocks[1].blocks]
    assert sum(sizes) < 1_200_000


def test_names_from_outside_are_escaped(desk):
    environments = (
        desk.environment("pg16", (("server", "16"),)),
        desk.environment("b", (("server", "<script>x</script>"),)),
    )
    page = render_html(desk.slices(desk.answer(environments=environments, blocks=2)))
    assert "<script" not in page
