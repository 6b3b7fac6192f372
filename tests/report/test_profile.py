from __future__ import annotations

import dataclasses
import json

from pgstrata.compare.statements import find_statement_shifts
from pgstrata.model.experiment import Level
from pgstrata.model.runs import StatementLatency, Validity
from pgstrata.report.answer.statements import make_profile
from pgstrata.report.json.answer import answer_json
from pgstrata.report.sentences.statements import statement_sentences
from rendering import render_html, render_text

_CELL = "simple-update-s10-c2"
_NAMED = "/* monthly report */ SELECT sum(a) FROM t;"


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
    study = dataclasses.replace(answer.study, runs=runs)
    return dataclasses.replace(answer, study=study, statement_shifts=find_statement_shifts(study.plan, runs))


def rows_of(answer):
    return make_profile(answer, _CELL).rows


def slower(run, seconds, factor=1.5):
    """Other in each block, as runs are; `factor` times as much for one environment."""
    return seconds * (1 + run.block / 1000) * (factor if run.environment == "pg18" else 1.0)


def test_a_study_without_a_profile_has_no_statements(desk):
    answer = desk.answer(blocks=2)
    assert rows_of(answer) == ()
    assert statement_sentences(answer) == ()


def test_latencies_are_medians_and_differences_are_taken_block_by_block(desk):
    drift = {block: 1.0 + 0.5 * (block % 3) for block in range(1, 13)}
    answer = with_statements(
        desk.answer(blocks=12),
        lambda run: [("SELECT 1;", drift[run.block] * (1.1 if run.environment == "pg18" else 1.0))],
    )
    (row,) = rows_of(answer)
    assert row.seconds[0] == 1.5
    assert row.shifts[0] is None
    assert round(row.shifts[1].effect, 6) == 1.1
    assert row.shifts[2].effect == 1.0


def test_a_statement_that_stands_twice_in_the_script_has_two_rows(desk):
    answer = with_statements(desk.answer(blocks=1), lambda _: [("SELECT 1;", 1.0), ("SELECT 1;", 3.0)])
    assert [row.seconds[0] for row in rows_of(answer)] == [1.0, 3.0]


def test_a_statement_of_some_environments_has_nothing_to_compare_in_the_others(desk):
    answer = with_statements(desk.answer(blocks=1), lambda run: [("x", 1.0)] if run.environment == "pg18" else [])
    (row,) = rows_of(answer)
    assert row.seconds == (None, 1.0, None, None)
    assert all(shift is None or shift.effect is None for shift in row.shifts)


def test_numbers_that_are_none_are_left_out(desk):
    answer = with_statements(desk.answer(blocks=1), lambda _: [("x", float("nan")), ("y", 1.0)])
    assert [row.text for row in rows_of(answer)] == ["y"]


def test_what_a_driver_rounds_to_microseconds_is_not_shown_below_ten_of_them(desk):
    answer = with_statements(
        desk.answer(blocks=1),
        lambda run: [("\\\\set aid 1", 1e-6 if run.environment == "pg16" else 0.0), ("SELECT 1;", 12e-6)],
    )
    profile = make_profile(answer, _CELL)
    assert [row.text for row in profile.rows] == ["SELECT 1;"]
    assert profile.note.endswith("Left out: 1 command of less than 10 µs.")


def test_statements_with_names_are_summed_up_and_called_by_them(desk):
    answer = with_statements(
        desk.answer(blocks=24), lambda run: [(_NAMED, slower(run, 1.0)), ("SELECT 1;", slower(run, 1.0))]
    )
    said = statement_sentences(answer)
    assert (
        said[0] == "18 on simple-update, scale 10, 2 clients, 1 statement one by one: 1 slower (monthly report +50.0 %)"
    )
    assert all("SELECT" not in text for text in said)
    text = " ".join(render_text(answer).split())
    assert "monthly report" in text
    assert "+50.0 % [+50.0, +50.0], slower" in text
    assert "monthly report" in render_html(answer)


def test_a_cell_behind_an_environment_that_is_called_on_follows_a_comma(desk):
    answer = with_statements(desk.answer(blocks=24), lambda run: [(_NAMED, slower(run, 1.0))])
    plan = answer.study.plan
    environments = tuple(
        dataclasses.replace(each, levels=(Level(factor="settings.jit", value="on"),)) if each.name == "pg18" else each
        for each in plan.experiment.environments
    )
    plan = dataclasses.replace(plan, experiment=dataclasses.replace(plan.experiment, environments=environments))
    answer = dataclasses.replace(answer, study=dataclasses.replace(answer.study, plan=plan))
    assert statement_sentences(answer)[0].startswith("jit = on, on simple-update, ")


def test_json_has_statements_with_names_and_verdicts(desk):
    answer = with_statements(
        desk.answer(blocks=24), lambda run: [(_NAMED, slower(run, 1.0)), ("SELECT 1;", slower(run, 1.0))]
    )
    found = json.loads(answer_json(answer))["statements"]
    named, plain = (each for each in found if (each["environment"], each["cell"]) == ("pg18", _CELL))
    assert (named["name"], plain["name"]) == ("monthly report", None)
    assert (named["verdict"], plain["statement"]) == ("worse", "SELECT 1;")
