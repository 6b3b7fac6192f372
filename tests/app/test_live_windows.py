"""Times as they are spoken: of the archive's last day, with or without a zone, and the time before as comparison."""

import time

import pytest

from pgstrata.app.live_windows import choose_windows
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
    assert found.clipped
