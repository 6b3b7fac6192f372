"""Times as they are spoken: of the archive's last day, with or without a zone, and the time before as comparison."""

import time

import pytest

from pgstrata.app.live_windows import choose_windows, say_span
from pgstrata.errors import ArchiveError, UsageError
from pgstrata.model.archive import ArchiveFacts, Span

BEGIN, END = 1_795_680_000, 1_795_712_400
"""2026-11-26, 08:00 and 17:00 UTC."""


@pytest.fixture(autouse=True)
def _zone(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def choose(begin=None, end=None, against=None, span=(BEGIN, END)):
    facts = ArchiveFacts(span=Span(begin=span[0], end=span[1]), facts={}, limits=(), detailed_since=span[0])
    return choose_windows(facts, begin, end, against)


def test_a_time_of_the_day_is_local_and_of_the_last_day():
    found = choose("13:28", "13:47")
    assert found.window == Span(begin=BEGIN + 4 * 3600 + 28 * 60, end=BEGIN + 4 * 3600 + 47 * 60)
    assert found.comparison.end == found.window.begin
    assert found.comparison.seconds == 4 * found.window.seconds
    assert not found.clipped


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("2026-11-26T13:28", "2026-11-26T13:47"),
        ("2026-11-26T12:28:00+00:00", "2026-11-26T12:47:00Z"),
        ("2026-11-26 13:28:00", "13:47:00"),
        (f"@{1_795_680_000 + 4 * 3600 + 28 * 60}", "13:47"),
    ],
)
def test_dates_and_zones_can_be_given(begin, end):
    assert choose(begin, end).window == choose("13:28", "13:47").window


def test_a_window_over_midnight_and_times_later_than_the_archive_are_those_of_the_day_before():
    span = (BEGIN - 86_400, BEGIN)  # to 09:00 local
    found = choose("23:50", "00:10", span=span)
    assert found.window == Span(begin=BEGIN - 9 * 3600 - 600, end=BEGIN - 9 * 3600 + 600)
    assert choose("10:00", "10:30", span=span).window.begin == BEGIN - 23 * 3600


