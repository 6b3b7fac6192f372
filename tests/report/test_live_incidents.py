"""Incidents in words: how many and how many false alarms, the worst first, more demand apart and never so called."""

import json
import time
from dataclasses import replace

import pytest

from archives import START
from pgstrata.model.archive import ArchiveFacts, Span
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.incidents import DemandChange, DemandKind, Detected, Ending, Found, Incident, IncidentKind
from pgstrata.report.blocks.markdown import emit_markdown
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.blocks.text import emit_text
from pgstrata.report.live.incidents import (
    answer_sentences,
    doubt_sentences,
    make_incidents,
    say_begun,
    say_ended,
    say_factor,
    say_period,
)
from pgstrata.report.live.incidents_json import incident_json, incidents_json

DAY = 86_400
SLOW = Incident(
    kind=IncidentKind.SLOWER, begin=START, begin_interval=ValueInterval(low=START - 3, high=START + 2),
    found=START + 40, end=START + 1140, ending=Ending.USUAL, factor=2.3,
    factor_interval=ValueInterval(low=2.2, high=2.4), peak=4.1, throughput=510.0, usual_throughput=1170.0, load=8.0,
    usual_load=8.1,
)  # fmt: skip
STALLED = replace(
    SLOW, kind=IncidentKind.STALLED, begin=START + 7200, found=START + 7230, end=START + 7290, factor=900.0,
    factor_interval=None, throughput=0.0,
)  # fmt: skip
MORE = DemandChange(
    kind=DemandKind.MORE, begin=START + 9000, found=START + 9030, throughput=2000.0, usual_throughput=1000.0, load=16.0,
    usual_load=8.0, factor=1.0,
)  # fmt: skip
NASTY = "<script>alert('x')</script>\x1b[31m"


@pytest.fixture(autouse=True)
def _utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def found(*incidents, demand=(), **more):
    span = Span(begin=START, end=START + DAY)
    facts = ArchiveFacts(span=span, facts={"server_version": "18.1"}, limits=(), detailed_since=START)
    detected = Detected(
        span=span, rate=more.pop("rate", 1 / (7 * DAY)), seconds=DAY, judged=more.pop("judged", DAY),
        incidents=incidents, demand=demand, gaps=more.pop("gaps", ()),
        limit=more.pop("limit", 1.22), days=more.pop("days", 7),
    )  # fmt: skip
    return Found(
        archive="shop", facts=facts, detected=detected, explained=(None,) * len(incidents),
        coarse_until=more.pop("coarse_until", None), texts=more.pop("texts", {}),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (0.95, "5 % less time"),
        (0.998, "as long as usual"),
        (1.004, "as long as usual"),
        (1.34, "34 % longer"),
        (2.34, "2.3 times as long"),
        (2090.0, "2,100 times as long"),
    ],
)
def test_factors_have_the_digits_that_tell_something_and_follow_the_sign(factor, said):
    assert say_factor(factor) == said


def test_the_answer_begins_with_how_many_and_how_many_are_false():
    assert next(answer_sentences(found(SLOW, STALLED))) == "2 incidents in 24 h; one false alarm a week is expected"
    assert next(answer_sentences(found())) == "No incident in 24 h; one false alarm a week is expected"
    assert next(answer_sentences(found(SLOW, rate=1 / DAY))) == "1 incident in 24 h; one false alarm a day is expected"


def test_the_period_of_a_false_alarm_is_said_as_it_was_asked_for():
    assert [say_period(1 / seconds) for seconds in (3600, DAY, 7 * DAY, 30 * DAY, 3 * DAY)] == [
        "an hour", "a day", "a week", "a month", "every 72 h",
    ]  # fmt: skip


def test_a_very_large_factor_is_told_in_figures_without_an_exponent():
    large = replace(SLOW, factor=1312.0, factor_interval=ValueInterval(low=1283.4, high=1341.4))
    assert "transactions take 1,300 times as long (" in say_begun(large, None)
    assert "x 1,312 [1,283, 1,341]" in " ".join(emit_text(make_incidents(found(large), version="1")).split())


def test_an_incident_is_told_with_its_factor_throughput_and_load():
    said = list(answer_sentences(found(SLOW)))[1]
    assert said == (
        "2026-11-26 16:20:00 to 16:39:00: transactions took 2.3 times as long (throughput 510 instead of 1,170 per "
        "second; load 8.00 instead of 8.10 active sessions)"
    )


def test_a_stall_has_no_factor():
    said = list(answer_sentences(found(STALLED)))[1]
    assert "no transaction ended, while sessions were active" in said
    assert "900" not in emit_text(make_incidents(found(STALLED), "1"))


def test_the_worst_incident_comes_first():
    small = replace(SLOW, begin=START + 20_000, end=START + 20_100, factor=1.3)
    said = list(answer_sentences(found(small, SLOW)))
    assert "2.3 times as long" in said[1]
    assert "30 % longer" in said[2]


