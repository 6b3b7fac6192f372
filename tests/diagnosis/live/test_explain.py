"""A window of a live server is explained by another one: parts add up, and more demand alone is no incident."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archives import BLOCKER, behind, session, use
from pgstrata.diagnosis.live.changes import EFFECT
from pgstrata.diagnosis.live.explain import explain
from pgstrata.model.archive import ArchiveWindow, Span
from pgstrata.model.attribution import Part
from pgstrata.model.explanation import Outcome

CPU, IO, LOCK = session("select"), session("select", "IO/DataFileRead"), session("update", "Lock/transactionid")


def window(sessions, commits, *, begin=0, cell=1, looks=None, **more):
    """A window whose cells have these samples and rates; numbers are the same in all cells."""
    size = len(commits)
    looks = tuple(looks or [1] * size)
    rates = {name: tuple(values) for name, values in more.pop("rates", {}).items()}
    return ArchiveWindow(
        span=Span(begin=begin, end=begin + size * cell), unit=1, cell=cell, looks=looks,
        sessions={each: tuple(counts) for each, counts in sessions.items()},
        rates={"commits": tuple(commits), **rates}, **more,
    )  # fmt: skip


def poisson(draws, mean, size):
    return draws.poisson(mean, size).tolist()


def both(load, commits, *, size=120, reference=240, **more):
    """Load of a session on a CPU, and commits: in the window, and before it."""
    draws = np.random.default_rng(3)
    value, before = (
        window({CPU: poisson(draws, mean, number)}, (rate * draws.normal(1, 0.05, number)).tolist())
        for mean, rate, number in ((load[0], commits[0], size), (load[1], commits[1], reference))
    )
    return explain(value, before, **more)


@pytest.mark.parametrize(
    ("load", "commits", "outcome"),
    [
        ((8.0, 2.0), (60.0, 100.0), Outcome.INCIDENT),
        ((6.0, 2.0), (100.0, 100.0), Outcome.INCIDENT),
        ((4.0, 2.0), (200.0, 100.0), Outcome.MORE),
        ((8.0, 2.0), (200.0, 100.0), Outcome.SATURATED),
        ((1.0, 2.0), (50.0, 100.0), Outcome.FEWER),
        ((1.0, 2.0), (100.0, 100.0), Outcome.FASTER),
        ((2.0, 2.0), (100.0, 100.0), Outcome.SAME),
        ((8.0, 2.0), (0.0, 100.0), Outcome.STALLED),
        ((0.0, 2.0), (0.0, 100.0), Outcome.FEWER),
    ],
)
def test_demand_latency_and_load_are_told_apart(load, commits, outcome):
    assert both(load, commits).outcome is outcome


def test_of_a_few_seconds_nothing_is_said():
    assert both((8.0, 2.0), (60.0, 100.0), size=4).outcome is Outcome.UNKNOWN


def test_without_throughput_nothing_is_said():
    assert both((8.0, 2.0), (math.nan, 100.0)).outcome is Outcome.UNKNOWN


def test_quiet_windows_are_seldom_called_different():
    draws = np.random.default_rng(5)
    found = []
    for _ in range(60):
        sides = [window({CPU: poisson(draws, 3.0, size)}, draws.normal(100, 10, size).tolist()) for size in (60, 180)]
        found.append(explain(*sides).outcome is not Outcome.SAME)
    assert sum(found) <= 6


def test_the_limit_says_what_would_have_been_found():
    found = both((2.0, 2.0), (100.0, 100.0))
    assert 0.005 < found.throughput.limit < 0.05
    assert found.throughput.limit < found.time.limit < 0.5
    assert EFFECT < 1


def add_up(found):
    extra = found.load.value - found.load.reference
    for rows in (found.rows, found.waits, found.statements, found.applications):
        assert sum(row.difference for row in rows) == pytest.approx(extra, abs=1e-9)
        assert sum(row.value for row in rows) == pytest.approx(found.load.value, abs=1e-9)
    for change in found.calls:
        parts = change.by_demand + change.by_mix + change.by_latency
        whole = change.calls * change.latency - change.reference_calls * change.reference_latency
        assert parts == pytest.approx(whole, abs=1e-9)


CLASSES = [
    session(f"q{number % 7}", wait, application=f"a{number % 3}", state=state, kind=kind)
    for number, (wait, state, kind) in enumerate(
        (wait, state, kind)
        for wait in ("", "IO/DataFileRead", "Lock/tuple", "LWLock/WALWrite")
        for state in ("active", "idle in transaction")
        for kind in ("client backend", "parallel worker", "autovacuum worker")
    )
]


@st.composite
def windows(draw):
    size = draw(st.integers(1, 30))
    looks = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size).filter(any))
    sessions = {
        each: [draw(st.integers(0, 9)) if number else 0 for number in looks]
        for each in draw(st.lists(st.sampled_from(CLASSES), unique=True, max_size=12))
    }
    commits = draw(st.lists(st.floats(0, 1e4) | st.just(math.nan), min_size=size, max_size=size))
    uses = {
        f"q{number}": use(draw(st.integers(0, 1000)), draw(st.floats(0, 100)), draw(st.floats(0, 1e6)))
        for number in range(draw(st.integers(0, 4)))
    }
    counted = draw(st.none() | st.floats(1, 60))
    transactions = draw(st.floats(0, 1e5))
    return window(sessions, commits, looks=looks, statements=uses, counted=counted, transactions=transactions)


@settings(max_examples=50, deadline=None)
@given(windows(), windows())
def test_parts_and_remainder_add_up_in_every_case(value, reference):
    add_up(explain(value, reference))


def test_many_small_rows_go_into_the_remainder_and_still_add_up():
    draws = np.random.default_rng(4)
    many = [session(f"q{number}", "IO/DataFileRead") for number in range(100)]
    sides = [window({each: poisson(draws, 0.1, size) for each in many}, [100.0] * size) for size in (100, 200)]
    found = explain(*sides)
    assert found.rows[-1].part is None
    assert len(found.rows) == 41
    add_up(found)


def test_the_row_that_rose_comes_first_with_an_interval_around_the_truth():
    draws = np.random.default_rng(6)
    value = window(
        {CPU: poisson(draws, 2, 200), LOCK: poisson(draws, 5, 200), IO: poisson(draws, 1, 200)}, [50.0] * 200
    )
    before = window({CPU: poisson(draws, 2, 400), IO: poisson(draws, 1, 400)}, [100.0] * 400)
    found = explain(value, before)
    first = found.rows[0]
    assert (first.part, first.event, first.statement, first.application) == (
        Part.WAIT, "Lock/transactionid", "update", "shop",
    )  # fmt: skip
    assert first.resolved
    assert first.interval.low < 5 < first.interval.high
    assert not any(row.resolved for row in found.rows[1:])


def test_heads_of_chains_are_ranked_by_those_behind_them():
    other = session("vacuum", application="cron")
    value = window(
        {LOCK: [5] * 60}, [1.0] * 60, blocked={**behind(LOCK, sessions=240), **behind(LOCK, other, 9, 3, 60)}
    )
    found = explain(value, window({LOCK: [0] * 60}, [100.0] * 60))
    assert [(each.root, each.pids, each.held) for each in found.blockers] == [(BLOCKER, (4711,), 30), (other, (9,), 3)]
    assert [each.value for each in found.blockers] == [4.0, 1.0]


def test_other_statements_are_another_mix_and_no_incident():
    draws = np.random.default_rng(2)
    report = session("report")
    common = {"counted": 120.0, "transactions": 12_000.0}
    value = window(
        {CPU: poisson(draws, 2, 120), report: [3] * 120}, draws.normal(100, 5, 120).tolist(), **common,
        statements={"select": use(12_000, 240.0), "report": use(12, 360.0)},
    )  # fmt: skip
    before = window(
        {CPU: poisson(draws, 2, 240)}, draws.normal(100, 5, 240).tolist(), counted=240.0, transactions=24_000.0,
        statements={"select": use(24_000, 480.0)},
    )  # fmt: skip
    found = explain(value, before)
    assert found.outcome is Outcome.OTHER_MIX
    assert found.calls[0].statement == "report"
    assert found.calls[0].by_mix == pytest.approx(3.0)


def test_a_statement_that_became_slower_is_told_from_one_that_is_called_more_often():
    common = {"counted": 100.0, "transactions": 10_000.0}
    value = window({CPU: [3] * 60}, [100.0] * 60, **common, statements={
        "slow": use(1000, 50.0, 9e5), "often": use(2000, 2.0),
    })  # fmt: skip
    before = window({CPU: [1] * 60}, [100.0] * 60, **common, statements={
        "slow": use(1000, 5.0, 1e4), "often": use(1000, 1.0),
    })  # fmt: skip
    slow, often = explain(value, before).calls
    assert (slow.by_latency, slow.by_demand, slow.by_mix) == (pytest.approx(0.45), 0.0, 0.0)
    assert (slow.blocks_per_call, slow.reference_blocks_per_call) == (900.0, 10.0)
    assert (often.by_latency, often.by_mix) == (pytest.approx(0.0), pytest.approx(0.01))


def test_what_the_host_did_is_compared_too():
    draws = np.random.default_rng(1)
    sides = [
        window({CPU: [1] * size}, [100.0] * size, rates={"host_user_cpu": draws.normal(mean, 0.05, size).tolist()})
        for mean, size in ((1.8, 60), (0.5, 120))
    ]
    (change,) = explain(*sides).host
    assert change.resolved
    assert change.ratio.low < 3.6 < change.ratio.high


def test_what_serves_no_client_is_no_part_of_the_load():
    vacuum = session("", "IO/DataFileRead", kind="autovacuum worker", state="")
    found = explain(window({vacuum: [2] * 60}, [100.0] * 60), window({}, [100.0] * 120))
    assert found.load.value == 0
    assert [(row.application, row.value) for row in found.background] == [("autovacuum worker", 2.0)]


def test_a_statement_that_was_not_there_before_is_no_slowdown_even_if_it_has_not_ended():
    draws = np.random.default_rng(2)
    value = window({CPU: poisson(draws, 2, 120), session("report"): [3] * 120}, draws.normal(100, 5, 120).tolist())
    before = window({CPU: poisson(draws, 2, 240)}, draws.normal(100, 5, 240).tolist())
    assert explain(value, before).outcome is Outcome.OTHER_MIX


def test_counts_that_tell_little_of_the_load_make_no_other_mix():
    draws = np.random.default_rng(2)
    common = {"counted": 120.0, "statements": {"select": use(600, 1.2), "update": use(240, 30.0)}}
    value = window({CPU: poisson(draws, 0.1, 120), LOCK: [8] * 120}, [2.0, 1.0] * 60, transactions=180.0, **common)
    common = {"counted": 240.0, "statements": {"select": use(24_000, 48.0), "update": use(240, 0.1)}}
    before = window(
        {CPU: poisson(draws, 0.4, 240), LOCK: [0, 1] * 120}, draws.normal(100, 5, 240).tolist(), transactions=24_000.0,
        **common,
    )  # fmt: skip
    found = explain(value, before)
    assert sum(each.by_mix for each in found.calls) > 0.5 * sum(each.difference for each in found.calls) > 0
    assert found.outcome is Outcome.INCIDENT


def test_where_little_was_seen_before_a_statement_may_have_been_there():
    draws = np.random.default_rng(2)
    value = window({LOCK: [4, 5, 6] * 40}, draws.normal(40, 5, 120).tolist())
    before = window({CPU: poisson(draws, 0.1, 240)}, draws.normal(100, 5, 240).tolist())
    assert explain(value, before).outcome is Outcome.INCIDENT


def test_begin_and_end_of_a_change_are_told_with_intervals():
    draws = np.random.default_rng(9)
    load = [*poisson(draws, 2, 200), *poisson(draws, 8, 100), *poisson(draws, 2, 60)]
    commits = draws.normal(100, 5, 360).tolist()
    parts = [
        window({CPU: load[begin:end]}, commits[begin:end], begin=begin)
        for begin, end in ((190, 310), (0, 190), (0, 360))
    ]
    found = explain(*parts)
    assert found.outcome is Outcome.INCIDENT
    assert found.onset.begin_interval.low <= 200 <= found.onset.begin_interval.high
    assert found.onset.end_interval.low <= 300 <= found.onset.end_interval.high
    assert found.onset.begin_interval.high - found.onset.begin_interval.low < 20
    assert explain(parts[1], parts[1], parts[2]).onset is None


def test_a_server_on_which_almost_nothing_is_committed_has_an_incident():
    draws = np.random.default_rng(5)
    commits = [150.0, *[0.0] * 70, 0.0, 12.0, 0.0]
    value = window({LOCK: [6] * 74}, commits)
    usual = {CPU: poisson(draws, 0.8, 300), session("update"): poisson(draws, 0.9, 300)}
    before = window(usual, (290 * draws.normal(1, 0.2, 300)).tolist())
    found = explain(value, before)
    assert found.outcome is Outcome.INCIDENT
    assert found.throughput.ratio.high < 0.3
    assert found.time.ratio.low > 5


@pytest.mark.parametrize("rate", [0.02, 0.05, 0.2, 1.0])
def test_windows_with_hardly_a_transaction_seldom_differ_by_chance(rate):
    draws, found = np.random.default_rng(11), []
    for _ in range(150):
        value, before = (
            window({CPU: poisson(draws, 0.5, size)}, [float(each) for each in poisson(draws, rate, size)])
            for size in (75, 300)
        )
        found.append(explain(value, before).throughput.resolved)
    assert np.mean(found) <= 0.1
