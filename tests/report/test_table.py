from __future__ import annotations

import dataclasses
import html
import io
import re

import pytest
from rich.console import Console

from pgstrata.model.answer import Interval, Verdict
from pgstrata.model.metrics import Measurement
from pgstrata.report.answer.environment_rows import arrange_cells
from pgstrata.report.answer.tables import cell_table
from pgstrata.report.blocks.markdown import emit_markdown
from pgstrata.report.blocks.model import Column, ColumnPlace, Document, Section, Table
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.blocks.terminal import emit_terminal
from pgstrata.report.blocks.text import emit_text
from pgstrata.report.sentences.verdicts import render_sureness
from rendering import render_html, render_terminal


def show(answer, width):
    stream = io.StringIO()
    Console(file=stream, width=width).print(render_terminal(answer, width))
    return stream.getvalue()


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_table_fits_the_terminal(desk, width):
    text = show(desk.answer(), width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert "slower" in text


def test_a_wide_terminal_shows_the_costs_too(desk):
    assert "per transaction" not in show(desk.answer(), 80)
    wide = show(desk.answer(), 180)
    assert "CPU and WAL per transaction" in wide
    assert any("runs" in line for line in wide.splitlines() if "environment" in line)


def test_all_cells_have_the_same_columns(desk):
    for width in range(80, 140, 4):
        heads = [
            line.split() for line in show(desk.answer(), width).splitlines() if "environment" in line and "tps" in line
        ]
        assert len(heads) == 2
        assert heads[0] == heads[1]


def test_names_and_figures_stay_in_one_piece_at_100_columns(desk):
    environments = (
        desk.environment("pg18", (("server", "18"),)),
        desk.environment("b", (("server", "18"), ("settings.synchronous_commit", "off"))),
    )
    text = show(desk.answer(environments=environments, effects=(1.0, 0.9)), 100)
    assert len([line for line in text.splitlines() if line.startswith(" 18 (synchronous_commit = off) ")]) == 2


def test_a_number_and_its_percent_sign_stay_together(desk):
    for width in range(60, 100):
        assert not any(line.lstrip("! ").startswith("%") for line in show(desk.answer(), width).splitlines())


def test_square_brackets_of_a_name_are_no_markup(desk):
    environments = (
        desk.environment("pg16", (("server", "16"),)),
        desk.environment("b", (("server", "[red]18[/red][/]"),)),
    )
    assert "[red]18[/red][/]" in show(desk.answer(environments=environments, effects=(1.0, 1.1)), 140)


def test_headlines_stand_apart_and_first(desk):
    text = show(desk.headlines(desk.answer()), 120)
    assert (
        0
        < text.index("All 2 cells together (geometric mean), against 16")
        < text.index("simple-update, scale 10, 2 clients (exploratory)")
    )
    assert "after 9" in text
    assert "≤ 0.01" in text


def test_the_design_stands_beside_its_table(desk):
    text = " ".join(show(desk.slices(desk.answer()), 100).split())
    assert "Measured in 16 slices of 250 ms: the environments can be up together" in text


@pytest.mark.parametrize("width", [60, 80, 140])
def test_pairs_fit_the_terminal_and_keep_their_figures(desk, width):
    pair = desk.comparison(environment="pg18-async", reference="pg18", exploratory=True, adjusted_p=0.045)
    text = show(dataclasses.replace(desk.answer(), pairs=(pair,)), width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert "Environments against each other" in text
    assert ("≤ 0.045" in text) is (width >= 80)
    assert "Exploratory: each pair by itself" in text


def test_what_is_counted_per_minute_stands_beside_throughput_and_not_among_costs_per_transaction(desk):
    answer = desk.answer()
    runs = tuple(
        dataclasses.replace(
            run, measurements=(*run.measurements, Measurement(metric="new_orders", value=27.0 * run.value("tps")))
        )
        for run in answer.study.runs
    )
    answer = dataclasses.replace(answer, study=dataclasses.replace(answer.study, runs=runs))
    table = cell_table(answer, arrange_cells(answer)[0])
    aside = [column.title for column in table.at(ColumnPlace.ASIDE)]
    assert "server CPU" in aside
    assert "new orders" not in aside
    assert [column.title for column in table.at(ColumnPlace.LEAD)] == ["tps", "new orders"]


def test_tables_without_rows_and_without_words_have_a_place_in_every_form():
    bare = Table(names=Column(title="environment", cells=()), columns=(Column(title="tps", cells=()),))
    silent = Table(names=Column(title="", cells=("",)), columns=(Column(title="", cells=("",)),))
    document = Document(
        name="n", title="t", summary="s", answer=(), doubts=(), colophon="c",
        sections=(Section("a", (bare, silent), brief=True),),
    )  # fmt: skip
    assert all(emit(document) for emit in (emit_text, emit_markdown, emit_page))
    stream = io.StringIO()
    Console(file=stream, width=60).print(emit_terminal(document, 60))
    assert "environment" in stream.getvalue()


def test_of_no_difference_the_interval_that_the_verdict_rests_on_is_shown_everywhere(desk):
    inner = {"interval": Interval(low=0.986, high=1.023), "equivalence_interval": Interval(low=0.987, high=1.018)}
    alike = {"verdict": Verdict.EQUIVALENT, "effect": 1.002, **inner}
    answer = desk.answer(blocks=3)
    comparisons = tuple(dataclasses.replace(each, **alike) if each.control else each for each in answer.comparisons)
    page = render_html(dataclasses.replace(answer, comparisons=comparisons))
    text = html.unescape(re.sub("<[^>]*>", "", page)).replace("\xa0", " ")
    assert len(re.findall(r"\[-1\.3, \+1\.8\]", text)) >= 8
    assert "between -1.3 % and +1.8 %" in text
    assert "-1.4, +2.3" not in text
    assert "-1.4 % and" not in text
    assert {render_sureness(each) for each in comparisons if each.control} == {"90 %"}
