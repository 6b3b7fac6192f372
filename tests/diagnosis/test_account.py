"""How the time of a transaction is split, on windows with a known truth."""

import numpy as np
import pytest

from pgstrata.diagnosis.account import Seen, choose_method
from pgstrata.diagnosis.window_accounts import make_accounts
from pgstrata.model.activity import SessionCount, SessionState
from pgstrata.model.attribution import Method, Part

CLIENT, RUNNING, WAITING = SessionState.CLIENT, SessionState.RUNNING, SessionState.WAITING
ASLEEP, AWAKE, PASSING = SessionState.ASLEEP, SessionState.AWAKE, SessionState.PASSING


def count(state, samples, query="", event=""):
    wait_type, _, name = event.partition("/")
    return SessionCount(state=state, wait_type=wait_type, event=name, query=query, samples=samples)


def window(*counts, seconds=1e-3, cpu=None, queue=None):
    return Seen(seconds=seconds, sessions=counts, cpu=cpu, queue=queue)


def seen(client=500, running=300, waiting=200, **rest):
    return window(
        count(CLIENT, client), count(RUNNING, running, "UPDATE"), count(WAITING, waiting, "END", "IO/WalSync"), **rest
    )


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


def test_without_waits_nothing_that_the_kernel_counts_is_sampled():
    side = [window(count(CLIENT, 900), count(RUNNING, 100, "SELECT"), cpu=310e-6, queue=20e-6)] * 3
    assert choose_method([side, side]) is Method.COUNTED
    rows = rows_of(make_accounts([side, side], Method.COUNTED))
    assert rows == {
        (Part.CLIENT, "", ""): pytest.approx(670e-6),
        (Part.CPU, "", "SELECT"): pytest.approx(310e-6),
        (Part.QUEUE, "", "SELECT"): pytest.approx(20e-6),
    }


def test_waits_are_as_sampled_and_keep_the_cpu_and_the_queue_that_lie_in_them():
    side = [window(count(CLIENT, 50), count(RUNNING, 100, "UPDATE"), count(WAITING, 850, "UPDATE", "IO/WalSync"),
                   cpu=120e-6, queue=700e-6)] * 3  # fmt: skip
    rows = rows_of(make_accounts([side, side], choose_method([side, side])))
    assert rows[Part.WAIT, "IO/WalSync", "UPDATE"] == pytest.approx(850e-6)
    # off the CPU are 180 of 1000 µs, of which the client has 50 / 900
    assert rows[Part.CLIENT, "", ""] == pytest.approx(10e-6)
    assert rows[Part.CPU, "", "UPDATE"] == pytest.approx(140e-6 * 120 / 820)
    assert rows[Part.QUEUE, "", "UPDATE"] == pytest.approx(140e-6 * 700 / 820)


def test_time_off_the_cpu_without_an_event_is_the_rest_and_the_client_is_sampled():
    side = [seen(cpu=90e-6, queue=10e-6)] * 3
    assert choose_method([side, side]) is Method.UNNAMED
    rows = rows_of(make_accounts([side, side], Method.UNNAMED))
    assert rows[Part.CLIENT, "", ""] == pytest.approx(500e-6)
    assert rows[Part.REST, "", "UPDATE"] == pytest.approx(200e-6)


def test_unnamed_time_of_one_side_leaves_the_other_as_it_is():
    plain, slept = [seen(cpu=340e-6, queue=0.0)] * 3, [seen(cpu=100e-6, queue=0.0)] * 3
    assert choose_method([plain, slept]) is choose_method([slept, plain]) is Method.UNNAMED
    accounts = make_accounts([plain, slept], Method.UNNAMED)
    assert rows_of(accounts, 0)[Part.REST, "", "UPDATE"] == 0
    assert rows_of(accounts, 1)[Part.REST, "", "UPDATE"] == pytest.approx(200e-6)


