from __future__ import annotations

import dataclasses

from pgstrata.model.runs import StatementLatency, Validity
from pgstrata.report.answer.statements import make_profile, profile_statements

_CELL = "simple-update-s10-c2"


def with_statements(answer, statements):
    """`statements` gives the pairs of text and seconds of a run."""
    runs = tuple(
        dataclasses.replace(
            run,
            validity=Validity.VALID,
            statements=tuple(StatementLatency(text=text, seconds=seconds) for text, seconds in statements(run)),
        )
        for run in answer.study.runs
    )
    return dataclasses.replace(answer.study, runs=runs)


def test_a_study_without_a_profile_has_no_statements(desk):
    assert profile_statements(desk.answer(blocks=2).study, _CELL) == ()


def test_latencies_are_medians_and_differences_are_taken_block_by_block(desk):
    drift = {1: 1.0, 2: 1.5, 3: 4.0}
    study = with_statements(
        desk.answer(blocks=3),
        lambda run: [("SELECT 1;", drift[run.block] * (1.1 if run.environment == "pg18" else 1.0))],
    )
    (row,) = profile_statements(study, _CELL)
    assert row.seconds[0] == 1.5
    assert row.changes[0] is None
    assert round(row.changes[1], 6) == 1.1
    assert row.changes[2] == 1.0


def test_a_statement_that_stands_twice_in_the_script_has_two_rows(desk):
    study = with_statements(desk.answer(blocks=1), lambda _: [("SELECT 1;", 1.0), ("SELECT 1;", 3.0)])
    assert [row.seconds[0] for row in profile_statements(study, _CELL)] == [1.0, 3.0]


def test_a_statement_of_some_environments_has_nothing_to_compare_in_the_others(desk):
    study = with_statements(desk.answer(blocks=1), lambda run: [("x", 1.0)] if run.environment == "pg18" else [])
    (row,) = profile_statements(study, _CELL)
    assert row.seconds == (None, 1.0, None, None)
    assert row.changes == (None, None, None, None)


def test_numbers_that_are_none_are_left_out(desk):
    study = with_statements(desk.answer(blocks=1), lambda _: [("x", float("nan")), ("y", 0.0)])
    (row,) = profile_statements(study, _CELL)
    assert (row.text, row.changes[1]) == ("y", None)


def test_what_a_driver_rounds_to_microseconds_is_not_compared_below_ten_of_them(desk):
    study = with_statements(
        desk.answer(blocks=1),
        lambda run: [("\\\\set aid 1", 1e-6 if run.environment == "pg16" else 0.0), ("SELECT 1;", 12e-6)],
    )
    assert profile_statements(study, _CELL)[0].changes[1] is None
    profile = make_profile(study, _CELL)
    assert [row.text for row in profile.rows] == ["SELECT 1;"]
    assert profile.note.endswith("Left out: 1 command of less than 10 µs.")
