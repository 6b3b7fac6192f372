"""Waits of a window go with the host only where they do beyond demand; gaps stay gaps, parts meet no totals."""

import math

import numpy as np
import pytest

from pgstrata.diagnosis.live.correlate import correlate, is_part
from pgstrata.model.archive import HOST_RATES, SERVER_RATES, Span
from pgstrata.model.association import ArchiveSeries

LWLOCK, READ = "LWLock/WALWrite", "IO/DataFileRead"
DAY = 86_400


def series(load, rates, *, step=10, looks=None):
    """Steps with these sums of sessions and these means; all have the same number."""
    steps = len(next(iter(rates.values())))
    looks = [step] * steps if looks is None else looks
    return ArchiveSeries(
        span=Span(begin=0, end=steps * step), step=step, unit=1 if step == 10 else 60, looks=tuple(looks),
        load={event: tuple(np.asarray(counts).astype(int).tolist()) for event, counts in load.items()},
        rates={name: tuple(map(float, values)) for name, values in rates.items()},
    )  # fmt: skip


def drifting(draws, steps, memory=0.8):
    found = draws.normal(size=steps)
    for step in range(1, steps):
        found[step] += memory * found[step - 1]
    return found


def waiting(draws, level, looks=10):
    """Samples of sessions whose mean number follows a level."""
    return draws.poisson(looks * np.exp(0.5 * level))


def slow_disk(lag=1, steps=600, seed=1, **more):
    """Waits for WAL that follow the disk by some steps, beside a wait and rates that follow nothing."""
    draws = np.random.default_rng(seed)
    disk = drifting(draws, steps)
    load = {LWLOCK: waiting(draws, np.roll(disk, lag)), READ: waiting(draws, drifting(draws, steps)), "": [30] * steps}
    rates = {
        "commits": 1000 + 50 * drifting(draws, steps),
        "disk_await": np.exp(disk) / 1000,
        "context_switches": drifting(draws, steps),
        "wal_bytes": drifting(draws, steps),
        "host_user_cpu": drifting(draws, steps),
    }
    return series(load, rates, **more)


def row(found, event, rate):
    return next(each for each in found.rows if (each.event, each.rate) == (event, rate))


@pytest.mark.parametrize(("lag", "lead"), [(1, 10), (0, 0), (-2, -20)])
def test_a_wait_goes_with_the_disk_that_leads_or_follows_it(lag, lead):
    found = correlate(slow_disk(lag))
    assert [(each.event, each.rate) for each in found.rows if each.resolved] == [(LWLOCK, "disk_await")]
    (first,) = found.rows[:1]
    assert first.lead == lead
    assert first.leads[0] <= lead <= first.leads[1]
    assert first.rho > 0.4
    assert first.interval.low < first.rho < first.interval.high


def test_every_pair_is_tested_and_what_hardly_changes_is_named():
    found = correlate(slow_disk())
    assert len(found.rows) == 2 * 5
    assert found.constant == ("",)
    assert (found.steps, found.all_steps, found.longest, found.held, found.shapes) == (600, 600, 60, True, (600,))
    assert 0 < found.limit < 0.3


def test_demand_that_drives_both_makes_no_association():
    draws = np.random.default_rng(2)
    demand = drifting(draws, 900, 0.9)
    load = {LWLOCK: waiting(draws, demand)}
    rates = {
        "disk_iops": 500 + 100 * demand + 20 * draws.normal(size=900),
        "commits": 1000 + 200 * demand + draws.normal(size=900),
    }
    found = correlate(series(load, rates))
    assert row(found, LWLOCK, "commits").resolved
    assert not row(found, LWLOCK, "disk_iops").resolved
    unheld = correlate(series(load, {"disk_iops": rates["disk_iops"]}))
    assert not unheld.held
    assert row(unheld, LWLOCK, "disk_iops").resolved


def test_throughput_that_falls_as_a_wait_grows_is_negative():
    draws = np.random.default_rng(3)
    wait = drifting(draws, 600)
    found = correlate(series({LWLOCK: waiting(draws, wait, 100)}, {"commits": 1000 * np.exp(-0.3 * wait)}))
    (only,) = found.rows
    assert only.resolved
    assert only.rho < -0.6


def closed_loop(seed, steps=720):
    """Sixteen clients without a pause: a slow disk makes them wait, and throughput fall."""
    draws = np.random.default_rng([12, seed])
    waited = 0.001 * np.exp(0.5 * drifting(draws, steps, 0.7))
    rate = 16 / (0.002 + waited)
    rates = {
        "commits": rate * draws.normal(1, 0.02, steps),
        "disk_await": waited * np.exp(0.2 * draws.normal(size=steps)),
        "context_switches": 8 * rate * draws.normal(1, 0.05, steps),
    }
    return series({LWLOCK: draws.poisson(10 * rate * waited)}, rates)


def test_where_throughput_is_an_effect_it_hides_no_cause_and_explains_most_of_the_rest():
    found = correlate(closed_loop(1))
    throughput, disk, switches = (row(found, LWLOCK, rate) for rate in ("commits", "disk_await", "context_switches"))
    assert throughput.resolved
    assert throughput.rho < -0.6
    assert disk.resolved
    assert not disk.held
    assert disk.rho > 0.6
    assert switches.held
    assert abs(switches.rho) < 0.25


