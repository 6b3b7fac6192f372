"""The report as Markdown: tables have the same number of cells in each row, foreign text is no markup."""

from __future__ import annotations

import dataclasses
import re

from pgstrata.report.blocks.markdown import escape
from rendering import render_markdown

_EVIL = "a | b `c` *d* [e](f)\n<script>alert(1)</script>"


def test_the_answer_stands_below_the_question(desk):
    lines = render_markdown(desk.answer()).splitlines()
    assert lines[0] == "# Is 18 faster than 16 here?"
    assert lines[2].startswith("18 is slower than 16: -")


def test_every_row_of_a_table_has_the_cells_of_its_heading(desk):
    environments = (desk.environment("pg16", (("server", "16"),)), desk.environment("b", (("server", _EVIL),)))
    text = render_markdown(desk.headlines(desk.answer(environments=environments, effects=(1.0, 1.1))))
    tables = [part.splitlines() for part in text.split("\n\n") if part.startswith("|")]
    assert len(tables) >= 3
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table}) == 1


def test_text_from_elsewhere_is_no_markup(desk):
    answer = desk.answer(blocks=2)
    experiment = dataclasses.replace(answer.study.plan.experiment, question=_EVIL)
    plan = dataclasses.replace(answer.study.plan, experiment=experiment)
    text = render_markdown(dataclasses.replace(answer, study=dataclasses.replace(answer.study, plan=plan)))
    assert not re.search(r"(?<!\\)<script", text.split("```")[0])
    assert escape("- x") == r"\- x"
    assert escape("1. x") == r"\1. x"


def test_the_experiment_is_code_whatever_fences_it_has(desk):
    answer = desk.answer(blocks=2)
    experiment = dataclasses.replace(answer.study.plan.experiment, text="# ````\nx = 1")
    plan = dataclasses.replace(answer.study.plan, experiment=experiment)
    text = render_markdown(dataclasses.replace(answer, study=dataclasses.replace(answer.study, plan=plan)))
    assert "`````\n# ````\nx = 1\n`````" in text
