from __future__ import annotations

import dataclasses

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgstrata.compare.statements import find_statement_shifts
from pgstrata.model.answer import Verdict
from pgstrata.model.experiment import Script
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import StatementLatency
from pgstrata.report.blocks.layout import WIDTH
from pgstrata.report.blocks.markdown import emit_markdown
from pgstrata.report.blocks.model import Document, Paragraph, Remark, Verbatim
from pgstrata.report.blocks.text import block_lines, emit_text
from rendering import render_text


def profiled(answer, text="UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;"):
    """18 takes half as long again for that statement as the others."""
    runs = tuple(
        dataclasses.replace(
            run,
            statements=(
                StatementLatency(text="BEGIN;", seconds=0.0001),
                StatementLatency(text=text, seconds=0.0015 if run.environment == "pg18" else 0.001),
            ),
        )
        for run in answer.study.runs
    )
    shifts = find_statement_shifts(answer.study.plan, runs)
    study = dataclasses.replace(answer.study, runs=runs)
    return dataclasses.replace(answer, study=study, statement_shifts=shifts)


def too_long(text):
    return [line for line in text.splitlines() if len(line) > WIDTH]


def test_the_answer_stands_in_the_first_line(desk):
    assert render_text(desk.answer()).startswith("18 is slower than 16: -")


def test_no_line_is_longer_than_78_columns(desk):
    assert too_long(render_text(desk.answer())) == []


def test_long_names_and_values_go_on_in_the_next_line_and_lose_nothing(desk):
    long = "a-very-long-name-of-an-environment-that-somebody-liked-" * 3
    environments = (
        desk.environment("pg16", (("server", "16"),)),
        desk.environment("b", (("server", f"prefix:/{long}"), ("settings.archive_command", "cp %p /" + "x" * 200))),
    )
    text = render_text(desk.answer(environments=environments, effects=(1.0, 1.1)))
    assert too_long(text) == []
    assert "x" * 200 in "".join(text.split())


def test_the_experiment_can_be_copied_out_of_the_report(desk):
    answer = desk.answer()
    text = render_text(answer)
    copied = "\n".join(line.removeprefix("    ") for line in text.split("experiment.toml:\n")[1].splitlines())
    assert copied.strip() == answer.study.plan.experiment.text.strip()


def test_long_lines_of_the_experiment_stay_as_they_are_so_that_they_can_be_copied(desk):
    original = 'question = "' + "why " * 40 + '"  # a remark\nscale = [' + "10, " * 30 + "10]\n"
    answer = desk.answer()
    experiment = dataclasses.replace(answer.study.plan.experiment, text=original)
    plan = dataclasses.replace(answer.study.plan, experiment=experiment)
    text = render_text(dataclasses.replace(answer, study=dataclasses.replace(answer.study, plan=plan)))
    copied = text.split("experiment.toml:\n")[1].splitlines()
    assert [line.removeprefix("    ") for line in copied if line] == original.splitlines()


def test_names_of_environments_stay_in_one_line(desk):
    environments = (
        desk.environment("pg18", (("server", "18"),)),
        desk.environment("b", (("server", "18"), ("settings.synchronous_commit", "off"))),
    )
    text = render_text(desk.answer(environments=environments, effects=(1.0, 0.9)))
    tables = [line for line in text.splitlines() if line.startswith("18 (synchronous_commit = off)  ")]
    assert len(tables) == 6


def test_less_important_columns_go_into_a_second_table_where_there_is_no_room(desk):
    environments = (
        desk.environment("pg18", (("server", "18"),)),
        desk.environment("b", (("server", "18"), ("settings.log_line_prefix", "twenty-one-letters-xx"))),
    )
    answer = desk.answer(environments=environments, effects=(20000.0, 20000.0))
    effects, figures = [line for line in render_text(answer).splitlines() if line.startswith("environment ")][:2]
    assert "tps" not in effects
    assert "verdict" in effects
    assert "tps" in figures


def test_a_number_and_its_percent_sign_are_not_parted(desk):
    text = render_text(desk.answer())
    assert not any(line.lstrip().startswith("%") for line in text.splitlines())


def test_the_statements_of_a_profile_are_shown_with_latencies_and_differences(desk):
    text = render_text(profiled(desk.answer()))
    part = text[text.index("UPDATE pgbench_accounts") :].splitlines()
    assert part[1].split() == ["16:", "1", "ms"]
    assert part[2].split() == ["18:", "1.5", "ms", "+50.0", "%", "[+50.0,", "+50.0],", "slower"]
    assert too_long(text) == []


def test_what_was_not_measured_is_said(desk):
    text = " ".join(render_text(desk.answer()).split())
    for expected in (
        "One machine",
        "Closed loop",
        "Run by run",
        "No noise floor is known",
        "Single cells are exploratory",
    ):
        assert expected in text


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=st.text(), fact=st.text(), reason=st.text())
def test_no_text_from_outside_makes_a_line_too_long(desk, question, fact, reason):
    answer = desk.answer(blocks=1)
    experiment = dataclasses.replace(answer.study.plan.experiment, question=question, text=reason)
    study = dataclasses.replace(
        answer.study,
        plan=dataclasses.replace(answer.study.plan, experiment=experiment),
        host=dataclasses.replace(answer.study.host, facts={"host.cpu": fact}),
    )
    assert too_long(render_text(dataclasses.replace(answer, study=study))) == []


def test_invalid_runs_stay_visible_with_their_reason(desk):
    text = render_text(desk.answer())
    assert "invalid: the wall clock jumped by" in text
    assert "1 suspect, invalid or failed" in " ".join(text.split())