@pytest.mark.parametrize("method", [Method.ASLEEP, Method.UNNAMED])
def test_cpu_belongs_to_the_statements_that_do_not_sleep(method):
    side = [window(count(CLIENT, 100), count(AWAKE, 400, "SELECT"), count(AWAKE, 50, "END"), count(ASLEEP, 450, "END"),
                   cpu=440e-6, queue=10e-6)] * 3  # fmt: skip
    rows = rows_of(make_accounts([side, side], method))
    assert rows[Part.CPU, "", "SELECT"] == pytest.approx(440e-6 * 400 / 450)
    assert rows[Part.REST, "", "SELECT"] == pytest.approx(0)
    assert rows[Part.REST, "", "END"] == pytest.approx(450e-6)
    assert sum(rows.values()) == pytest.approx(1e-3)


def asleep(number, **rest):
    return window(count(CLIENT, 400), count(AWAKE, 400 - number, "A"), count(ASLEEP, number, "B"),
                  count(WAITING, 200, "B", "IO/X"), **rest)  # fmt: skip


def test_where_the_kernel_is_asked_it_says_whether_there_is_a_rest():
    counted = {"cpu": 0.2e-3, "queue": 0.0}
    awake, sleeps = [asleep(0, **counted)] * 3, [asleep(100, **counted)] * 3
    assert choose_method([awake, awake]) is Method.COUNTED
    assert choose_method([awake, sleeps]) is choose_method([sleeps, awake]) is Method.ASLEEP
    assert choose_method([[asleep(10, **counted)] * 3, awake]) is Method.COUNTED
    # a server that is not asked has its unnamed time by what is left
    assert choose_method([sleeps, [seen(cpu=100e-6, queue=0.0)] * 3]) is Method.UNNAMED
    assert choose_method([sleeps, [asleep(100)]]) is Method.SAMPLED


def test_who_could_not_be_asked_does_not_make_the_others_unasked():
    # sessions that were idle a moment before, in a statement that nobody knows
    side = [window(count(CLIENT, 400), count(AWAKE, 100, "A"), count(ASLEEP, 100, "B"), count(RUNNING, 300),
                   cpu=0.4e-3, queue=0.0)] * 3  # fmt: skip
    assert choose_method([side, side]) is Method.ASLEEP


def test_a_few_that_slept_say_little_of_all_that_had_gone_on():
    side = [window(count(CLIENT, 2397), count(PASSING, 600, "A"), count(AWAKE, 2, "A"), count(ASLEEP, 1, "A"),
                   cpu=0.2e-3, queue=0.0)] * 3  # fmt: skip
    assert choose_method([side, side]) is Method.COUNTED


def test_evidence_of_before_awake_was_written_down_does_not_sleep_altogether():
    side = [window(count(CLIENT, 400), count(RUNNING, 590, "A"), count(ASLEEP, 10, "A"), cpu=0.6e-3, queue=0.0)] * 3
    assert choose_method([side, side]) is Method.COUNTED
    rows = rows_of(make_accounts([side, side], Method.UNNAMED))
    assert rows[Part.CPU, "", "A"] == pytest.approx(0.6e-3)


def test_seldom_events_stay_with_their_statement():
    side = [
        window(
            count(CLIENT, 400),
            count(RUNNING, 100, "A"),
            count(WAITING, 1, "A", "IO/X"),
            count(WAITING, 1, "A", "LWLock/Y"),
            count(WAITING, 1, "B", "LWLock/Z"),
            cpu=1e-4,
            queue=0.0,
        )
    ] * 3
    # six of A, three of B
    rows = rows_of(make_accounts([side], Method.COUNTED))
    assert {key for key in rows if key[0] is Part.WAIT} == {(Part.WAIT, "", "A"), (Part.WAIT, "", "")}


def test_equal_sides_name_what_is_unknown_alike():
    unknown = [window(count(CLIENT, 500), count(WAITING, 500, "", "IO/X"), cpu=1e-4, queue=0.0)] * 3
    known = [
        window(
            count(CLIENT, 500), count(WAITING, 499, "", "IO/X"), count(WAITING, 1, "END", "IO/X"), cpu=1e-4, queue=0.0
        )
    ] * 3
    accounts = make_accounts([unknown, known], Method.COUNTED)
    for key in ((Part.WAIT, "IO/X", ""), (Part.WAIT, "IO/X", "END")):
        values = [rows_of(accounts, side).get(key, 0.0) for side in (0, 1)]
        assert values[0] == pytest.approx(values[1], abs=2e-6)


