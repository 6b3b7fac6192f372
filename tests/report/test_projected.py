"""Charts of projections: names that do not cover each other, marks, intervals, axes."""

from __future__ import annotations

import dataclasses
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.model.anomaly import Anomaly, AnomalyKind
from pgstrata.model.answer import AxisStep, Interval, OrderedAxis, Verdict
from pgstrata.model.metrics import Measurement
from pgstrata.model.reasons import DATA_EXCEED, Reason
from pgstrata.report.answer.document import make_document
from pgstrata.report.answer.matrix import values_matrix
from pgstrata.report.answer.projections import along_axes, make_bounds
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.figures.labels import LINE, part_labels, text_box, thin_out
from pgstrata.report.figures.looks import ALL_NAMED, MOST_NAMED, choose_looks, draw_marks
from pgstrata.report.figures.multiples import draw_multiples
from pgstrata.report.figures.projected import draw_projection
from pgstrata.report.figures.scales import change_scale, change_ticks, even_ticks, log_ticks
from pgstrata.report.figures.second_panels import colour_of, mark_of
from pgstrata.report.projections.design import find_projections
from pgstrata.report.projections.estimates import gather_figures


def versions(desk, count=4):
    return tuple(desk.environment(f"pg{number}", (("server", str(number)),)) for number in range(10, 10 + count))


def study(desk, count=4, effects=(1.0, 0.95, 1.08, 1.0), clients=(1, 4, 16), **more):
    answer = desk.answer(
        environments=versions(desk, count),
        cells=tuple(map(desk.cell, clients)),
        effects=effects,
        **{"blocks": 7, **more},
    )
    plan = answer.study.plan
    plan = dataclasses.replace(plan, experiment=dataclasses.replace(plan.experiment, factors=("server",)))
    return dataclasses.replace(answer, study=dataclasses.replace(answer.study, plan=plan))


def draw(answer, axis):
    (found,) = (each for each in find_projections(answer.study.plan.experiment) if each.axis == axis)
    return draw_projection(found, gather_figures(answer), make_bounds(answer))


def texts(figure):
    return [element.text for element in ET.fromstring(figure.svg).iter("text")]


def boxes(figure):
    """Of all texts that are not turned, by their own places."""
    return [
        text_box(
            element.text,
            float(element.get("x")),
            float(element.get("y")) - 4,
            anchor=element.get("text-anchor", "start"),
        )
        for element in ET.fromstring(figure.svg).iter("text")
        if element.get("transform") is None
    ]


@given(
    wanted=st.lists(st.floats(0, 200), min_size=1, max_size=14),
    room=st.floats(5, 200),
)
def test_labels_are_apart_and_inside_and_only_those_without_room_are_left_out(wanted, room):
    found = part_labels(wanted, 0, room)
    placed = sorted(at for at in found if at is not None)
    assert len(placed) == min(len(wanted), int(room / LINE) + 1)
    assert all(second - first >= LINE - 1e-6 for first, second in pairwise(placed))
    assert all(-1e-6 <= at <= room + 1e-6 for at in placed)


def test_labels_that_have_room_stand_where_they_want_and_keep_their_order():
    assert part_labels([10, 80, 40], 0, 100) == (10, 80, 40)
    low, high = part_labels([50.5, 50], 0, 100)
    assert (low + high) / 2 == pytest.approx(50.25)
    assert low > high


@given(places=st.lists(st.floats(0, 400), min_size=1, max_size=40, unique=True))
def test_texts_that_are_shown_along_an_axis_do_not_touch(places):
    places.sort()
    names = ["1024"] * len(places)
    kept = [
        text_box(name, x, 0, anchor="middle")
        for name, x, shown in zip(names, places, thin_out(names, places), strict=True)
        if shown
    ]
    assert kept
    assert not any(one.overlaps(other) for one, other in pairwise(kept))


@pytest.mark.parametrize("axis", ["server", "clients"])
@pytest.mark.parametrize("count", [3, 8, 13, 60])
def test_no_text_of_a_chart_covers_another(desk, axis, count):
    effects = tuple(1 + 0.003 * place for place in range(count))
    found = boxes(draw(study(desk, count, effects, blocks=2, seconds=2), axis))
    clashes = [(one, other) for place, one in enumerate(found) for other in found[:place] if one.overlaps(other)]
    assert clashes == []


def by_clients(answer):
    (found,) = (each for each in find_projections(answer.study.plan.experiment) if each.axis == "clients")
    return found, gather_figures(answer)


