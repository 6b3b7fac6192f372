from __future__ import annotations

import dataclasses

import pytest

from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.runs import Validity
from pgstrata.report.sentences.comparisons import measure_effort

_CELL = "simple-update-s10-c2"


def timed(answer, seconds=10.0):
    """Every run takes so long in all, a tenth of it around the measured window."""
    runs = tuple(
        dataclasses.replace(
            run, measured_seconds=0.9 * seconds, dead_time={"start": 0.1 * seconds}, validity=Validity.VALID
        )
        for run in answer.study.runs
    )
    return dataclasses.replace(answer.study, runs=runs)


def test_only_the_two_environments_of_a_comparison_are_counted(desk):
    study = timed(desk.answer(blocks=4))
    comparison = desk.comparison(cell=_CELL, blocks=4)
    assert measure_effort(study).seconds(comparison) == pytest.approx(4 * 2 * 10)


def test_what_was_measured_after_the_verdict_is_not_counted(desk):
    study = timed(desk.answer(blocks=9))
    comparison = desk.comparison(cell=_CELL, blocks=9, decided_at=7)
    assert measure_effort(study).seconds(comparison) == pytest.approx(7 * 2 * 10)


def test_a_headline_takes_the_time_of_all_cells(desk):
    study = timed(desk.answer(blocks=7))
    comparison = desk.comparison(cell=ALL_CELLS, blocks=7)
    assert measure_effort(study).seconds(comparison) == pytest.approx(7 * 2 * 2 * 10)


def test_blocks_with_an_invalid_run_took_time_and_are_not_counted_as_blocks(desk):
    study = timed(desk.answer(blocks=9))
    first, *others = study.runs
    broken = dataclasses.replace(study, runs=(dataclasses.replace(first, validity=Validity.INVALID), *others))
    comparison = desk.comparison(cell=first.cell, environment="pg18", decided_at=7)
    assert first.environment == "pg16"
    assert measure_effort(broken).seconds(comparison) == pytest.approx(8 * 2 * 10)


def test_a_study_without_runs_took_no_time(desk):
    answer = desk.verdict_answer(desk.comparison())
    assert measure_effort(answer.study).seconds(desk.comparison()) is None
