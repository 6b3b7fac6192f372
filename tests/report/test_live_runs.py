"""Environments of a study in the words of an archive, but for what is no time there."""

import re
from dataclasses import replace

import pytest

from archives import session
from pgstrata.diagnosis.live.explain import explain_runs
from pgstrata.model.archive import ArchiveFacts, ArchiveWindow, Span
from pgstrata.model.explanation import Chosen, Explained, Outcome
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.blocks.text import emit_text
from pgstrata.report.live.answer import answer_sentences
from pgstrata.report.live.document import make_explanation

NOISE = (0.98, 1.01, 1.0, 1.02, 0.99, 1.01, 0.97, 1.03)
OTHER = (1.01, 0.99, 1.02, 0.98, 1.0, 0.97, 1.03, 1.01)


def window(load, rate, number, noise):
    return ArchiveWindow(
        span=Span(begin=0, end=60 * number), unit=1, cell=60, looks=(600,) * number,
        sessions={session("update", "IO/WalSync"): tuple(round(600 * load * each) for each in noise[:number])},
        rates={"commits": tuple(rate * each for each in reversed(noise[:number]))},
    )  # fmt: skip


def explained(load, rate, number=8):
    blocks = tuple(range(3, 3 + number))
    ours, theirs = window(load, rate, number, NOISE), window(2.0, 1000.0, number, OTHER)
    found = explain_runs(ours, theirs, effect=0.03, paced=False, blocks=blocks)
    found = replace(
        found,
        window=replace(found.window, name="new", label="pg18", runs=number),
        comparison=replace(found.comparison, name="old", label="pg16", runs=number),
    )
    chosen = Chosen(window=ours.span, comparison=theirs.span, around=ours.span, clipped=False)
    facts = ArchiveFacts(span=ours.span, facts={}, limits=(), detailed_since=0)
    return Explained(archive="study", facts=facts, chosen=chosen, explanation=found, texts={}, cell="update-s1-c4")


@pytest.mark.parametrize(
    ("load", "rate", "outcome", "said"),
    [
        (3.0, 700.0, Outcome.INCIDENT, "In pg18 transactions were slower"),
        (1.5, 1300.0, Outcome.FASTER, "In pg18 transactions were faster"),
        (2.0, 1000.0, Outcome.SAME, "No change was found in pg18"),
        (1.6, 800.0, Outcome.FEWER, "In pg18 throughput was lower (801 instead of 1,001 per second"),
        (2.6, 1300.0, Outcome.MORE, "it is not certain that transactions took less time in the server"),
    ],
)
def test_each_outcome_names_the_environment_and_no_time(load, rate, outcome, said):
    found = explained(load, rate)
    assert found.explanation.outcome is outcome
    first = next(answer_sentences(found))
    assert said in first
    assert "From " not in first
    assert "demand" not in first


def test_too_few_blocks_say_how_many_an_interval_needs():
    assert next(answer_sentences(explained(3.0, 700.0, number=3))) == (
        "Cannot tell whether anything differs in pg18: both environments have 3 blocks, and an interval needs 5 "
        "(throughput 698 instead of 1,007 per second)"
    )


def test_the_document_has_the_names_of_both_in_its_tables():
    text = emit_text(make_explanation(explained(3.0, 700.0), "1"))
    assert "Is pg18 slower than pg16, and why?" in " ".join(text.split())
    assert "before" not in text.split("Where the load is")[1].split("Load is")[0]
    assert "pg16, 8 runs" in text
    assert "update-s1-c4" in text
    assert max(map(len, text.splitlines())) <= 78


def test_a_page_has_a_chart_of_each_environment_by_block_on_the_same_axes():
    page = emit_page(make_explanation(explained(3.0, 700.0), "1"))
    charts = re.findall(r'aria-label="([^"]*)">(.*?)</div>', page, flags=re.DOTALL)
    labels = [label for label, _ in charts]
    assert labels == [f"Load by class of wait events, and throughput, of {name} by block." for name in ("pg16", "pg18")]
    before, after = (re.findall(r"<text[^>]*>([^<]*)</text>", chart) for _, chart in charts)
    assert before == after
    assert {"IO", "3", "10", "block", "active sessions", "tps"} <= set(before)
    assert "<h3>pg16</h3>" in page or "<h4>pg16</h4>" in page
