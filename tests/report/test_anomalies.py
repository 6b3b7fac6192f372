"""What looked wrong, in words, in the terminal, in the report and as JSON."""

from __future__ import annotations

import dataclasses
import io
import json

import pytest
from rich.console import Console

from pgstrata.model.anomaly import Anomaly, AnomalyKind
from pgstrata.report.json.answer import answer_json
from pgstrata.report.sentences.answer import MOST_SAID, anomaly_sentences
from rendering import render_html, render_terminal, render_text

CELL = "simple-update-s10-c{}"


def kink(**changes):
    fields = {
        "kind": AnomalyKind.KINK,
        "environment": "pg18",
        "cell": CELL.format(8),
        "witness": CELL.format(8),
        "metric": "tps",
        "effect": 0.82,
        "blocks": tuple(range(1, 8)),
    }
    return Anomaly(**{**fields, **changes})


def run(**changes):
    fields = {"kind": AnomalyKind.RUN, "blocks": (7,), "following": 0.99}
    return kink(**{**fields, **changes})


@pytest.fixture
def answer(desk):
    return desk.answer(cells=tuple(map(desk.cell, (1, 2, 4, 8, 16))), blocks=2)


def doubtful(answer, *anomalies):
    return dataclasses.replace(answer, anomalies=anomalies)


@pytest.mark.parametrize(
    ("anomaly", "text"),
    [
        (kink(), "-18.0 % from the curve through its other points"),
        (kink(witness=CELL.format(4)), "points (seen at 4 clients)"),
        (run(), "8 clients, block 7: -18.0 % from its median; the next run: -1.0 %"),
        (run(following=None), "8 clients, block 7: -18.0 % from its median"),
    ],
)
def test_each_is_said_with_its_size_its_place_and_what_tells_more(answer, anomaly, text):
    sentence, remedy = anomaly_sentences(doubtful(answer, anomaly))
    assert sentence.startswith("18, simple-update, scale 10, 8 clients")
    assert sentence.endswith(text)
    assert remedy.endswith("pgstrata run EXPERIMENT.toml --study NEW_FOLDER")


def test_of_many_the_largest_are_listed_and_the_others_counted(answer):
    many = [run(blocks=(block,)) for block in range(MOST_SAID)]
    *_, last, _ = sentences = anomaly_sentences(doubtful(answer, kink(), *many, run(), run()))
    assert len(sentences) == 1 + MOST_SAID + 2
    assert last == "and 2 more"


def test_terminal_text_and_report_list_them_and_are_silent_where_there_is_none(answer):
    found = doubtful(answer, kink())
    stream = io.StringIO()
    Console(file=stream, width=100).print(render_terminal(found, 100))
    for text in (stream.getvalue(), render_text(found), render_html(found)):
        assert "What looked wrong" in text
        assert "from the curve" in " ".join(text.split())
    assert "What looked wrong" not in render_text(answer) + render_html(answer)


def test_a_kink_is_ringed_in_the_chart(answer):
    page = render_html(doubtful(answer, kink()))
    assert "point off its curve" in page
    assert "point off its curve" not in render_html(answer)


def test_all_of_them_are_in_the_json(answer):
    (first, second) = json.loads(answer_json(doubtful(answer, kink(), run())))["anomalies"]
    assert (first["kind"], first["effect"], first["following"]) == ("kink", 0.82, None)
    assert (second["kind"], second["blocks"], second["following"]) == ("run", [7], 0.99)