@pytest.mark.parametrize("count", [3, 8, ALL_NAMED])
def test_up_to_fourteen_environments_all_have_a_look_of_their_own_and_a_name(desk, count):
    answer = study(desk, count, blocks=2, seconds=2)
    looks = choose_looks(*by_clients(answer))
    assert len({(look.colour, look.mark % 8) for look in looks}) == count
    said = texts(draw(answer, "clients"))
    assert {str(number) for number in range(10, 10 + count)} <= set(said)


def test_of_sixty_environments_those_farthest_apart_are_named_and_the_others_told_when_pointed_at(desk):
    effects = (1.0,) * 20 + (1.2,) * 20 + (0.7,) * 19 + (1.5,)
    answer = study(desk, 60, effects, blocks=2, seconds=2)
    found, figures = by_clients(answer)
    named = [curve.name for curve, look in zip(found.curves, choose_looks(found, figures), strict=True) if look.named]
    assert len(named) == MOST_NAMED
    assert {"10", "69"} <= set(named)
    assert any(30 <= int(name) < 50 for name in named)
    assert any(50 <= int(name) < 69 for name in named)
    figure = draw(answer, "clients")
    assert "52 other lines" in texts(figure)
    titles = [element.text for element in ET.fromstring(figure.svg).iter("title")]
    assert {curve.name for curve in found.curves} <= set(titles)


def test_each_of_sixty_has_a_chart_by_itself(desk):
    found, figures = by_clients(study(desk, 60, blocks=2, seconds=2))
    figure = draw_multiples(found, figures)
    assert texts(figure) == [curve.name for curve in found.curves]
    assert "each environment by itself" in figure.title
    assert len(figure.svg) < 25_000


def test_the_values_of_sixty_are_a_table_of_environments_by_clients(desk):
    answer = study(desk, 60, (1.0, 0.9), blocks=2, seconds=2)
    matrix = values_matrix(*by_clients(answer), 0.03)
    assert (matrix.corner, matrix.columns) == ("environment", ("1", "4", "16"))
    assert len(matrix.rows) == 60
    assert {field.interval for field in matrix.effects[0]} == {"baseline"}
    assert all(field.change.replace(",", "").replace(".", "").isdigit() for row in matrix.effects for field in row)
    page = emit_page(make_document(answer))
    assert "Values and differences: environments by clients (1 table)" in page
    assert "Each environment by itself" in page


def test_few_environments_need_neither(desk):
    page = emit_page(make_document(study(desk, blocks=2, seconds=2)))
    assert "Values and differences" not in page
    assert "Each environment by itself" not in page


def test_a_chart_has_the_metric_and_the_difference_with_its_interval_below(desk):
    figure = draw(study(desk), "clients")
    assert [text for text in texts(figure) if text in {"throughput", "difference from 10, %"}] == [
        "throughput", "difference from 10, %"
    ]  # fmt: skip
    assert ET.fromstring(figure.svg).find("desc").text == figure.label
    assert figure.label.startswith("simple-update, scale 10, by clients: 10 from ")


def test_median_latency_stands_between_them_where_it_was_measured(desk):
    answer = study(desk)
    runs = tuple(
        dataclasses.replace(run, measurements=(*run.measurements, Measurement(metric="latency_p50", value=0.004)))
        for run in answer.study.runs
    )
    answer = dataclasses.replace(answer, study=dataclasses.replace(answer.study, runs=runs))
    assert "median latency, ms" in texts(draw(answer, "clients"))


def test_an_environment_that_would_flatten_the_others_makes_the_scale_logarithmic(desk):
    assert "throughput, log" in texts(draw(study(desk, effects=(1.0, 0.95, 9.0, 1.0)), "clients"))
    assert "throughput" in texts(draw(study(desk), "clients"))


def test_excluded_runs_and_those_that_stray_are_hollow_and_the_legend_says_so(desk):
    answer = study(desk, blocks=9)
    excluded = sum(run.validity == "invalid" for run in answer.study.runs)
    assert excluded
    said = texts(draw(answer, "clients"))
    assert "excluded run" in said
    assert "run far from the median" not in said
    stray = Anomaly(
        kind=AnomalyKind.RUN, environment="pg11", cell="simple-update-s10-c4", witness="", metric="tps", effect=0.8,
        blocks=(3,),
    )  # fmt: skip
    assert "run far from the median" in texts(draw(dataclasses.replace(answer, anomalies=(stray,)), "clients"))


def step(verdict):
    return AxisStep(
        before="11", after="12", effect=1.14, interval=Interval(low=1.1, high=1.2), p=0.001, verdict=verdict
    )


