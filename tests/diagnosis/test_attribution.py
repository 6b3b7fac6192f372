"""What a difference is split into, and which causes are named, on drawn windows."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.diagnosis.account import Seen
from pgstrata.diagnosis.attribution import attribute, average
from pgstrata.model.activity import SessionCount, SessionState
from pgstrata.model.attribution import Method, Part

NAMES = [
    (SessionState.CLIENT, "", "", ""),
    (SessionState.RUNNING, "", "", "UPDATE t"),
    (SessionState.RUNNING, "", "", "END"),
    (SessionState.WAITING, "IO", "WalSync", "END"),
    (SessionState.WAITING, "LWLock", "WALWrite", "END"),
]
PLAIN = (300e-6, 80e-6, 20e-6, 150e-6, 50e-6)


def draw(rng, seconds, samples=600, noise=0.02, *, counted=True):
    """A window with these seconds by name, disturbed."""
    own = np.array(seconds) * np.exp(rng.normal(0, noise, len(NAMES)))
    drawn = rng.multinomial(samples, own / own.sum())
    return Seen(
        seconds=float(own.sum()),
        sessions=tuple(
            SessionCount(state=state, wait_type=kind, event=event, query=query, samples=int(number))
            for (state, kind, event, query), number in zip(NAMES, drawn, strict=True)
            if number
        ),
        cpu=float(own[1:3].sum()) if counted else None,
        queue=0.0 if counted else None,
    )


def split(seconds, blocks=6, reference=PLAIN, seed=1, **rest):
    rng = np.random.default_rng(seed)
    value = [draw(rng, seconds, **rest) for _ in range(blocks)]
    base = [draw(rng, reference, **rest) for _ in range(blocks)]
    return attribute(value, base, environment="new", reference_name="old", cell="c")


def with_more(place, seconds):
    return tuple(own + seconds * (place == each) for each, own in enumerate(PLAIN))


def test_the_wait_that_grew_is_the_first_cause():
    found = split(with_more(3, 200e-6))
    assert found.method is Method.COUNTED
    assert found.total.resolved
    assert found.total.difference == pytest.approx(200e-6, rel=0.2)
    first = found.causes[0]
    assert (first.part, first.event, first.query) == (Part.WAIT, "IO/WalSync", "END")
    assert first.interval.low < 200e-6 < first.interval.high


def test_what_was_saved_is_below_zero():
    found = split(PLAIN, reference=with_more(1, 100e-6))
    assert found.causes[0].part is Part.CPU
    assert found.causes[0].query == "UPDATE t"
    assert found.causes[0].interval.high < 0


def test_client_and_network_comes_behind_a_part_of_the_server_that_matters():
    found = split(tuple(a + b for a, b in zip(PLAIN, (300e-6, 0, 0, 150e-6, 0), strict=True)), samples=3000)
    assert [cause.part for cause in found.causes[:2]] == [Part.WAIT, Part.CLIENT]
    assert found.causes[1].difference > found.causes[0].difference


def test_client_and_network_is_the_cause_where_the_server_has_hardly_a_part():
    found = split(with_more(0, 900e-6))
    assert found.causes[0].part is Part.CLIENT


def test_a_statement_s_cpu_lies_in_its_interval_wherever_sessions_queued():
    rng = np.random.default_rng(7)
    # seconds on a CPU and in its queue by statement: all of the queue is in the one that computes little
    truth = {"before": {"A": (100e-6, 0.0), "B": (50e-6, 100e-6)}, "after": {"A": (400e-6, 0.0), "B": (60e-6, 250e-6)}}

    def drawn(side):
        own = {query: np.array(each) * np.exp(rng.normal(0, 0.03)) for query, each in truth[side].items()}
        client = 200e-6
        shares = np.array([client, *(each.sum() for each in own.values())])
        numbers = rng.multinomial(300, shares / shares.sum())
        states = [(SessionState.CLIENT, ""), *((SessionState.AWAKE, query) for query in own)]
        sessions = tuple(
            SessionCount(state=state, wait_type="", event="", query=query, samples=int(number))
            for (state, query), number in zip(states, numbers, strict=True)
        )
        cpu, queue = (float(sum(each[place] for each in own.values())) for place in (0, 1))
        return Seen(seconds=float(shares.sum()), sessions=sessions, cpu=cpu, queue=queue)

    covered = 0
    for _ in range(200):
        found = attribute(
            [drawn("after") for _ in range(5)],
            [drawn("before") for _ in range(5)],
            environment="n",
            reference_name="o",
            cell="c",
        )
        (row,) = [row for row in found.rows if (row.part, row.query) == (Part.CPU, "A")]
        covered += row.interval.low <= 300e-6 <= row.interval.high
    assert covered >= 188


def test_equal_environments_have_no_cause():
    named = sum(bool(split(PLAIN, seed=seed).causes) for seed in range(100))
    assert named <= 5


def test_two_blocks_and_few_samples_are_enough_for_a_large_cause_and_for_no_more():
    assert not split(with_more(3, 20e-6), blocks=2, samples=40).causes
    found = split(with_more(3, 5e-3), blocks=2, samples=100, noise=0.005)
    assert [cause.event for cause in found.causes][:1] == ["IO/WalSync"]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    blocks=st.integers(2, 7),
    samples=st.integers(1, 300),
    counted=st.booleans(),
    place=st.integers(0, 4),
    more=st.floats(0, 1e-3),
)
def test_parts_queries_and_rows_each_add_up_to_the_total(seed, blocks, samples, counted, place, more):
    found = split(with_more(place, more), blocks=blocks, samples=samples, seed=seed, counted=counted)
    for items in (found.parts, found.queries, found.rows):
        for field in ("value", "reference", "difference"):
            total = getattr(found.total, field)
            assert math.fsum(getattr(item, field) for item in items) == pytest.approx(total, abs=1e-12)
    assert found.total.samples == sum(item.samples for item in found.queries) == found.samples == 2 * blocks * samples
    for item in (found.total, *found.rows):
        assert item.interval.low <= item.difference <= item.interval.high


def test_a_wait_for_a_lock_names_the_statement_that_blocked_it_most_often():
    def window(waited):
        rows = [
            ("", "", 100 - waited),
            ("UPDATE a", "INSERT b", waited // 3),
            ("UPDATE a", "UPDATE a", waited - waited // 3),
        ]
        return Seen(
            seconds=1e-3,
            sessions=tuple(
                SessionCount(
                    state=SessionState.WAITING if query else SessionState.CLIENT,
                    wait_type="Lock" if query else "",
                    event="tuple" if query else "",
                    query=query,
                    samples=samples,
                    blocker=blocker,
                )
                for query, blocker, samples in rows
                if samples
            ),
        )

    found = attribute([window(60)] * 3, [window(30)] * 3, environment="new", reference_name="old", cell="c")
    assert {row.event: row.blocker for row in found.rows} == {"Lock/tuple": "UPDATE a", "": ""}


def test_no_block_matters_more_because_it_was_slow():
    rng = np.random.default_rng(1)
    windows = [[], []]
    for level in (1, 1, 1, 1, 5):
        for side, seconds in zip(windows, (with_more(3, 120e-6), PLAIN), strict=True):
            side.append(draw(rng, [level * each for each in seconds], samples=3000))
    found = attribute(*windows, environment="new", reference_name="old", cell="c")
    assert found.total.resolved
    assert found.total.difference / found.total.reference == pytest.approx(0.2, rel=0.1)


def test_the_accounts_of_several_levels_have_the_same_rows():
    rng = np.random.default_rng(1)
    sides = [[draw(rng, with_more(3, k * 1e-4)) for _ in range(3)] for k in range(3)]
    method, accounts = average(sides)
    assert method is Method.COUNTED
    assert len({tuple((row.part, row.event) for row in account.rows) for account in accounts}) == 1
    for account in accounts:
        assert math.fsum(row.seconds for row in account.rows) == pytest.approx(account.seconds)


@pytest.mark.parametrize("unit", [1e-250, 1e-100, 1e100, 1e250])
@pytest.mark.parametrize("counted", [True, False])
def test_times_that_no_machine_shows_are_split_like_others(unit, counted):
    usual = split(with_more(3, 200e-6), counted=counted)
    found = split(
        [unit * each for each in with_more(3, 200e-6)], reference=[unit * each for each in PLAIN], counted=counted
    )
    assert [(row.part, row.event, row.query) for row in found.causes] == [
        (row.part, row.event, row.query) for row in usual.causes
    ]
    for one, other in zip((found.total, *found.rows), (usual.total, *usual.rows), strict=True):
        assert one.difference == pytest.approx(unit * other.difference, rel=1e-6)
        assert one.interval.low == pytest.approx(unit * other.interval.low, rel=1e-6)
        assert one.interval.high == pytest.approx(unit * other.interval.high, rel=1e-6)


@pytest.mark.parametrize("huge", [1e100, 1e155, 1e300])
def test_one_block_with_a_time_that_no_machine_shows_is_no_error(huge):
    rng = np.random.default_rng(1)
    value, reference = ([draw(rng, PLAIN) for _ in range(5)] for _ in range(2))
    value[0] = draw(rng, [huge * each for each in PLAIN])
    found = attribute(value, reference, environment="new", reference_name="old", cell="c")
    assert math.isfinite(found.total.difference)
    _, accounts = average((value, reference))
    assert [math.isfinite(account.seconds) for account in accounts] == [True, True]