def test_two_causes_of_slower_transactions_are_not_associated_for_that():
    wrong = 0
    for seed in range(20):
        draws = np.random.default_rng([13, seed])
        wait, disk = drifting(draws, 500, 0.7), drifting(draws, 500, 0.7)
        rates = {"commits": 1000 * np.exp(-0.3 * wait - 0.3 * disk), "disk_await": np.exp(disk)}
        found = correlate(series({LWLOCK: waiting(draws, wait)}, rates))
        assert row(found, LWLOCK, "commits").rho < 0
        wrong += row(found, LWLOCK, "disk_await").resolved
    assert wrong <= 3


def test_unrelated_series_are_seldom_associated():
    wrong = 0
    for seed in range(40):
        draws = np.random.default_rng([4, seed])
        load = {f"LWLock/{number}": waiting(draws, drifting(draws, 180, 0.95)) for number in range(4)}
        rates = {name: drifting(draws, 180, 0.95) for name in ("commits", *HOST_RATES[:8])}
        wrong += any(each.resolved for each in correlate(series(load, rates)).rows)
    # 2 of 40 are expected at most; more than 5 would be seen in 2 %
    assert wrong <= 5


def test_the_same_hours_of_each_day_make_no_association():
    draws = np.random.default_rng(5)
    steps = 3 * DAY // 60
    hour = np.arange(steps) * 60 % DAY // 3600
    backup = np.isin(hour, (2, 14)) * 3.0
    load = {LWLOCK: waiting(draws, backup + 0.2 * draws.normal(size=steps), 60)}
    found = correlate(series(load, {"disk_iops": backup + draws.normal(size=steps)}, step=60))
    assert found.shapes == (3600, DAY)
    assert not found.rows[0].resolved


@pytest.mark.parametrize(("minutes", "hours"), [(5, 1), (5, 4)])
def test_jobs_of_the_same_clock_make_no_association(minutes, hours):
    wrong = 0
    for seed in range(20):
        draws = np.random.default_rng([8, seed])
        steps = hours * 360
        load, disk = ((np.arange(steps) + draws.integers(6 * minutes)) % (6 * minutes) < 2 for _ in range(2))
        found = correlate(
            series({LWLOCK: waiting(draws, 3 * load)}, {"disk_iops": 3 * disk + draws.normal(size=steps)})
        )
        wrong += found.rows[0].resolved
    assert wrong <= 4


@pytest.mark.parametrize(
    ("event", "rate"),
    [
        ("", "host_user_cpu"),
        ("", "run_queue_length"),
        ("LWLock/WALWrite", "connections"),
        ("IO/DataFileRead", "relation_reading"),
        ("IO/WalSync", "disk_queue"),
    ],
)
def test_no_part_is_compared_with_its_own_total(event, rate):
    assert is_part(event, rate)
    draws = np.random.default_rng(6)
    found = correlate(
        series(
            {event: waiting(draws, drifting(draws, 100))},
            {rate: draws.normal(size=100), "commits": draws.normal(size=100)},
        )
    )
    assert [each.rate for each in found.rows] == ["commits"]
    assert found.parts == 1


def test_other_pairs_are_compared():
    assert not is_part("LWLock/WALWrite", "wal_syncing")
    assert not is_part("", "disk_await")
    assert not is_part("Lock/tuple", "disk_queue")
    assert sum(is_part("Lock/tuple", rate) for rate in (*HOST_RATES, *SERVER_RATES)) == 1


def test_gaps_are_left_out_and_nothing_is_put_in_their_place():
    looks = np.full(600, 10)
    looks[200:260] = 0
    looks[300] = 4
    found = correlate(slow_disk(looks=looks.tolist()))
    assert (found.steps, found.all_steps) == (539, 600)
    first = found.rows[0]
    assert (first.event, first.rate, first.lead) == (LWLOCK, "disk_await", 10)
    assert first.steps < 539


def test_a_rate_that_is_known_for_a_part_only_is_compared_there():
    whole = slow_disk()
    rates = {**whole.rates, "disk_await": (math.nan,) * 350 + whole.rates["disk_await"][350:]}
    found = correlate(series(whole.load, rates))
    assert row(found, LWLOCK, "disk_await").resolved
    assert row(found, LWLOCK, "disk_await").steps <= 250


def test_a_load_between_few_looks_counts_by_look():
    draws = np.random.default_rng(7)
    looks = draws.integers(5, 11, size=600)
    found = correlate(series({LWLOCK: 3 * looks}, {"commits": draws.normal(size=600)}, looks=looks.tolist()))
    assert found.constant == (LWLOCK,)
    assert found.rows == ()
    assert found.limit is None


def test_of_a_window_without_load_or_rates_nothing_is_tested():
    assert correlate(series({}, {"commits": np.arange(100.0)})).rows == ()
    assert correlate(series({LWLOCK: [0, 9] * 20}, {"commits": np.arange(40.0)})).rows == ()
