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