def test_to_sleep_without_an_event_is_a_label_like_a_wait():
    side = [asleep(200, cpu=0.36e-3, queue=0.04e-3)] * 3
    accounts = make_accounts([side, side], Method.ASLEEP)
    assert rows_of(accounts) == {
        (Part.CLIENT, "", ""): pytest.approx(0.6e-3 * 400 / 800),
        (Part.CPU, "", "A"): pytest.approx(0.3e-3 * 0.9),
        (Part.CPU, "", "B"): 0,
        (Part.QUEUE, "", "A"): pytest.approx(0.3e-3 * 0.1),
        (Part.QUEUE, "", "B"): 0,
        (Part.REST, "", "A"): 0,
        (Part.REST, "", "B"): pytest.approx(0.2e-3),
        (Part.WAIT, "IO/X", "B"): pytest.approx(0.2e-3),
    }
    counts = dict(zip(accounts.keys, accounts.sides[0].counts.tolist(), strict=True))
    assert (counts[Part.CPU, "", "A"], counts[Part.CPU, "", "B"], counts[Part.REST, "", "B"]) == (600, 0, 600)


def test_where_sessions_sleep_stands_beside_the_rest():
    def slept(place, samples):
        return SessionCount(state=ASLEEP, wait_type="", event=place, query="B", samples=samples)

    side = [window(count(CLIENT, 400), count(AWAKE, 300, "A"), slept("do_select", 200), slept("folio_wait_bit", 100),
                   cpu=3e-4, queue=0.0)] * 3  # fmt: skip
    accounts = make_accounts([side, side], choose_method([side, side]))
    places = dict(zip(accounts.keys, accounts.places, strict=True))
    assert {key: place for key, place in places.items() if place} == {(Part.REST, "", "B"): "do_select"}
    assert rows_of(accounts)[Part.REST, "", "B"] == pytest.approx(300e-6)


def test_samples_without_a_statement_are_divided_like_the_others():
    side = [window(count(CLIENT, 400), count(RUNNING, 100, "A"), count(RUNNING, 300, "B"), count(RUNNING, 40),
                   count(WAITING, 150, "B", "IO/X"), count(WAITING, 10, "", "IO/X"), cpu=4e-4, queue=0.0)] * 3  # fmt: skip
    rows = rows_of(make_accounts([side, side], Method.SAMPLED))
    assert rows[Part.RUNNING, "", "A"] == pytest.approx(110e-6)
    assert rows[Part.RUNNING, "", "B"] == pytest.approx(330e-6)
    assert rows[Part.WAIT, "IO/X", "B"] == pytest.approx(160e-6)
    assert (Part.RUNNING, "", "") not in rows
    # who was idle before, and waits for a lock by now, may have been blocked by a known statement
    locked = [
        window(
            count(CLIENT, 400),
            count(WAITING, 100, "B", "Lock/tuple"),
            SessionCount(state=WAITING, wait_type="Lock", event="tuple", query="", samples=5, blocker="A"),
        )
    ] * 3
    assert set(make_accounts([locked, locked], Method.SAMPLED).blockers) == {""}
    nameless = [window(count(CLIENT, 400), count(RUNNING, 100), cpu=4e-4, queue=0.0)] * 3
    assert rows_of(make_accounts([nameless, nameless], Method.SAMPLED))[Part.RUNNING, "", ""] > 0


def test_who_had_gone_on_slept_as_often_as_the_others_of_its_statement():
    side = [window(count(CLIENT, 400), count(AWAKE, 100, "A"), count(PASSING, 100, "A"), count(AWAKE, 100, "B"),
                   count(ASLEEP, 100, "B"), count(PASSING, 200, "B"), cpu=4e-4, queue=0.0)] * 3  # fmt: skip
    rows = rows_of(make_accounts([side, side], Method.ASLEEP))
    assert rows[Part.REST, "", "A"] == 0
    assert rows[Part.REST, "", "B"] == pytest.approx(200e-6)
    assert rows[Part.CPU, "", "A"] == pytest.approx(rows[Part.CPU, "", "B"])
    never = [window(count(CLIENT, 400), count(PASSING, 600, "A"), cpu=6e-4, queue=0.0)] * 3
    assert choose_method([never, never]) is Method.COUNTED


