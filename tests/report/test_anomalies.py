"""What looked wrong, in words, in the terminal, in the report and as JSON."""

from __future__ import annotations

import dataclasses
import io
import json

import pytest
from rich.console import Console

from pgstrata.model.anomaly import Anomaly, AnomalyKind, Repeat
from pgstrata.report.figures.run_points import find_axes
from pgstrata.report.figures.runs import draw_along
from pgstrata.report.json.answer import answer_json
from pgstrata.report.sentences.anomalies import MOST_SAID, anomaly_sentences
from rendering import render_html, render_terminal, render_text

CELL = "simple-update-s10-c{}"


def kink(**changes):
    fields = {
        "kind": AnomalyKind.KINK, "environment": "pg18", "cell": CELL.format(8), "witness": CELL.format(8),
        "metric": "tps", "effect": 0.82, "blocks": tuple(range(1, 8)), "outcome": Repeat.CONFIRMED,
        "new_blocks": tuple(range(8, 15)), "asked": 7, "again": 0.83,
    }  # fmt: skip
    return Anomaly(**{**fields, **changes})


def run(**changes):
    fields = {
        "kind": AnomalyKind.RUN, "blocks": (7,), "new_blocks": (8,), "asked": 1, "outcome": Repeat.TRANSIENT,
        "again": 0.99,
    }  # fmt: skip
    return kink(**{**fields, **changes})


@pytest.fixture
def answer(desk):
    return desk.answer(cells=tuple(map(desk.cell, (1, 2, 4, 8, 16))), blocks=2)


def doubtful(answer, *anomalies):
    return dataclasses.replace(answer, anomalies=anomalies)


@pytest.mark.parametrize(
    ("anomaly", "text"),
    [
        (kink(), "-18.0 % from the curve through its other points; confirmed kink: -17.0 % in 7 new blocks"),
        (kink(outcome=Repeat.TRANSIENT, again=1.0), "transient: ±0.0 % in 7 new blocks"),
        (kink(outcome=Repeat.UNDECIDED, again=0.97), "undecided: -3.0 % in 7 new blocks"),
        (
            kink(outcome=Repeat.UNDECIDED, new_blocks=(8, 9), witness=CELL.format(4)),
            "points (seen at 4 clients); undecided, not measured again: 2 of 7 new blocks",
        ),
        (run(), "8 clients, block 7: -18.0 % from its median; transient: -1.0 % in block 8"),
        (run(outcome=Repeat.CONFIRMED, again=0.8), "confirmed, it strays again: -20.0 % in block 8"),
        (run(outcome=Repeat.UNDECIDED, new_blocks=(), again=None), "undecided, not measured again"),
    ],
)
def test_each_outcome_is_said_with_its_size_and_its_blocks(answer, anomaly, text):
    (sentence,) = anomaly_sentences(doubtful(answer, anomaly))
    assert sentence.startswith("18, simple-update, scale 10, 8 clients")
    assert sentence.endswith(text)


def test_of_many_the_largest_are_listed_and_the_others_counted(answer):
    many = [run(blocks=(block,)) for block in range(MOST_SAID)]
    *_, last = sentences = anomaly_sentences(doubtful(answer, kink(), *many, run(), run(outcome=Repeat.CONFIRMED)))
    assert len(sentences) == 1 + MOST_SAID + 1
    assert last == "and 2 more: 1 confirmed, 1 transient, 0 undecided"


def test_terminal_text_and_report_list_them_and_are_silent_where_there_is_none(answer):
    found = doubtful(answer, kink())
    stream = io.StringIO()
    Console(file=stream, width=100).print(render_terminal(found, 100))
    for text in (stream.getvalue(), render_text(found), render_html(found)):
        assert "What looked wrong" in text
        assert "confirmed kink" in " ".join(text.split())
    assert "What looked wrong" not in render_text(answer) + render_html(answer)


@pytest.mark.parametrize(("outcome", "ringed"), [(Repeat.CONFIRMED, True), (Repeat.TRANSIENT, False)])
def test_a_kink_is_ringed_in_the_chart_unless_it_was_a_transient(answer, outcome, ringed):
    (axis,) = find_axes(answer.study.plan.experiment)
    figure = draw_along(doubtful(answer, kink(outcome=outcome)), axis)
    assert ("rings mark kinks" in figure.title) is ringed
    assert (figure.svg == draw_along(answer, axis).svg) is not ringed


def test_all_of_them_are_in_the_json(answer):
    (first, second) = json.loads(answer_json(doubtful(answer, kink(), run(new_blocks=(), again=None))))["anomalies"]
    assert (first["kind"], first["outcome"], first["effect"], first["again"]) == ("kink", "confirmed", 0.82, 0.83)
    assert (first["new_blocks"], first["asked"]) == (list(range(8, 15)), 7)
    assert (second["kind"], second["blocks"], second["again"]) == ("run", [7], None)
