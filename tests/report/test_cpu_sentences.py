"""What is said of differences that CPU per transaction shows, beside the verdict on throughput."""

import dataclasses
import json

import pytest

from pgstrata.model.answer import CpuFinding, Interval, Size, Verdict
from pgstrata.report.answer.document import make_document
from pgstrata.report.blocks.text import emit_text
from pgstrata.report.json.answer import answer_json
from pgstrata.report.sentences.answer import answer_sentences

CELL = "select-only-s10-c2"


def make_size(metric, effect, verdict=Verdict.INCONCLUSIVE):
    return Size(metric=metric, verdict=verdict, effect=effect, interval=Interval(low=effect - 0.05, high=effect + 0.05))


def make_finding(*, server=1.061, client=1.011, tps=0.979, verdict_of_tps=Verdict.INCONCLUSIVE, **changes):
    values = {
        "environment": "pg18",
        "cells": (CELL,),
        "verdict": Verdict.WORSE,
        "effect": 1.05,
        "interval": Interval(low=1.02, high=1.08),
        "level": 0.01,
        "repeated_p": 0.01,
        "blocks": 12,
        "decided_at": 12,
        "control": False,
        "server_cpu": make_size("server_cpu_per_tx", server),
        "client_cpu": make_size("client_cpu_per_tx", client),
        "throughput": make_size("tps", tps, verdict_of_tps),
    }
    return CpuFinding(**{**values, **changes})


@pytest.fixture
def answer(desk):
    """One comparison that cannot tell, and findings by CPU beside it."""
    cells = (desk.cell(2, "select-only"),)
    comparison = desk.comparison(
        cell=CELL, verdict=Verdict.INCONCLUSIVE, effect=0.979, interval=Interval(low=0.93, high=1.03)
    )

    def make(*findings, cells=cells):
        found = desk.verdict_answer(comparison, cells=cells)
        return dataclasses.replace(found, cpu_findings=findings)

    return make


def said(answer):
    return [sentence for sentence in answer_sentences(answer) if "server CPU" in sentence.text]


def test_what_cpu_alone_shows_is_said_with_both_sizes_and_what_shows_it(answer):
    (sentence,) = said(answer(make_finding()))
    assert sentence.text == (
        "18 uses more server CPU per transaction than 16: server CPU +6.1 % [+1.1, +11.1], "
        "throughput -2.1 % [-7.1, +2.9] (cannot tell). "
        "The ratio of server to client CPU shows it (+5.0 % [+2.0, +8.0] at 99 % confidence), but not its size"
    )


def test_it_stands_behind_the_headline_and_is_no_louder(answer):
    first, second, *_ = answer_sentences(answer(make_finding()))
    assert "cannot be told apart" in first.text
    assert (first.minor, first.alarm) == (False, False)
    assert (second.minor, second.alarm) == (True, False)
    assert second.text.startswith("18 uses more server CPU")


def test_less_server_cpu_is_said_as_such(answer):
    finding = make_finding(verdict=Verdict.BETTER, effect=0.95, server=0.93, tps=1.02)
    assert said(answer(finding))[0].text.startswith(
        "18 uses less server CPU per transaction than 16: server CPU -7.0 %"
    )


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (Verdict.EQUIVALENT, "throughput -2.1 % [-7.1, +2.9] (no difference larger than 3 %)"),
        (Verdict.INSUFFICIENT, "throughput -2.1 % [-7.1, +2.9] (too early to tell)"),
        (Verdict.UNSTABLE, "throughput unstable"),
    ],
)
def test_what_throughput_came_to_is_said(answer, verdict, words):
    assert words in said(answer(make_finding(verdict_of_tps=verdict)))[0].text


def test_where_throughput_shows_the_same_nothing_is_repeated(answer):
    assert not said(answer(make_finding(verdict_of_tps=Verdict.WORSE)))
    assert not said(answer(make_finding(verdict_of_tps=Verdict.NEGLIGIBLE)))


def test_more_server_cpu_beside_higher_throughput_is_said(answer):
    (sentence,) = said(answer(make_finding(tps=1.2, verdict_of_tps=Verdict.BETTER)))
    assert "throughput +20.0 % [+15.0, +25.0] (higher)" in sentence.text


def test_where_server_cpu_moved_the_other_way_only_a_difference_is_claimed(answer):
    (sentence,) = said(answer(make_finding(server=0.99)))
    assert sentence.text.startswith("18 differs in CPU per transaction from 16: ")


def test_what_was_not_found_is_not_said(answer):
    assert not said(answer(make_finding(verdict=Verdict.INCONCLUSIVE, decided_at=None)))


def test_a_control_that_differs_by_cpu_puts_such_differences_in_doubt(answer):
    (sentence,) = said(answer(make_finding(control=True)))
    assert sentence.text.startswith("The control (18) uses more server CPU")
    assert sentence.text.endswith("so doubt every difference that only CPU shows")


def test_cells_are_named_where_there_are_several(desk, answer):
    cells = (desk.cell(2, "select-only"), desk.cell(4, "select-only"), desk.cell(2))
    (sentence,) = said(answer(make_finding(), cells=cells))
    assert "than 16 on select-only with 2 clients: " in sentence.text
    both = tuple(cell.identity for cell in cells[:2])
    (sentence,) = said(answer(make_finding(cells=both), cells=cells))
    assert "than 16 on the 2 cells that only read: " in sentence.text


def test_the_text_answer_shows_it(answer):
    text = " ".join(emit_text(make_document(answer(make_finding()))).split())
    assert "18 uses more server CPU per transaction than 16" in text


def test_findings_by_cpu_have_entries_of_their_own_in_json(answer):
    document = json.loads(answer_json(answer(make_finding())))
    assert [item["verdict"] for item in document["comparisons"]] == ["inconclusive"]
    (found,) = document["cpu_findings"]
    assert (found["environment"], found["reference"], found["cells"]) == ("pg18", "pg16", [CELL])
    assert (found["verdict"], found["alone"], found["control"]) == ("worse", True, False)
    assert (found["effect"], found["interval"], found["level"]) == (1.05, [1.02, 1.08], 0.01)
    assert (found["blocks"], found["decided_at"], found["repeated_p"]) == (12, 12, 0.01)
    assert [size["metric"] for size in found["sizes"]] == ["server_cpu_per_tx", "client_cpu_per_tx", "tps"]
    assert found["sizes"][2]["verdict"] == "inconclusive"


def test_a_finding_that_throughput_shows_too_is_not_alone(answer):
    document = json.loads(answer_json(answer(make_finding(verdict_of_tps=Verdict.WORSE))))
    assert document["cpu_findings"][0]["alone"] is False