def test_a_stall_in_which_nothing_ended_is_worse_than_a_small_slowdown():
    stall = replace(STALLED, factor=1.0)
    small = replace(SLOW, begin=START + 20_000, end=START + 20_100, factor=1.3)
    assert "no transaction ended" in list(answer_sentences(found(small, stall)))[1]
    five = [replace(small, begin=small.begin + 1000 * n, end=small.end + 1000 * n) for n in range(5)]
    assert f"--from @{stall.begin}" in emit_text(make_incidents(found(*five, stall), "1"))


def test_the_lines_to_be_copied_name_an_archive_whose_folder_has_blanks():
    shop = replace(found(SLOW), archive="my shop; rm x")
    assert f"pgstrata explain 'my shop; rm x' --from @{SLOW.begin} --to @{SLOW.end}" in emit_text(
        make_incidents(shop, "1")
    )


def test_more_demand_stands_apart_and_is_never_called_an_incident():
    text = emit_text(make_incidents(found(demand=(MORE,)), "1"))
    assert text.startswith("No incident in 24 h")
    assert "More demand: no incidents" in text
    assert "more" in text
    assert json.loads(incidents_json(found(demand=(MORE,))))["incidents"] == []


def test_other_statements_are_named_and_strangers_texts_are_text():
    other = replace(MORE, kind=DemandKind.STATEMENTS, statements=("q",))
    document = make_incidents(found(demand=(other,), texts={"q": f"select {NASTY}"}), "1")
    assert "other" in emit_text(document)
    assert "\x1b" not in emit_text(document) + emit_markdown(document)
    assert "<script>alert" not in emit_page(document)


def test_what_may_go_unseen_is_said():
    said = list(
        doubt_sentences(
            found(SLOW, judged=DAY - 420, days=0, coarse_until=START + 3600, gaps=(Span(begin=START, end=START + 60),))
        )
    )
    assert said[0] == "a slowdown of less than 22 % that lasts a minute may go unseen"
    assert said[1].startswith("7 min at the beginning, or without known transactions, were not judged")
    assert said[2].startswith("before 2026-11-26 17:20 only minutes are kept")
    assert said[3] == "the recording has 1 gap, 1 min in all: nothing is known of them"
    assert said[4].startswith("fewer than three former days are known")


def test_an_archive_that_is_too_short_cannot_tell():
    (said,) = answer_sentences(found(judged=0, limit=None))
    assert said.startswith("Cannot tell yet")
    assert "7 minutes are needed" in said


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (Ending.USUAL, "the incident of 16:20:00 ended at 16:39:00, after 19 min: transactions took 2.3 times as long"),
        (Ending.ADOPTED, "the incident of 16:20:00 has lasted so long that it counts as usual from now on"),
        (Ending.UNSEEN, "the incident of 16:20:00 was seen until 16:39:00, after 19 min: then nothing was recorded"),
    ],
)
def test_an_end_is_told(ending, said):
    assert say_ended(replace(SLOW, ending=ending)).startswith(said)


def test_a_beginning_is_told_as_what_lasts():
    lasts = replace(SLOW, end=None, ending=None)
    assert say_begun(lasts, None).startswith("incident since 16:20:00: transactions take 2.3 times as long (")
    assert "no transaction ends, while sessions are active" in say_begun(
        replace(lasts, kind=IncidentKind.STALLED), None
    )
    assert "still lasts" in emit_text(make_incidents(found(lasts), "1"))


def test_the_document_for_programs_has_base_units():
    document = json.loads(incidents_json(found(SLOW, demand=(MORE,))))
    assert document["false_alarms_per_day"] == pytest.approx(1 / 7)
    assert document["detectable_factor"] == 1.22
    (incident,) = document["incidents"]
    assert incident["begin"] == START
    assert incident["begin_interval"] == [START - 3, START + 2]
    assert (incident["end"], incident["ending"], incident["kind"]) == (START + 1140, "as usual again", "slower")
    assert (incident["outcome"], incident["cause"]) == (None, None)
    (demand,) = document["demand"]
    assert (demand["kind"], demand["throughput"]) == ("more demand", 2000.0)


def test_a_command_reads_what_is_told():
    document = json.loads(incident_json(SLOW, None, "shop"))
    assert document["answer"] == [say_ended(SLOW)]
    assert document["incident"]["factor"] == 2.3


def test_commands_to_look_closer_name_the_archive_and_the_moments():
    text = emit_markdown(make_incidents(found(SLOW, replace(STALLED, end=None)), "1"))
    assert f"pgstrata explain shop --from @{START} --to @{START + 1140}" in text
    assert f"pgstrata explain shop --from @{START + 7200}" in text