@pytest.mark.parametrize(("verdict", "marked"), [(Verdict.BETTER, True), (Verdict.INCONCLUSIVE, False)])
def test_resolved_steps_along_a_factor_are_marked_with_their_size(desk, verdict, marked):
    answer = study(desk)
    axis = OrderedAxis(
        factor="server", levels=("10", "11", "12", "13"), cell="simple-update-s10-c4", metric="tps",
        steps=(step(verdict),), p=0.001, trend_p=None, blocks=7,
    )  # fmt: skip
    said = texts(draw(dataclasses.replace(answer, axes=(axis,)), "server"))
    assert ("+14.0 %" in said) is marked
    assert ("resolved step" in said) is marked


def test_charts_along_the_scale_mark_where_data_outgrow_memory(desk):
    cells = tuple(dataclasses.replace(desk.cell(4), scale=scale) for scale in (10, 100, 1000))
    answer = desk.answer(cells=cells, blocks=1)
    note = Reason(code=DATA_EXCEED, how="shared_buffers", said=cells[0].workload, value=100, of=2**30)
    plan = dataclasses.replace(answer.study.plan, notes=(note,))
    marked = dataclasses.replace(answer, study=dataclasses.replace(answer.study, plan=plan))
    assert "data > shared_buffers" not in texts(draw(answer, "scale"))
    assert "data > shared_buffers" in texts(draw(marked, "scale"))
    assert draw(marked, "scale").title == "simple-update, 4 clients, by scale"
    (section,) = along_axes(marked)
    said = f"{cells[0].workload}: data exceed shared_buffers (1 GB) from scale 100 on"
    assert said in section.blocks[0].plain


def test_a_chart_whose_data_all_exceed_shared_buffers_says_so_in_its_title(desk):
    answer = study(desk, blocks=1)
    notes = tuple(
        Reason(code=DATA_EXCEED, how=how, said="simple-update", value=value, of=of)
        for how, value, of in (("shared_buffers", 5, 2**20), ("memory", 10, 2**30), ("memory", 11, 2**31))
    )
    plan = dataclasses.replace(answer.study.plan, notes=notes)
    marked = dataclasses.replace(answer, study=dataclasses.replace(answer.study, plan=plan))
    said = "simple-update, scale 10, by clients (data exceed shared_buffers and memory of 1 GB)"
    assert draw(marked, "clients").title == said


def test_names_from_elsewhere_are_escaped(desk):
    found, figures = by_clients(study(desk))
    first, *others = found.curves
    hostile = dataclasses.replace(first, name="<b>&")
    found = dataclasses.replace(found, curves=(hostile, *others), fixed="<i>", levels=("<u>", "4", "16"))
    for figure in (draw_projection(found, figures, make_bounds(study(desk))), draw_multiples(found, figures)):
        assert not {"<b>", "<i>", "<u>"} & set(re.findall(r"<\w+>", figure.svg))
        assert "<b>&" in texts(figure)


@pytest.mark.parametrize(("low", "high"), [(0.97, 1.03), (0.5, 1.2), (0.2, 12.0), (0.99, 40.0)])
def test_the_axis_of_differences_always_has_a_zero_and_a_few_numbers(low, high):
    scale = change_scale([low, high], [], threshold=0.03, top=0, bottom=100)
    ticks = change_ticks(scale.low, scale.high)
    assert "0" in [tick.text for tick in ticks]
    assert 2 <= len(ticks) <= 9
    assert scale.at(1 / 1.02) - scale.at(1) == pytest.approx(scale.at(1) - scale.at(1.02))


@given(low=st.floats(1e-6, 1e6), ratio=st.floats(1.01, 1e6))
def test_axes_of_values_have_a_few_numbers_inside(low, ratio):
    for ticks in (even_ticks(0, low), log_ticks(low, low * ratio)):
        assert 1 <= len(ticks) <= 8
        assert all(tick.value <= low * ratio * 1.0001 for tick in ticks)


def test_a_chart_is_small(desk):
    figure = draw(study(desk, 60, blocks=2, seconds=2, clients=tuple(range(1, 16))), "clients")
    assert len(figure.svg) < 65_000
    assert not re.search(r"\d\.\d{3,}", figure.svg)


def test_in_the_other_charts_sixty_four_names_have_a_pair_of_colour_and_shape_each():
    pairs = {(colour_of(place), draw_marks(mark_of(place), [(0, 0)], 3)) for place in range(64)}
    assert len(pairs) == 64
