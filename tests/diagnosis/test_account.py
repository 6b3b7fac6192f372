"""How the time of a transaction is split, on windows with a known truth."""

import numpy as np
import pytest

from pgstrata.diagnosis.account import Seen, choose_method, identify_query
from pgstrata.diagnosis.rows import make_accounts
from pgstrata.model.activity import SessionCount, SessionState
from pgstrata.model.attribution import Method, Part

CLIENT, RUNNING, WAITING = SessionState.CLIENT, SessionState.RUNNING, SessionState.WAITING


def count(state, samples, query="", event=""):
    wait_type, _, name = event.partition("/")
    return SessionCount(state=state, wait_type=wait_type, event=name, query=query, samples=samples)


def window(*counts, seconds=1e-3, cpu=None, queue=None):
    return Seen(seconds=seconds, sessions=counts, cpu=cpu, queue=queue)


def seen(client=500, running=300, waiting=200, **rest):
    return window(
        count(CLIENT, client), count(RUNNING, running, "UPDATE"), count(WAITING, waiting, "END", "IO/WalSync"), **rest
    )  # fmt: skip


def rows_of(accounts, side=0, place=0):
    return dict(zip(accounts.keys, accounts.sides[side].values[:, place].tolist(), strict=True))


def test_without_counted_time_all_is_sampled():
    side = [seen()] * 3
    assert choose_method([side, side]) is Method.SAMPLED
    rows = rows_of(make_accounts([side, side], Method.SAMPLED))
    assert rows == {
        (Part.CLIENT, "", ""): pytest.approx(500e-6),
        (Part.RUNNING, "", "UPDATE"): pytest.approx(300e-6),
        (Part.WAIT, "IO/WalSync", "END"): pytest.approx(200e-6),
    }


def test_counted_time_is_taken_as_it_is_and_the_client_is_what_is_left():
    side = [seen(cpu=310e-6, queue=20e-6)] * 3
    assert choose_method([side, side]) is Method.COUNTED
    rows = rows_of(make_accounts([side, side], Method.COUNTED))
    assert rows[Part.CPU, "", "UPDATE"] == pytest.approx(310e-6)
    assert rows[Part.QUEUE, "", "UPDATE"] == pytest.approx(20e-6)
    assert rows[Part.CLIENT, "", ""] == pytest.approx(470e-6)


def test_time_off_the_cpu_without_an_event_is_the_rest_and_the_client_is_sampled():
    side = [seen(cpu=90e-6, queue=10e-6)] * 3
    assert choose_method([side, side]) is Method.UNNAMED
    rows = rows_of(make_accounts([side, side], Method.UNNAMED))
    assert rows[Part.CLIENT, "", ""] == pytest.approx(500e-6)
    assert rows[Part.REST, "", "UPDATE"] == pytest.approx(200e-6)


def test_one_side_with_unnamed_time_is_enough():
    plain, slept = [seen(cpu=310e-6, queue=0.0)] * 3, [seen(cpu=100e-6, queue=0.0)] * 3
    assert choose_method([plain, slept]) is Method.UNNAMED
    assert choose_method([slept, plain]) is Method.UNNAMED


def test_cpu_used_while_reading_belongs_to_the_event_where_more_is_read():
    def reading(client, running, read, cpu):
        return window(
            count(CLIENT, client), count(RUNNING, running, "SELECT"), count(WAITING, read, "SELECT", "IO/DataFileRead"),
            cpu=cpu, queue=0.0,
        )  # fmt: skip

    small, large = [reading(300, 300, 400, 700e-6)] * 4, [reading(600, 400, 0, 400e-6)] * 4
    assert choose_method([large, small]) is Method.OVERLAPPING
    rows = rows_of(make_accounts([large, small], Method.OVERLAPPING), side=1)
    assert rows[Part.CPU, "", "SELECT"] == pytest.approx(300e-6)
    assert rows[Part.WAIT, "IO/DataFileRead", "SELECT"] == pytest.approx(400e-6)
    assert rows[Part.CLIENT, "", ""] == pytest.approx(300e-6)


@pytest.mark.parametrize("method", list(Method))
def test_rows_add_up_to_the_time_of_a_transaction(method):
    rng = np.random.default_rng(1)
    sides = [
        [
            seen(*rng.integers(0, 200, 3).tolist(), seconds=rng.uniform(1e-4, 1e-2), cpu=1e-4, queue=1e-5)
            for _ in range(5)
        ]
        for _ in range(2)
    ]
    accounts = make_accounts(sides, method)
    for side in accounts.sides:
        np.testing.assert_allclose(side.values.sum(axis=0), side.seconds)


def test_what_is_seen_seldom_is_put_together():
    side = [window(count(CLIENT, 90), count(WAITING, 1, "END", "LWLock/A"), count(WAITING, 1, "SELECT", "LWLock/B"),
                   count(RUNNING, 6, "SELECT"), count(RUNNING, 1, "BEGIN"), count(WAITING, 6, "END", "IO/WalSync"),
                   count(WAITING, 2, "SELECT", "IO/WalSync"))]  # fmt: skip
    keys = set(make_accounts([side, []], Method.SAMPLED).keys)
    assert keys == {
        (Part.CLIENT, "", ""),
        (Part.WAIT, "", ""),
        (Part.RUNNING, "", "SELECT"),
        (Part.RUNNING, "", ""),
        (Part.WAIT, "IO/WalSync", "END"),
        (Part.WAIT, "IO/WalSync", ""),
    }


def test_a_statement_is_the_same_in_all_its_spellings():
    spellings = ("SELECT a  FROM t WHERE b = $1;", "select a from t where b = ?", "SELECT a FROM t WHERE b = 'x''y'",
                 "SELECT a FROM t\nWHERE b = 12.5")  # fmt: skip
    assert len({identify_query(text) for text in spellings}) == 1
    assert identify_query("SELECT a1 FROM t2") == "select a1 from t2"
