"""Associations in words: which series leads, what was tested, what would have been found; foreign text is text."""

import json
from dataclasses import replace

import pytest

from pgstrata.model.archive import ArchiveFacts, Span
from pgstrata.model.association import Associated, Association, Associations
from pgstrata.model.attribution import ValueInterval
from pgstrata.report.blocks.markdown import emit_markdown
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.blocks.text import emit_text
from pgstrata.report.live.correlate import (
    answer_sentences,
    associations_json,
    doubt_sentences,
    make_associations_document,
)

SPAN = Span(begin=1_795_711_000, end=1_795_714_600)
NASTY = "LWLock/<script>alert('x')</script>\x1b[31m"


def pair(event="LWLock/WALWrite", rate="disk_await", rho=0.62, lead=10, **more):
    standard = {
        "interval": ValueInterval(low=rho - 0.12, high=rho + 0.08), "leads": (lead, lead), "p": 1e-9,
        "adjusted": 1e-6, "resolved": True, "steps": 350, "held": True,
    }  # fmt: skip
    return Association(event=event, rate=rate, rho=rho, lead=lead, **(standard | more))


def unresolved(number=1):
    return [pair(rate="wal_bytes", rho=0.1, p=0.2, adjusted=1.0, resolved=False) for _ in range(number)]


def associated(*rows, limits=(), clipped=False, **more):
    standard = {
        "span": SPAN, "step": 10, "unit": 1, "steps": 360, "all_steps": 360, "longest": 60, "held": True,
        "shapes": (), "parts": 3, "constant": (), "limit": 0.31,
    }  # fmt: skip
    facts = ArchiveFacts(span=SPAN, facts={}, limits=limits, detailed_since=SPAN.begin)
    return Associated(archive="shop", facts=facts, clipped=clipped, found=Associations(rows=rows, **(standard | more)))


def words(found):
    return " ".join(emit_text(make_associations_document(found, "1")).split())


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            pair(),
            "Load in LWLock/WALWrite goes with time of a request to a disk (rho 0.62 [0.50, 0.70]), which leads by 10 s",
        ),
        (pair(lead=-20), "which follows by 20 s"),
        (pair(lead=0), "(rho 0.62 [0.50, 0.70]), at the same time"),
        (pair(lead=10, leads=(0, 20)), "which leads by 10 s (0 s to +20 s would fit)"),
        (pair(lead=0, leads=(-10, 0)), "at the same time (-10 s to 0 s would fit)"),
        (pair(lead=120), "which leads by 2 min"),
        (
            pair(rate="commits", rho=-0.5),
            "Load in LWLock/WALWrite goes with a fall in transactions committed (rho -0.50 [-0.62, -0.42])",
        ),
        (pair(event="", rate="disk_await"), "Load in CPU and run queue goes with time of a request to a disk"),
    ],
)
def test_an_association_is_told_with_strength_interval_and_lag(row, said):
    assert said in next(answer_sentences(associated(row)))


def test_throughput_that_falls_with_a_wait_comes_first():
    rows = (pair(rho=0.9), pair(rate="commits", rho=-0.4), pair(rate="commits", rho=0.95))
    first, *_ = answer_sentences(associated(*rows))
    assert "a fall in transactions committed" in first


def test_all_that_was_tested_is_counted_and_a_cause_is_denied_once():
    found = associated(*(pair(rho=0.9 - number / 100) for number in range(7)), *unresolved(20))
    sentences = list(answer_sentences(found))
    assert len(sentences) == 6
    assert sentences[-1] == (
        "7 of 27 pairs of a wait event and another series are associated, 2 of them only in the table. An association is "
        "not a cause"
    )
    assert words(found).count("not a cause") == 1


def test_a_weak_association_is_in_the_table_only():
    found = associated(pair(), pair(rate="wal_bytes", rho=0.06))
    first, last = answer_sentences(found)
    assert "WALWrite goes with time" in first
    assert last.startswith(
        "2 of 2 pairs of a wait event and another series are associated, 1 of them only in the table"
    )
    assert "LWLock/WALWrite, WAL 0.06" in words(found)


def test_where_nothing_was_found_it_is_said_what_would_have_been():
    (only,) = answer_sentences(associated(*unresolved(9)))
    assert only == (
        "No association was found among 9 pairs of a wait event and another series; one with rho 0.31 would have been "
        "found in four of five such windows"
    )


def test_where_nothing_changes_nothing_could_be_compared():
    (only,) = answer_sentences(associated(limit=None))
    assert only.startswith("Nothing could be compared")
    assert words(associated(limit=None))


def test_what_limits_the_answer_is_said():
    found = associated(
        pair(rate="commits", rho=-0.5), limits=("no_host",), clipped=True, held=False, steps=300, unit=60
    )
    said = words(found)
    for each in (
        "the window was cut to it",
        "60 steps of 360 have no samples of sessions and were left out",
        "sums of minutes",
        "so effects of demand could not be removed",
        "with rho below 0.31 may have stayed unseen",
        "a single event, such as a step to another level, may not show",
        "the server is on another machine",
    ):
        assert each in said
    assert not any("no samples of sessions" in each for each in doubt_sentences(associated(pair())))


def test_where_throughput_is_an_effect_it_is_said_that_it_was_not_taken_out():
    said = "throughput falls as both series of 1 associated pair grow: there it is an effect"
    found = associated(pair(held=False), pair(rate="commits", rho=-0.5, held=False), pair(rate="wal_bytes"))
    assert any(said in each for each in doubt_sentences(found))
    assert not any("there it is an effect" in each for each in doubt_sentences(associated(pair())))
    assert not any(
        "there it is an effect" in each for each in doubt_sentences(associated(pair(held=False), held=False))
    )


def test_pairs_that_are_not_resolved_are_folded_and_shortened():
    text = words(associated(pair(), *unresolved(40)))
    assert "Not resolved: 40 pairs" in text
    assert "28 further pairs are not shown" in text
    page = emit_page(make_associations_document(associated(pair(), *unresolved(40)), "1"))
    assert "<details" in page


def test_names_from_the_server_are_text_everywhere():
    document = make_associations_document(associated(pair(event=NASTY), constant=(NASTY,)), "1")
    assert "<script>alert" not in emit_page(document)
    for text in (emit_text(document), emit_markdown(document), emit_page(document)):
        assert "\x1b" not in text


def test_programs_get_all_pairs():
    row = replace(pair(), interval=ValueInterval(low=0.5, high=0.7))
    found = json.loads(associations_json(associated(row, *unresolved(3))))
    assert found["tested"] == 4
    assert found["limit"] == 0.31
    assert found["associations"][0] == {
        "event": "LWLock/WALWrite", "rate": "disk_await", "held": True, "rho": 0.62, "interval": [0.5, 0.7], "lead": 10,
        "leads": [10, 10], "p": 1e-9, "adjusted": 1e-6, "resolved": True, "steps": 350,
    }  # fmt: skip