def test_whether_a_session_slept_is_nothing_to_an_account_without_unnamed_time():
    plain = [window(count(CLIENT, 600), count(RUNNING, 300, "A"), count(RUNNING, 100, "B"), cpu=390e-6, queue=1e-5)] * 3
    told = [window(count(CLIENT, 600), count(AWAKE, 300, "A"), count(AWAKE, 40, "B"), count(ASLEEP, 60, "B"),
                   cpu=390e-6, queue=1e-5)] * 3  # fmt: skip
    assert choose_method([plain, told]) is Method.COUNTED
    accounts = make_accounts([plain, told], Method.COUNTED)
    assert rows_of(accounts, 0) == pytest.approx(rows_of(accounts, 1))
    assert accounts.sides[0].counts.tolist() == accounts.sides[1].counts.tolist()


def test_a_statement_that_only_sleeps_has_its_rest():
    side = [window(count(CLIENT, 100), count(AWAKE, 400, "SELECT"), count(ASLEEP, 500, "END"), cpu=4e-4, queue=0.0)] * 3
    rows = rows_of(make_accounts([side, side], Method.UNNAMED))
    assert rows[Part.CPU, "", "END"] == 0
    assert rows[Part.REST, "", "END"] == pytest.approx(500e-6)


@pytest.mark.parametrize("method", list(Method))
def test_the_sampling_error_is_that_of_drawn_samples(method):
    rng = np.random.default_rng(3)
    truth = np.array([0.4, 0.15, 0.05, 0.1, 0.2, 0.1])
    names = [
        (CLIENT, "", ""),
        (AWAKE, "A", ""),
        (AWAKE, "B", ""),
        (ASLEEP, "B", ""),
        (WAITING, "A", "IO/X"),
        (WAITING, "B", "LWLock/Y"),
    ]

    def draw():
        drawn = rng.multinomial(400, truth)
        return window(
            *(count(state, int(k), query, event) for (state, query, event), k in zip(names, drawn, strict=True)),
            cpu=0.12e-3,
            queue=0.02e-3,
        )

    accounts = make_accounts([[draw() for _ in range(3000)]], method)
    (side,) = accounts.sides
    for place in np.flatnonzero(side.counts):
        expected = float(side.sampling_variance([place]).mean()) ** 0.5
        assert side.values[place].std() == pytest.approx(expected, rel=0.08, abs=1e-9)
    assert side.sampling_variance(range(len(accounts.keys))).max() < 1e-14


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


def test_clients_without_a_session_stand_beside_what_sessions_do():
    side = [
        window(count(SessionState.CONNECTING, 600), count(CLIENT, 100), count(RUNNING, 300, "SELECT"), cpu=9e-5)
    ] * 3
    method = choose_method([side, side])
    assert method is Method.SAMPLED
    assert rows_of(make_accounts([side, side], method)) == {
        (Part.CLIENT, "", ""): pytest.approx(100e-6),
        (Part.RUNNING, "", "SELECT"): pytest.approx(300e-6),
        (Part.CONNECT, "", ""): pytest.approx(600e-6),
    }


def test_a_statement_that_always_had_gone_on_sleeps_like_the_others():
    side = [
        window(count(ASLEEP, 30, "END"), count(AWAKE, 10, "END"), count(PASSING, 20, "SELECT"), cpu=3e-4, queue=0.0)
    ]
    rows = rows_of(make_accounts([side * 3, side * 3], Method.ASLEEP))
    assert rows[Part.REST, "", "SELECT"] == pytest.approx(20 / 60 * 0.75 * 1e-3)


def test_sessions_that_have_a_cpu_and_no_statement_yet_do_not_sleep():
    side = [window(count(CLIENT, 300), count(RUNNING, 100), count(AWAKE, 100, "END"), count(ASLEEP, 300, "END"),
                   cpu=2.5e-4, queue=0.0)]  # fmt: skip
    rows = rows_of(make_accounts([side * 3, side * 3], Method.ASLEEP))
    assert rows[Part.REST, "", "END"] == pytest.approx(300 / 800 * 1e-3)
