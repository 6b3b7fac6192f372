"""The last minutes of a recorder, as steps and windows."""

import pytest

from archives import START, counted, session, use
from pgstrata.app.watching.lately import Lately
from pgstrata.model.archive import SessionsLook, Span
from pgstrata.ports.recording import RecordedSecond

SELECT = session("select")


@pytest.mark.parametrize("period", [1, 10])
def test_transactions_of_a_window_count_for_all_seconds_of_a_rate(period):
    lately = Lately(10)
    for number in range(1, 61):
        told = number % period == 0
        lately.add(
            RecordedSecond(
                moment=START + number,
                look=SessionsLook(counts={SELECT: 2}, blocked={}),
                server={"commits": 50.0} if told else {},
                server_seconds=float(period) if told else 0.0,
                counted=counted({"select": use(calls=500, seconds=1.0)}) if number % 10 == 0 else None,
            )
        )
    window = lately.window(Span(begin=START + 1, end=START + 61))
    assert window.counted == 60
    assert window.transactions == pytest.approx(50.0 * 60)
    assert window.statements["select"].calls == 3000


def seconds(first, last):
    look = SessionsLook(counts={SELECT: 2}, blocked={})
    return [
        RecordedSecond(moment=START + number, look=look, server={"commits": 50.0}, server_seconds=1.0)
        for number in range(first, last)
    ]


def test_what_an_archive_has_goes_on_with_what_is_recorded():
    lately = Lately(10)
    lately.recall(seconds(1, 24))
    steps = [step for second in seconds(26, 41) if (step := lately.add(second)) is not None]
    assert [(step.end - START, step.looks) for step in steps] == [(30, 8), (40, 10)]
    assert sum(lately.window(Span(begin=START + 1, end=START + 41)).looks) == 38


def test_a_step_that_ended_while_nothing_was_recorded_is_told_first():
    lately = Lately(10)
    lately.recall(seconds(1, 24))
    (step,) = (step for second in seconds(35, 36) if (step := lately.add(second)) is not None)
    assert (step.end - START, step.looks) == (30, 3)


def test_without_an_archive_there_is_nothing_to_recall():
    lately = Lately(10)
    lately.recall(())
    assert lately.add(seconds(1, 2)[0]) is None