def test_the_comparison_is_cut_to_what_there_is_and_can_be_named():
    assert choose("09:10", "09:40").comparison == Span(begin=BEGIN, end=BEGIN + 600)
    assert choose("13:28", "13:47", "12:00..12:30").comparison == Span(
        begin=BEGIN + 3 * 3600, end=BEGIN + 3 * 3600 + 1800
    )
    assert choose("13:28", "13:47", "14:00..").comparison.end == END


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (("25:00", "26:00"), UsageError, "'25:00' is not a time of the day"),
        (("lunch", "13:00"), UsageError, "'lunch' is not a time"),
        (("2026-11-26T13:47", "2026-11-26T13:28"), UsageError, "ends before it begins"),
        (("13:47", "13:28"), UsageError, "ends before it begins"),
        (("2026-11-25T13:00", "2026-11-25T14:00"), ArchiveError, "nothing is recorded from"),
        (("09:00", "09:30"), ArchiveError, "nothing is recorded before this window"),
        (("13:28", "13:47", "13:40..13:50"), UsageError, "overlap"),
        (("13:28", "13:47", "12:00"), UsageError, "'12:00' is not a window"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_remedy(arguments, error, said):
    with pytest.raises(error, match=said) as caught:
        choose(*arguments)
    assert caught.value.remedy


def test_a_window_beyond_the_archive_is_cut_and_that_is_known():
    found = choose("17:30", "2026-11-26T19:00")
    assert found.window.end == END
    assert (found.clipped, found.comparison_clipped) == (True, False)


def test_a_comparison_window_beyond_the_archive_is_cut_and_that_is_known():
    found = choose("13:28", "13:47", "2026-11-26T08:00..2026-11-26T12:00")
    assert (found.clipped, found.comparison_clipped) == (False, True)


BACK = 1_792_890_000
"""2026-10-25 01:00 UTC: in Berlin, 03:00 became 02:00."""
FORWARD = 1_774_746_000
"""2026-03-29 01:00 UTC: in Berlin, 02:00 became 03:00."""
DAY = 86_400


def around(moment):
    return moment - 20 * 3600, moment + 3 * 3600


def test_a_time_that_came_twice_is_the_last_one_before_the_archives_end():
    assert choose("02:30", "02:45", span=around(BACK)).window == Span(begin=BACK + 1800, end=BACK + 2700)
    early = (BACK - DAY, BACK + 600)  # the archive ends at 02:10, the second time
    assert choose("02:05", None, span=early).window.begin == BACK + 300
    assert choose("02:30", None, span=early).window.begin == BACK - 1800
    for text in ("2026-10-25T02:30+02:00", "2026-10-25T00:30Z"):
        assert choose(text, "02:45", span=around(BACK)).window == Span(begin=BACK - 1800, end=BACK - 900)
    assert choose("2026-10-25T02:30", None, span=around(BACK)).window.begin == BACK + 1800


def test_a_window_over_the_hour_that_came_twice_ends_at_the_first_such_time():
    assert choose("01:50", "02:30", span=around(BACK)).window == Span(begin=BACK - 4200, end=BACK - 1800)
    assert choose("01:50", "03:10", span=around(BACK)).window == Span(begin=BACK - 4200, end=BACK + 4200)
    assert choose("01:50", "2026-10-25T02:30", span=around(BACK)).window.end == BACK - 1800


def test_a_time_that_was_skipped_is_when_clocks_were_set_forward():
    assert choose("02:30", "03:30", span=around(FORWARD)).window == Span(begin=FORWARD, end=FORWARD + 1800)
    assert choose("01:30", "02:30", span=around(FORWARD)).window == Span(begin=FORWARD - 1800, end=FORWARD)
    assert choose("2026-03-29T02:15", "03:30", span=around(FORWARD)).window.begin == FORWARD
    before = (FORWARD - 2 * DAY, FORWARD - 3600)
    assert choose("02:30", "03:00", span=before).window.begin == FORWARD - DAY + 1800


def test_a_day_of_25_hours_has_all_of_them():
    found = choose("2026-10-25", "2026-10-26", span=(BACK - 2 * DAY, BACK + 2 * DAY))
    assert found.window.seconds == 25 * 3600
    assert say_span(found.window) == "2026-10-25 00:00:00 CEST to 2026-10-26 00:00:00 CET"
    assert say_span(Span(begin=BACK - 1800, end=BACK + 1800)) == "2026-10-25 02:30:00 CEST to 02:30:00 CET"


def test_the_end_of_a_window_with_a_date_is_the_time_that_follows_its_beginning():
    span = (BEGIN - 4 * DAY, END)
    found = choose("2026-11-24T13:28", "13:47", span=span).window
    assert found == Span(begin=BEGIN - 2 * DAY + 4 * 3600 + 28 * 60, end=BEGIN - 2 * DAY + 4 * 3600 + 47 * 60)
    assert choose("2026-11-24T23:50", "00:10", span=span).window.seconds == 1200
    assert choose(None, "13:47", "14:00..15:00", span=span).window.end == BEGIN + 4 * 3600 + 47 * 60


def test_the_zone_is_that_of_whoever_asks(monkeypatch):
    here = choose("13:28", "13:47").window
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    assert choose("07:28", "07:47").window == here
    assert say_span(here) == "2026-11-26 07:28:00 to 07:47:00"


def test_a_window_that_begins_before_the_archive_is_cut_and_needs_another_one_to_compare_with():
    with pytest.raises(ArchiveError, match="nothing is recorded before this window"):
        choose("2026-11-26T07:00", "09:30")
    found = choose("2026-11-26T07:00", "09:30", "10:00..10:30")
    assert (found.window, found.clipped) == (Span(begin=BEGIN, end=BEGIN + 1800), True)


@pytest.mark.parametrize(
    "text", ["@99999999999999999999", "@32503680001", "0001-01-01", "9999-12-31T23:59", "0001-01-01T00:00+14:00", "@-1"]
)
def test_moments_that_no_clock_shows_are_refused(text):
    for begin, end in ((text, None), (None, text), (text, text)):
        with pytest.raises(UsageError, match="is not a time"):
            choose(begin, end)
