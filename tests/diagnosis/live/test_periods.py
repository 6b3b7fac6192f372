"""Two windows side by side: parts add up, what differs is told from chance, and nothing is called a cause."""

import math

import numpy as np
import pytest

from archives import session
from pgstrata.diagnosis.live.periods import compare_periods
from pgstrata.diagnosis.live.uses import FIGURES, change_uses, longest_statements
from pgstrata.model.archive import ArchiveWindow, Span, StatementUse, UseCourses

CPU, LOCK = session("select"), session("update", "Lock/tuple")
MEMORY = 10.0


def window(load, commits, *, begin=0, seed=3, **more):
    """Two minutes of Poisson load and normal throughput around these means."""
    draws, size = np.random.default_rng(seed), 120
    rates = {"commits": draws.normal(commits, commits / 20, size), **more.pop("rates", {})}
    return ArchiveWindow(
        span=Span(begin=begin, end=begin + size), unit=1, cell=1, looks=(1,) * size,
        sessions={each: tuple(draws.poisson(mean, size).tolist()) for each, mean in load.items()},
        rates={name: tuple(np.asarray(values).tolist()) for name, values in rates.items()}, **more,
    )  # fmt: skip


def courses(*, seed=1, cells=60, scatter=0.05, seconds=10.0, **statements):
    """Each statement by calls, seconds and blocks hit of a cell, with independent scatter of calls and of seconds."""
    draws = np.random.default_rng(seed)

    def cell(calls, spent, blocks):
        calls, spent = calls * draws.normal(1, scatter), spent * draws.normal(1, scatter)
        return StatementUse(calls=calls, seconds=spent, rows=calls, blocks_hit=blocks * calls)

    uses = {key: tuple(cell(*figures) for _ in range(cells)) for key, figures in statements.items()}
    return UseCourses(seconds=(seconds,) * cells, uses=uses)


def changes(found, key):
    use = next(each for each in found if each.statement == key)
    return (
        {change.name: change for change in use.per_second},
        {change.name: change for change in use.per_call},
    )


def test_all_parts_of_the_load_add_up_to_its_difference():
    found = compare_periods(window({CPU: 4, LOCK: 3}, 80), window({CPU: 4}, 100, begin=-300, seed=4), None)
    difference = found.load.value - found.load.reference
    for rows in (found.rows, found.waits, found.statements, found.applications):
        assert math.fsum(row.value - row.reference for row in rows) == pytest.approx(difference)
    assert [row.event for row in found.waits if row.resolved] == ["Lock/tuple"]
    assert found.throughput.resolved
    assert found.uses == ()


def test_equal_windows_are_told_as_such():
    equal = [window({CPU: 4, LOCK: 1}, 100, begin=begin, seed=begin + 9) for begin in (1000, 0)]
    found = compare_periods(*equal, (courses(a=(100, 1, 5)), courses(seed=2, a=(100, 1, 5))))
    told = [found.throughput, found.load, found.time, *found.rows, *found.server, *found.uses[0].per_second,
            *found.uses[0].per_call]  # fmt: skip
    assert not any(each.resolved for each in told)
    assert found.throughput.limit > 0


def test_a_change_within_the_window_widens_its_intervals():
    before = window({CPU: 4}, 100)
    steady = window({CPU: 8}, 100, begin=1000, seed=5)
    counts = steady.sessions[CPU]
    stepped = tuple(sorted(counts))
    halves = ArchiveWindow(
        span=steady.span, unit=1, cell=1, looks=steady.looks, sessions={CPU: stepped}, rates=steady.rates
    )
    wide, narrow = (compare_periods(each, before, None).load.ratio for each in (halves, steady))
    assert wide is None or wide.high - wide.low > narrow.high - narrow.low


