import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.diagnosis.queries import query_changes, split_change
from pgstrata.model.queries import QueryCount, QueryCounts

AMOUNT = st.floats(0, 1e6)


@given(AMOUNT, AMOUNT, AMOUNT, AMOUNT)
def test_both_shares_add_up_to_the_difference(calls, latency, reference_calls, reference_latency):
    shares = split_change(calls, latency, reference_calls, reference_latency)
    whole = calls * latency - reference_calls * reference_latency
    assert sum(shares) == pytest.approx(whole, abs=1e-9 * max(calls * latency, reference_calls * reference_latency, 1))


@given(AMOUNT, AMOUNT, AMOUNT, AMOUNT)
def test_exchanging_the_sides_turns_the_signs(calls, latency, reference_calls, reference_latency):
    by_calls, by_latency = split_change(calls, latency, reference_calls, reference_latency)
    assert split_change(reference_calls, reference_latency, calls, latency) == (-by_calls, -by_latency)


@given(AMOUNT, AMOUNT, AMOUNT)
def test_what_did_not_change_has_no_share(amount, before, after):
    assert split_change(amount, after, amount, before)[0] == 0
    assert split_change(after, amount, before, amount)[1] == 0


def count(query, calls, seconds):
    return QueryCount(query=query, calls=calls, seconds=seconds, rows=0, blocks_hit=0, blocks_read=0)


def counts(*queries):
    return QueryCounts(queries=queries)


def test_more_calls_and_slower_calls_are_told_apart():
    ours = counts(count("more", 2.0, 0.002), count("slower", 1.0, 0.003))
    theirs = counts(count("more", 1.0, 0.001), count("slower", 1.0, 0.001))
    slower, more = query_changes([(ours, theirs), (ours, theirs)])
    assert (more.by_calls, more.by_latency) == pytest.approx((0.001, 0.0))
    assert (slower.by_calls, slower.by_latency) == pytest.approx((0.0, 0.002))
    assert (slower.interval.low, slower.interval.high) == pytest.approx((0.002, 0.002))


def test_a_statement_that_one_side_never_gave_is_more_or_fewer_calls():
    (come,) = query_changes([(counts(count("a", 2.0, 0.004)), counts())])
    assert (come.by_calls, come.by_latency, come.interval) == (pytest.approx(0.004), 0, None)
    (gone,) = query_changes([(counts(), counts(count("a", 2.0, 0.004)))])
    assert (gone.by_calls, gone.by_latency) == (pytest.approx(-0.004), 0)


@given(st.lists(st.tuples(*[st.floats(0.1, 10)] * 4), min_size=1, max_size=6))
def test_the_share_is_the_mean_difference_of_the_blocks(blocks):
    pairs = [(counts(count("a", a, b)), counts(count("a", c, d))) for a, b, c, d in blocks]
    (change,) = query_changes(pairs)
    assert change.difference == pytest.approx(sum(b - d for _, b, _, d in blocks) / len(blocks), abs=1e-9)
    if change.interval is not None:
        assert change.interval.low <= change.difference + 1e-9
        assert change.difference <= change.interval.high + 1e-9
