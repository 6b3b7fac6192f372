from __future__ import annotations

import dataclasses
import re

from pgstrata.report.answer.notes import find_scatter, say_scatter, visits_in_slices
from pgstrata.report.figures.over_time import draw_rounds

_CELL = "simple-update-s10-c2"


def test_a_study_in_slices_tells_both_components_of_every_environment(desk):
    answer = desk.slices(desk.answer(blocks=9))
    found = find_scatter(answer.study, _CELL)
    assert [item.environment for item in found] == ["pg18", "pg18-async", "pg16-control"]
    assert all(0.01 < item.components.sigma_round < 0.04 for item in found)
    text = say_scatter(answer.study, _CELL)
    assert re.fullmatch(
        r"Scatter of the differences: between rounds [\d.]+ to [\d.]+ %, beyond that between starts "
        r"[\d.]+ to [\d.]+ %, at most [\d.]+ % \(9 visits of 16 rounds\)",
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
