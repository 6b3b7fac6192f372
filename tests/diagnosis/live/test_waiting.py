"""The statements that waited for an event: all samples are there, and the list is by samples."""

import pytest

from archives import session, use
from pgstrata.diagnosis.live.waiting import find_waits, match_events, seen_events
from pgstrata.model.archive import ArchiveWindow, Span

EVENT = "LWLock/BufferMapping"
FIRST, SECOND = session("first", EVENT), session("second", EVENT)
REPORT = session("first", EVENT, application="report")
WALWRITER = session("", "IO/WalSync", state="", kind="walwriter", application="")


def window(sessions, looks=100, **more):
    """All samples are in the first of two cells."""
    return ArchiveWindow(
        span=Span(begin=0, end=looks), unit=1, cell=looks // 2, looks=(looks // 2,) * 2,
        sessions={each: (samples, 0) for each, samples in sessions.items()}, rates={}, **more,
    )  # fmt: skip


SESSIONS = {
    SECOND: 150, FIRST: 90, REPORT: 120, session("third", EVENT): 30, session("fourth", EVENT): 12,
    session("first"): 500, session("second", "LWLock/WALWrite"): 98, session("first", "Lock/tuple", state="idle"): 7,
    session("", EVENT, state="", kind="autovacuum worker"): 5,
}  # fmt: skip


def test_statements_are_listed_by_samples_and_the_rest_is_one_row():
    found = find_waits(window(SESSIONS), {EVENT}, 100)
    assert [(row.statement, row.samples) for row in found.rows] == [("first", 210), ("second", 150)]
    assert (found.remainder.samples, found.remainder.members, found.remainder.statement) == (42, 2, None)
    assert found.whole.samples == 402
    assert found.load == 1000
    assert found.elsewhere == 5
    assert found.events == ((EVENT, 402),)
    first = found.rows[0]
    assert (first.seconds, first.of_event, first.of_load) == (210.0, 210 / 402, 0.21)
    assert first.applications == ("report", "shop")
    assert first.databases == ("shop",)


@pytest.mark.parametrize(("at_least", "listed"), [(1, 4), (30, 3), (31, 2), (211, 0)])
def test_a_statement_with_just_enough_samples_is_listed(at_least, listed):
    found = find_waits(window(SESSIONS), {EVENT}, at_least)
    assert len(found.rows) == listed
    rest = found.remainder.samples if found.remainder else 0
    assert sum(row.samples for row in found.rows) + rest == found.whole.samples


def test_calls_and_latency_are_those_that_were_counted_and_unknown_otherwise():
    uses = {"first": use(2000, 4.0), "second": use(0, 0.0)}
    rows = find_waits(window(SESSIONS, statements=uses, counted=50.0), {EVENT}, 30).rows
    assert [(row.calls, row.latency) for row in rows] == [(40.0, 0.002), (0.0, None), (None, None)]
    rows = find_waits(window(SESSIONS, statements=uses, counted=None), {EVENT}, 30).rows
    assert {(row.calls, row.latency) for row in rows} == {(None, None)}


def test_the_interval_holds_the_samples_and_is_about_two_roots_wide():
    row = find_waits(window(SESSIONS), {EVENT}, 100).rows[0]
    assert row.interval.low < 210 < row.interval.high
    assert (row.interval.high - row.interval.low) / 2 == pytest.approx(1.96 * 210**0.5, rel=0.03)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("LWLock/BufferMapping", {EVENT}),
        (" lwlock/BUFFERMAPPING ", {EVENT}),
        ("lwlock", {EVENT, "LWLock/WALWrite"}),
        ("bufferMapping", {EVENT}),
        ("lock", {"Lock/tuple", "Lock/transactionid"}),
        ("Lock/", set()),
        ("Buffer", set()),
        ("", set()),
    ],
)
def test_an_event_is_named_whole_by_its_type_or_by_its_name_in_any_case(asked, meant):
    events = (EVENT, "LWLock/WALWrite", "Lock/tuple", "Lock/transactionid")
    assert match_events(asked, events) == meant


def test_events_of_sessions_that_are_no_part_of_the_load_are_told_apart():
    found = window({**SESSIONS, WALWRITER: 60})
    assert seen_events(found) == ((EVENT, 402), ("LWLock/WALWrite", 98))
    assert seen_events(found, load=False) == (("IO/WalSync", 60), ("Lock/tuple", 7), (EVENT, 5))
