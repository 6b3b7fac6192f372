from __future__ import annotations

import re

from pgstrata.model.answer import Interval, Verdict
from pgstrata.report.figures.effects import choose_domain, draw_differences, draw_effects


def far(desk, environment="pg18-async", **changes):
    values = {"verdict": Verdict.BETTER, "effect": 8.97, "interval": Interval(low=7.88, high=9.64)}
    return desk.comparison(environment=environment, **{**values, **changes})


def marks(figure, colour):
    """In the wide drawing; the narrow one shows the same."""
    wide, narrow = (len(re.findall(rf'fill="{colour}"', each)) for each in figure.svg.split("</svg>")[:2])
    assert wide == narrow
    return wide


def test_an_axis_covers_all_differences_that_are_alike(desk):
    pair = desk.comparison(), far(desk, effect=1.08, interval=Interval(low=1.05, high=1.1))
    low, high = choose_domain(pair, 0.03)
    assert low < -4.2
    assert 10 < high < 12


def test_without_a_difference_there_is_an_empty_chart():
    figure = draw_differences([], baseline="18", threshold=0.03, domain=choose_domain([], 0.03))
    assert figure.svg.startswith("<svg")


def test_an_axis_does_not_reach_to_one_huge_difference(desk):
    _, high = choose_domain((desk.comparison(), desk.comparison(environment="pg16-control"), far(desk)), 0.03)
    assert high < 10


def test_an_axis_reaches_to_a_huge_difference_where_there_is_no_other(desk):
    _, high = choose_domain((far(desk),), 0.03)
    assert high > 864


def test_a_difference_outside_the_axis_is_an_arrow_with_its_figures_and_the_axis_says_so(desk):
    answer = desk.verdict_answer(desk.comparison(), far(desk))
    figure = draw_effects(answer, "simple-update-s10-c2")
    assert "+797 % [+688, +864]" in figure.svg
    assert "arrows point to what lies outside" in figure.svg
    assert marks(figure, "#0072b2") == 1


def test_an_interval_that_leaves_the_axis_ends_in_an_arrow(desk):
    wide = far(desk, verdict=Verdict.INCONCLUSIVE, effect=1.1, interval=Interval(low=0.95, high=6.0))
    answer = desk.verdict_answer(desk.comparison(), desk.comparison(environment="pg16-control"), wide)
    figure = draw_effects(answer, "simple-update-s10-c2")
    assert "arrows point to what lies outside" in figure.svg
    assert marks(figure, "#7f8790") >= 3


def test_an_axis_without_anything_outside_says_nothing_of_arrows(desk):
    figure = draw_effects(desk.verdict_answer(desk.comparison()), "simple-update-s10-c2")
    assert "arrows" not in figure.svg


def test_the_figures_of_an_axis_have_the_minus_sign_of_the_text(desk):
    figure = draw_effects(desk.verdict_answer(desk.comparison()), "simple-update-s10-c2")
    assert "\u2212" not in figure.svg
    assert ">-4<" in figure.svg


def test_an_axis_to_a_huge_difference_has_whole_figures(desk):
    huge = far(desk, effect=21.15, interval=Interval(low=20.73, high=22.05))
    figure = draw_effects(desk.verdict_answer(huge), "simple-update-s10-c2")
    assert ">+1,000<" in figure.svg
    assert "e+3" not in figure.svg
