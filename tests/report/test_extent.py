"""How much of a study a terminal shows: the answer and its matrix, tables too, or everything."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from pgstrata.report.answer.document import make_document
from pgstrata.report.blocks.terminal import Extent, emit_terminal
from rendering import render_text


def shown(answer, extent, width=78):
    stream = io.StringIO()
    Console(file=stream, width=width).print(emit_terminal(make_document(answer), width, extent))
    assert max(map(len, stream.getvalue().splitlines())) <= width
    return stream.getvalue()


@pytest.fixture(scope="module")
def answer(module_desk):
    return module_desk.headlines(module_desk.answer())


def test_the_answer_comes_with_its_matrix_its_doubts_and_what_else_there_is(answer):
    text = shown(answer, Extent.ANSWER)
    said = " ".join(text.split())
    document = make_document(answer)
    assert " ".join(document.answer[0].plain.split()) in said
    assert "Difference in throughput from 16" in said
    assert all(" ".join(remark.text.split()) in said.replace(" ! ", " ") for remark in document.doubts)
    assert "More with --details, or pgstrata open STUDY: " in said
    assert "; Cell by cell; " in said.partition("More with --details")[2]
    assert "adjusted" not in said


def test_where_there_is_no_matrix_its_table_is_shown(module_desk):
    two = tuple(module_desk.environment(f"pg{number}", (("server", number),)) for number in ("16", "18"))
    one = module_desk.answer(environments=two, effects=(1.0, 0.9), cells=(module_desk.cell(),))
    assert make_document(one).matrix is None
    text = shown(one, Extent.ANSWER)
    assert "verdict" in text
    assert "What was measured" not in text.partition("More with")[2]


def test_the_whole_is_what_plain_text_has(answer):
    tables, whole = shown(answer, Extent.TABLES), shown(answer, Extent.WHOLE)
    assert "Cell by cell" not in shown(answer, Extent.ANSWER).partition("More with")[0]
    assert "How to reproduce" not in tables
    assert "More with" not in whole
    part = render_text(answer).partition("What this does not say\n")[2]
    there = {line.strip() for line in whole.splitlines()}
    assert not [line for line in part.splitlines() if line.strip() and line.strip() not in there]


@pytest.mark.parametrize("width", [60, 100, 160])
def test_it_fits_whatever_the_width(answer, width):
    for extent in (Extent.ANSWER, Extent.TABLES):
        shown(answer, extent, width)