def test_slower_calls_are_told_from_more_calls():
    before = courses(seed=1, slower=(1000, 1, 5), more=(1000, 1, 5), same=(1000, 1, 5))
    after = courses(seed=2, slower=(1000, 2, 5), more=(2000, 2, 5), same=(1000, 1, 5))
    found = change_uses(after, before, MEMORY)
    per_second, per_call = changes(found, "slower")
    assert (per_second["calls"].resolved, per_second["seconds"].resolved, per_call["seconds"].resolved) == (
        False, True, True
    )  # fmt: skip
    assert per_call["seconds"].ratio.low < 2 < per_call["seconds"].ratio.high
    assert per_call["seconds"].reference == pytest.approx(0.001, rel=0.05)
    per_second, per_call = changes(found, "more")
    assert (per_second["calls"].resolved, per_second["seconds"].resolved, per_call["seconds"].resolved) == (
        True, True, False
    )  # fmt: skip
    assert per_second["calls"].value == pytest.approx(200, rel=0.05)
    assert not any(change.resolved for change in (*found[2].per_second, *found[2].per_call))


def test_what_is_constant_in_both_windows_does_not_differ():
    found = change_uses(courses(seed=2, a=(100, 1, 3)), courses(a=(100, 1, 3)), MEMORY)
    _, per_call = changes(found, "a")
    for name in ("rows", "blocks_hit"):
        assert per_call[name].value == pytest.approx(per_call[name].reference)
        assert not per_call[name].resolved


def test_a_statement_that_is_new_or_gone_differs_for_certain():
    before, after = courses(old=(100, 1, 5), new=(0, 0, 0)), courses(seed=2, old=(0, 0, 0), new=(100, 1, 5))
    found = change_uses(after, before, MEMORY)
    for key in ("old", "new"):
        per_second, per_call = changes(found, key)
        assert per_second["calls"].resolved
        assert per_second["calls"].ratio is None
        assert not per_call["seconds"].resolved
        assert math.isnan(per_call["seconds"].value) or math.isnan(per_call["seconds"].reference)


def test_a_few_intervals_have_no_error():
    found = change_uses(courses(cells=3, a=(100, 2, 5)), courses(cells=3, seed=2, a=(100, 1, 5)), MEMORY)
    assert {change.ratio for change in found[0].per_second} == {None}
    assert not any(change.resolved for change in (*found[0].per_second, *found[0].per_call))


def test_equal_statements_are_rarely_told_apart():
    """Of 100 pairs with eight equal statements each, Holm's procedure lets at most 5 % have a difference."""
    keys = {f"s{number}": (100 * (number + 1), 1, 5) for number in range(8)}
    told = 0
    for seed in range(100):
        found = change_uses(courses(seed=2 * seed, **keys), courses(seed=2 * seed + 1, **keys), MEMORY)
        told += any(use.per_second[FIGURES.index("calls")].resolved for use in found)
    assert told <= 12  # more has a probability of 0.15 % at 5 %


def test_the_longest_statements_of_either_window_are_compared():
    ours = {"a": StatementUse(calls=1, seconds=5.0), "b": StatementUse(calls=1, seconds=1.0)}
    theirs = {"c": StatementUse(calls=1, seconds=6.0)}
    windows = window({}, 100, statements=ours, counted=10.0), window({}, 100, statements=theirs, counted=30.0)
    assert longest_statements(*windows) == ("a", "c", "b")
    assert longest_statements(windows[0], window({}, 100)) == ()


def test_totals_are_rates_times_the_seconds_that_were_recorded():
    wal = {"wal_bytes": [1000.0] * 120, "connections": [7.0] * 120}
    value = window({CPU: 1}, 100, rates=wal, gaps=(Span(begin=20, end=50),))
    found = compare_periods(value, window({CPU: 1}, 100, rates=wal, begin=-200, seed=4), None)
    totals = {total.name: (total.value, total.reference) for total in found.totals}
    assert totals["wal_bytes"] == (90_000.0, 120_000.0)
    assert "connections" not in totals
