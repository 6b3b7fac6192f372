"""The matrix of effects: who stands where, how deep a field is, and how it is shown."""

from __future__ import annotations

import dataclasses
import io

import pytest
from rich.console import Console

from pgstrata.model.experiment import Cell
from pgstrata.report.answer.document import make_document
from pgstrata.report.answer.matrix import depth, effects_matrix, groups_matrix
from pgstrata.report.blocks.markdown import emit_markdown
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.blocks.text import block_lines
from rendering import render_terminal, render_text


def versions(desk, *numbers):
    return tuple(desk.environment(f"pg{number}", (("server", str(number)),)) for number in numbers)


def only(cell):
    return (cell("simple-update"),)


def cell(workload):
    return Cell(workload=workload, scale=10, clients=2, threads=2)


def test_one_effect_needs_no_matrix(desk):
    answer = desk.answer(environments=versions(desk, 16, 18), effects=(1.0, 0.9), cells=only(cell))
    assert effects_matrix(answer) is None


def test_cells_are_rows_where_they_are_more_than_the_environments(desk):
    matrix = effects_matrix(desk.answer(environments=versions(desk, 16, 18), effects=(1.0, 0.9)))
    assert (matrix.corner, matrix.columns) == ("workload", ("18",))
    assert len(matrix.rows) == 2
    assert [row[0].verdict for row in matrix.effects] == ["worse", "worse"]


def test_a_few_environments_with_one_cell_stand_beside_each_other(desk):
    answer = desk.answer(environments=versions(desk, 14, 15, 16), effects=(1.0, 0.9, 1.2), cells=only(cell))
    matrix = effects_matrix(answer)
    assert matrix.columns == ("15", "16")
    assert len(matrix.rows) == 1


def test_many_environments_are_rows(desk):
    numbers = range(10, 20)
    answer = desk.answer(environments=versions(desk, *numbers), effects=(1.0,) * 10, cells=only(cell))
    assert effects_matrix(answer).rows == tuple(str(number) for number in numbers)[1:]


@pytest.mark.parametrize(
    ("effect", "shade"), [(1.0, 0), (1.02, 0), (1.04, 1), (1.1, 2), (0.9, 2), (1.3, 3), (2.0, 4), (0.5, 4), (None, 4)]
)
def test_a_field_is_deeper_the_larger_the_change(effect, shade):
    assert depth(effect, 0.03) == shade


def test_it_is_shown_everywhere_and_without_colour(desk):
    answer = desk.answer(environments=versions(desk, 14, 15, 16), effects=(1.0, 0.9, 1.2))
    page = emit_page(make_document(answer))
    assert "Difference in throughput from 14" in page
    assert "▼ -10" in page.replace("\N{NO-BREAK SPACE}", " ")
    assert "Difference in throughput from 14" in render_text(answer)


def test_long_sentences_leave_room_for_the_matrix_and_are_folded(desk):
    answer = desk.answer(environments=versions(desk, 14, 15, 16), effects=(1.0, 0.9, 1.2))
    document = make_document(answer)
    long = tuple(dataclasses.replace(each, text=f"{each.text} {'word ' * 100}") for each in document.answer)
    said = dataclasses.replace(document, answer=long)
    assert (len(document.head), len(said.head), len(said.rest)) == (2, 1, 1)
    assert len(dataclasses.replace(said, matrix=None).head) == 2


def test_controls_stand_between_the_answer_and_the_matrix(desk):
    page = emit_page(make_document(desk.answer()))
    assert page.index("18 is slower than 16") < page.index('class="minor control"') < page.index('class="matrix"')
    assert page.count("The control (") == 1


def test_a_narrow_terminal_shows_the_columns_that_fit_and_counts_the_others(desk):
    numbers = range(10, 20)
    cells = tuple(cell(name) for name in ("a-long-name-of-a-workload", "another-long-name", "a-third-long-name"))
    answer = desk.answer(environments=versions(desk, *numbers), effects=(1.0,) * 10, cells=cells)
    stream = io.StringIO()
    Console(file=stream, width=60).print(render_terminal(answer, 60))
    assert "more: see the report" in stream.getvalue()
    assert max(len(line.rstrip()) for line in stream.getvalue().splitlines()) <= 60


def test_an_overview_has_the_range_over_clients_by_workload_and_size(desk):
    cells = tuple(desk.cell(clients, name) for name in ("simple-update", "select-only") for clients in (1, 4, 16))
    matrix = groups_matrix(desk.answer(environments=versions(desk, 14, 15, 16), effects=(1.0, 0.9, 1.001), cells=cells))
    assert matrix.columns == ("simple-update, scale 10", "select-only, scale 10")
    assert matrix.rows == ("15", "16")
    slower, alike = matrix.effects[0][0], matrix.effects[1][0]
    assert (slower.verdict, slower.interval) == ("worse", "3 slower of 3")
    assert slower.change.startswith("-")
    assert " to -" in slower.change
    assert (alike.verdict, alike.interval) == ("", "none decided of 3")


@pytest.mark.parametrize("names", [("simple-update",), ("simple-update", "select-only")])
def test_an_overview_needs_groups_of_several_cells(desk, names):
    clients = (1, 4) if len(names) == 1 else (4,)
    cells = tuple(desk.cell(number, name) for name in names for number in clients)
    assert groups_matrix(desk.answer(cells=cells, blocks=1)) is None


def test_a_matrix_within_a_section_is_a_table_in_plain_text_and_markdown(desk):
    answer = desk.answer(environments=versions(desk, 14, 15, 16), effects=(1.0, 0.9, 1.2))
    matrix = effects_matrix(answer)
    for lines in (block_lines(matrix), emit_markdown(document_of(answer, matrix)).splitlines()):
        text = "\n".join(lines)
        assert matrix.title in text
        assert all(name in text for name in (*matrix.rows, *matrix.columns))


def document_of(answer, block):
    return dataclasses.replace(make_document(answer), matrix=None, sections=(block,))
