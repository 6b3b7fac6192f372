from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.report.figures.over_time import draw_over_time
from pgstrata.report.figures.run_lines import Dot
from pgstrata.report.figures.runs import arrange_panels, choose_ticks, draw_by_block
from pgstrata.report.figures.scales import are_far_apart, choose_seconds

_VALUES = st.floats(1e-6, 1e9)


def dot(environment, value, block=1, *, valid=True):
    return Dot(environment=environment, block=block, place=float(block), value=value, valid=valid)


def dots(**values):
    return [dot(name, value, block) for name, found in values.items() for block, value in enumerate(found, 1)]


def test_environments_near_each_other_share_a_panel():
    (panel,) = arrange_panels(dots(a=[100, 104], b=[110, 113], c=[95, 99]))
    assert set(panel.environments) == {"a", "b", "c"}


def test_an_environment_far_from_the_rest_has_a_panel_of_its_own_on_the_same_relative_scale():
    upper, lower = arrange_panels(dots(a=[3000, 3100], b=[2900, 3050], fast=[27000, 28000]))
    assert upper.environments == ("fast",)
    assert set(lower.environments) == {"a", "b"}
    assert math.isclose(upper.high / upper.low, lower.high / lower.low)


def test_invalid_runs_do_not_stretch_the_scale():
    (panel,) = arrange_panels([*dots(a=[100, 104]), dot("a", 3.0, block=3, valid=False)])
    assert panel.low > 90


def test_values_without_a_logarithm_give_no_panel():
    assert arrange_panels([dot("a", 0.0), dot("b", -1.0)]) == ()


@given(st.lists(st.tuples(st.sampled_from("abcdef"), _VALUES), min_size=1, max_size=40))
def test_every_usable_run_lies_within_the_one_panel_of_its_environment(found):
    made = [dot(name, value, block) for block, (name, value) in enumerate(found)]
    panels = arrange_panels(made)
    for each in made:
        (panel,) = [panel for panel in panels if each.environment in panel.environments]
        assert panel.low <= each.value <= panel.high


@given(low=_VALUES, ratio=st.floats(1.02, 1e6))
def test_ticks_are_few_and_lie_between_the_ends(low, ratio):
    ticks = choose_ticks(low, low * ratio)
    assert 1 <= len(ticks) <= 7
    assert all(low * (1 - 1e-9) <= tick <= low * ratio * (1 + 1e-9) for tick in ticks)
    assert list(ticks) == sorted(set(ticks))


@pytest.mark.parametrize(
    ("last", "ticks"),
    [(4.0, [0, 1, 2, 3, 4]), (1.5, [0, 1]), (60.0, [0, 10, 20, 30, 40, 50, 60]), (7.9, [0, 2, 4, 6])],
)
def test_ticks_over_time_are_whole_seconds_and_few(last, ticks):
    assert choose_seconds(last) == ticks


@given(st.floats(0.1, 1e6))
def test_there_are_never_many_ticks_over_time(last):
    assert 1 <= len(choose_seconds(last)) <= 8


def test_short_runs_have_no_fractions_on_the_axis_of_seconds(desk):
    figure = draw_over_time(desk.answer(seconds=4, blocks=2), "simple-update-s10-c2", "x")
    assert ">1.5<" not in figure.svg
    assert ">2<" in figure.svg


def test_panels_over_time_have_scales_of_their_own_where_one_would_flatten_the_rest(desk):
    figure = draw_over_time(desk.answer(blocks=2, effects=(1.0, 0.95, 9.0, 1.0)), "simple-update-s10-c2", "x")
    assert figure.title == "x; each panel has a scale of its own"
    assert figure.svg.count('<svg class="plot"') == 4
    assert are_far_apart([1.0, 5.0])
    assert not are_far_apart([1.0, 3.0])


def test_a_fast_environment_does_not_flatten_the_others_block_by_block(desk):
    figure = draw_by_block(desk.answer(blocks=3, effects=(1.0, 0.95, 9.0, 1.0)), "simple-update-s10-c2", "x")
    for drawing in re.findall("<svg.*?</svg>", figure.svg):
        assert drawing.count("tps, log") == 2
        assert drawing.count(">block<") == 1


def test_an_invalid_run_far_away_stands_at_the_edge_with_an_arrow(desk):
    import dataclasses

    from pgstrata.model.metrics import Measurement
    from pgstrata.model.runs import Validity

    answer = desk.answer(blocks=3)
    first, *others = answer.study.runs
    broken = dataclasses.replace(first, validity=Validity.INVALID, measurements=(Measurement(metric="tps", value=1.0),))
    study = dataclasses.replace(answer.study, runs=(broken, *others))
    figure = draw_by_block(dataclasses.replace(answer, study=study), first.cell, "x")
    assert "✕↓" in figure.svg
