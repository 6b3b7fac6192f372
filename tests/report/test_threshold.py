"""A default threshold that is finer than the noise of the host."""

from __future__ import annotations

import dataclasses

import pytest

from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.reasons import Reason
from pgstrata.report.planning.plan import render_plan
from pgstrata.report.planning.power import say_threshold

UPDATE, SELECT = "simple-update-s10-c2", "select-only-s10-c2"
# s0 / sqrt(2) of 2 %
LIMIT = 0.0283


def plan_of(desk, *floors, text='question = "?"\n', threshold=0.03):
    plan = desk.floors(desk.verdict_answer(cells=(desk.cell(2), desk.cell(2, "select-only"))), *floors).study.plan
    return dataclasses.replace(plan, experiment=dataclasses.replace(plan.experiment, text=text, threshold=threshold))


def test_a_default_threshold_below_the_noise_is_warned_of_with_what_a_coarser_one_gives(desk):
    plan = plan_of(desk, desk.floor(UPDATE, s0=0.03), desk.floor(SELECT, s0=0.035))
    (text,) = say_threshold(plan)
    assert f"so 3 % is taken, while in {SELECT} equals differ by 3.6 % from block to block" in text
    assert "Equality within 3 % is found in 10 of 100 such studies after about 12 blocks" in text
    assert "within 5 % in 47 of 100 such studies after about 10 blocks" in text
    assert text.endswith('write threshold = "5 %"')
    assert text in " ".join(render_plan(plan).split())


def test_all_cells_together_are_warned_of_before_single_cells(desk):
    (text,) = say_threshold(plan_of(desk, desk.floor(UPDATE, s0=0.06), desk.floor(ALL_CELLS, s0=0.03)))
    assert "over all cells together" in text
    (text,) = say_threshold(plan_of(desk, desk.floor(UPDATE, s0=0.06), desk.floor(ALL_CELLS, s0=0.01)))
    assert f"in {UPDATE}" in text


@pytest.mark.parametrize("s0", [LIMIT - 0.0002, LIMIT + 0.0002])
def test_two_percent_of_one_environment_is_the_limit(desk, s0):
    assert len(list(say_threshold(plan_of(desk, desk.floor(UPDATE, s0=s0))))) == (s0 > LIMIT)


def test_what_the_file_says_and_what_is_not_relied_upon_are_left_alone(desk):
    noisy = desk.floor(UPDATE, s0=0.05)
    assert not list(say_threshold(plan_of(desk, noisy, text='threshold = "3 %"\n')))
    assert not list(say_threshold(plan_of(desk, noisy, text="not TOML")))
    assert not list(say_threshold(plan_of(desk, noisy, threshold=0.05)))
    assert not list(say_threshold(plan_of(desk, dataclasses.replace(noisy, doubt=Reason(code="", text="it is old")))))
    assert not list(say_threshold(plan_of(desk)))