def test_a_study_without_runs_can_be_shown(desk):
    text = render_text(desk.verdict_answer())
    assert "0 of 12 planned blocks, 0 runs" in text


def test_headlines_stand_apart_from_single_cells(desk):
    text = render_text(desk.headlines(desk.answer()))
    assert too_long(text) == []
    head, cells = text.split("All 2 cells together (geometric mean), against 16")
    assert "simple-update, scale 10, 2 clients" not in head
    assert "simple-update, scale 10, 2 clients (exploratory)" in cells
    assert "confidence" in cells.split("(exploratory)")[0]
    assert "adjusted" in cells


def test_the_design_and_its_reason_are_said_once_for_all_cells(desk):
    text = " ".join(render_text(desk.slices(desk.answer())).split())
    assert text.count("Measured in 16 slices of 250 ms: the environments can be up together.") == 1
    assert "differences come from the slices" in text
    assert "Scatter of the differences: between rounds" in text


def test_the_floor_stands_beside_the_table_that_it_is_about(desk):
    answer = desk.floors(desk.answer(), desk.floor("simple-update-s10-c2"))
    text = " ".join(render_text(answer).split())
    assert "Noise floor 0.8 %: differences from" in text
    doubted = desk.floors(
        desk.answer(), desk.floor("simple-update-s10-c2", doubt=Reason(code="", text="it is too old"))
    )
    assert "The noise floor is not used: it is too old." in " ".join(render_text(doubted).split())


def test_factors_steps_and_pairs_have_their_parts(desk):
    answer = dataclasses.replace(
        desk.answer(blocks=2), effects=(desk.effect(), desk.interaction()), axes=(desk.axis(),)
    )
    pair = desk.comparison(environment="pg18-async", reference="pg18")
    text = render_text(dataclasses.replace(answer, pairs=(pair,)))
    assert too_long(text) == []
    for expected in (
        "Factors and what they depend on",
        "- huge_pages: on against off: +3.1 % [+2.0, +4.2], faster",
        "Steps along ordered factors",
    ):
        assert expected in text


def test_pairs_stand_in_a_table_with_blocks_and_adjusted_p(desk):
    pairs = (
        desk.comparison(reference="pg16", exploratory=True, adjusted_p=0.045),
        desk.comparison(
            environment="pg18-async",
            reference="pg18",
            exploratory=True,
            verdict=Verdict.INCONCLUSIVE,
            blocks=8,
            adjusted_p=None,
        ),
    )
    answer = dataclasses.replace(desk.answer(blocks=2), pairs=pairs)
    text = render_text(answer)
    assert too_long(text) == []
    effects, decisions = text[text.index("Environments against each other: ") :].split("\n\n")[:2]
    assert effects.startswith("Environments against each other: simple-update, scale 10, 2 clients\n---")
    assert effects.splitlines()[4:] == [
        "18 against 16                       -3.1 %  [-4.2, -1.9]  slower",
        "18 (commit_delay = 100) against 18  -3.1 %  [-4.2, -1.9]  cannot tell",
    ]
    assert [line.split()[-2:] for line in decisions.splitlines()[3:5]] == [["≤", "0.045"], ["8", "-"]]
    assert "Exploratory: each pair by itself; adjusted p allows for their number (2 pairs)." in " ".join(text.split())
    assert "against each other" not in render_text(desk.answer(blocks=2))


def test_the_lines_of_a_deep_plan_stay_indented_by_their_depth():
    """A tree that is deeper than half a line is drawn closer together; depths that differ still differ."""
    plan = "\n".join(
        f"{' ' * 6 * depth}->  Hash Join  (cost=958.80..4592.50 rows=19519 width=12)" for depth in range(14)
    )
    lines = [line for line in block_lines(Verbatim(plan)) if "->" in line]
    depths = [len(line) - len(line.lstrip()) for line in lines]
    assert len(lines) == 14
    assert sorted(set(depths)) == depths
    assert max(map(len, lines)) <= WIDTH


def test_an_experiment_with_files_of_its_own_says_that_they_belong_to_it(desk):
    answer = desk.answer()
    assert "files that it names" not in render_text(answer)
    plan = answer.study.plan
    script = Script(file="read.sql", text="SELECT 1;")
    cells = (dataclasses.replace(plan.experiment.cells[0], scripts=(script,)), *plan.experiment.cells[1:])
    environments = tuple(
        dataclasses.replace(each, options={"setup_sql": "CREATE INDEX ON t (a);"})
        for each in plan.experiment.environments
    )
    for changes in ({"cells": cells}, {"environments": environments}):
        experiment = dataclasses.replace(plan.experiment, **changes)
        study = dataclasses.replace(answer.study, plan=dataclasses.replace(plan, experiment=experiment))
        text = " ".join(render_text(dataclasses.replace(answer, study=study)).split())
        assert "with this as experiment.toml, beside the files that it names:" in text


def test_each_kind_of_doubt_is_one_line_with_its_cases_below_it():
    doubts = (Remark("Stopped early"), Remark("In 2 runs the CPU was busy", ("1 run of 16", "1 run of 18")))
    document = Document(
        name="Study x", title="Which?", summary="", doubts=doubts, colophon="", answer=(Paragraph("18 is slower."),),
        sections=(),
    )  # fmt: skip
    lines = emit_text(document).splitlines()
    assert lines[lines.index("Doubts") :] == [
        "Doubts", "------", "- Stopped early", "- In 2 runs the CPU was busy", "  - 1 run of 16", "  - 1 run of 18",
    ]  # fmt: skip
    assert emit_markdown(document).endswith("## Doubts\n\n- Stopped early\n- In 2 runs the CPU was busy\n")
