from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.compare.components import split_scatter
from pgstrata.report.rounds import draw_rounds
from pgstrata.report.scatter import find_scatter, name_scatter, say_scatter, visits_in_slices

_CELL = "simple-update-s10-c2"


def visits(between, rounds, *, count=400, per_visit=16, seed=1):
    draws = np.random.default_rng(seed)
    return [draws.normal(draws.normal(0, between), rounds, per_visit) for _ in range(count)]


@pytest.mark.parametrize("between", [0.0, 0.005, 0.02])
def test_both_components_are_found_again(between):
    found = split_scatter(visits(between, 0.02))
    assert found.rounds == pytest.approx(0.02, rel=0.05)
    assert found.between == pytest.approx(between, rel=0.25, abs=0.003)


def test_a_stalled_round_in_each_visit_moves_neither(desk):
    clean = visits(0.01, 0.02)
    stalled = [np.append(visit[1:], -1.2) for visit in clean]
    before, after = split_scatter(clean), split_scatter(stalled)
    assert after.rounds == pytest.approx(before.rounds, rel=0.15)
    assert after.between == pytest.approx(before.between, rel=0.25)


def test_two_visits_say_nothing_of_the_spread_between_them():
    assert split_scatter(visits(0.01, 0.02, count=2)) is None
    assert split_scatter([]) is None


def test_what_has_no_logarithm_is_left_out():
    clean = visits(0.01, 0.02, count=10)
    holed = [np.append(visit, np.nan) for visit in clean]
    assert split_scatter(holed) == split_scatter(clean)


@given(st.lists(st.lists(st.floats(-1, 1), min_size=2, max_size=8), min_size=3, max_size=8))
def test_nothing_is_left_between_visits_that_their_observed_spread_does_not_hold(found):
    components = split_scatter([np.array(visit) for visit in found])
    assert 0 <= components.between <= components.visits + 1e-12
    mirrored = split_scatter([-np.array(visit) for visit in found])
    assert mirrored.rounds == pytest.approx(components.rounds)


def test_a_study_in_slices_tells_both_components_of_every_environment(desk):
    answer = desk.slices(desk.answer(blocks=9))
    found = find_scatter(answer.study, _CELL)
    assert [item.environment for item in found] == ["pg18", "pg18-async", "pg16-control"]
    assert all(0.01 < item.components.rounds < 0.04 for item in found)
    assert name_scatter(found[0], answer.study) == "18"
    text = say_scatter(answer.study, _CELL)
    assert re.fullmatch(
        r"Scatter of the differences: between rounds [\d.]+ to [\d.]+ %, between visits [\d.]+ to [\d.]+ % beyond that "
        r"\(9 visits of 16 rounds\)",
        text,
    ), text


def test_a_study_run_by_run_has_no_visits_in_slices(desk):
    study = desk.answer(blocks=9).study
    assert visits_in_slices(study, _CELL) == ()
    assert find_scatter(study, _CELL) == ()
    assert draw_rounds(desk.answer(blocks=2), _CELL, "x") is None


def test_runs_that_did_not_take_turns_with_each_other_are_not_put_side_by_side(desk):
    answer = desk.slices(desk.answer(blocks=5))
    runs = tuple(
        dataclasses.replace(run, together="alone") if run.environment == "pg16" else run for run in answer.study.runs
    )
    assert find_scatter(dataclasses.replace(answer.study, runs=runs), _CELL) == ()


def test_some_visits_are_drawn_with_every_slice(desk):
    figure = draw_rounds(desk.slices(desk.answer(blocks=9)), _CELL, "x")
    assert ">block 1<" in figure.svg
    assert ">block 9<" in figure.svg
    assert figure.label == "Throughput of every slice in 4 visits, a colour for each environment"
