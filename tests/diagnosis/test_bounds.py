"""What is known of a statement's CPU where sessions queue for CPUs, whatever the truth is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.diagnosis.attribution import Bounds, bound
from pgstrata.model.attribution import Part

CLIENT, WAIT = (Part.CLIENT, "", ""), (Part.WAIT, "IO/X", "A")
microseconds = st.integers(0, 1000).map(float)
statements = st.lists(st.tuples(microseconds, microseconds), min_size=1, max_size=4)


def account(truth):
    """Keys and values of an account of statements with these seconds on a CPU and queueing, as it divides them."""
    names = [chr(ord("A") + place) for place in range(len(truth))]
    cpu, queue = (sum(each[which] for each in truth) for which in (0, 1))
    both = cpu + queue
    among = [sum(each) / both if both else 0.0 for each in truth]
    keys = [CLIENT, *((part, "", name) for part in (Part.CPU, Part.QUEUE) for name in names), WAIT]
    return keys, np.array([5.0, *(share * cpu for share in among), *(share * queue for share in among), 7.0])


def rows_of(keys, *parts, query=None):
    return [row for row, key in enumerate(keys) if key[0] in parts and query in {None, key[2]}]


@given(statements)
def test_the_truth_lies_between_the_bounds_whatever_the_account_divides(truth):
    keys, values = account(truth)
    for place, (cpu, queue) in enumerate(truth):
        for part, true in ((Part.CPU, cpu), (Part.QUEUE, queue)):
            rows = rows_of(keys, part, query=chr(ord("A") + place))
            found = bound(keys, values, rows)
            assert values[rows].sum() - found.below - 1e-6 <= true <= values[rows].sum() + found.above + 1e-6


@given(statements)
def test_each_bound_is_reached_by_some_truth(truth):
    keys, values = account(truth)
    rows = rows_of(keys, Part.CPU, query="A")
    found = bound(keys, values, rows)
    here, queue = sum(truth[0]), sum(each[1] for each in truth)
    elsewhere = sum(sum(each) for each in truth) - here
    # all queueing where there is room for it in the other statements, and all of it in this one
    assert values[rows].sum() + found.above == pytest.approx(here - max(0.0, queue - elsewhere), abs=1e-6)
    assert values[rows].sum() - found.below == pytest.approx(here - min(queue, here), abs=1e-6)


@given(statements)
def test_both_of_a_statement_and_each_of_all_statements_are_known(truth):
    keys, values = account(truth)
    for rows in (
        rows_of(keys, Part.CPU),
        rows_of(keys, Part.QUEUE),
        rows_of(keys, Part.CPU, Part.QUEUE, query="A"),
        rows_of(keys, Part.CLIENT),
        rows_of(keys, Part.WAIT),
        list(range(len(keys))),
    ):
        assert bound(keys, values, rows) == Bounds(below=0.0, above=0.0)


def test_a_difference_is_as_uncertain_as_both_of_its_sides():
    first, second = Bounds(below=1.0, above=2.0), Bounds(below=0.5, above=4.0)
    assert first.less(second) == Bounds(below=5.0, above=2.5)
