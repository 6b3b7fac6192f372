"""Incidents are found in steps as they come; more demand, other statements, lulls and gaps are none."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archives import session
from live_traffic import BEGIN, CPU, Seconds
from pgstrata.diagnosis.live.detection import ADOPTED, LEARNING, Detector
from pgstrata.diagnosis.live.memory import DAY, Memory, at_minutes
from pgstrata.diagnosis.live.suspicion import locate
from pgstrata.model.archive import Span
from pgstrata.model.incidents import DemandChange, DemandKind, Ending, Incident, IncidentKind, LoadStep

LOCK = session("update", "Lock/transactionid")
REPORT = session("report", "IO/DataFileRead", application="reports")


def search(seconds, memory=None, **more):
    """Everything that a detector says of them, and the detector."""
    detector = Detector(seconds, memory)
    return [each for step in seconds.steps(**more) for each in detector.see(step)], detector


def incidents(told):
    return [each for each in told if isinstance(each, Incident)]


def demand(told):
    return [each for each in told if isinstance(each, DemandChange)]


def test_a_slowdown_is_found_within_a_minute_with_its_beginning_and_its_end():
    seconds = Seconds(7200)
    seconds.slow(3605, 4800, 0.5)
    told, detector = search(seconds)
    begun, ended = incidents(told)
    assert (begun.end, begun.ending) == (None, None)
    assert 0 < begun.found - (BEGIN + 3605) <= 60
    assert abs(begun.begin - (BEGIN + 3605)) <= 2
    assert begun.begin_interval.low <= BEGIN + 3605 <= begun.begin_interval.high
    assert abs(ended.end - (BEGIN + 4800)) <= 2
    assert (ended.kind, ended.ending) == (IncidentKind.SLOWER, Ending.USUAL)
    assert ended.factor == pytest.approx(2, rel=0.02)
    assert ended.factor_interval.low < ended.factor < ended.factor_interval.high
    assert ended.throughput == pytest.approx(500, rel=0.02)
    assert ended.usual_throughput == pytest.approx(1000, rel=0.02)
    assert detector.active is None
    assert not demand(told)


def nearly_idle(size, seed=1):
    """A server with a session at work in one look of ten: ratios of single steps scatter by more than a factor of two."""
    draws = np.random.default_rng(seed)
    seconds = Seconds(size, rate=120.0, seed=seed)
    seconds.sessions = {CPU: draws.binomial(1, 0.1, size)}
    return seconds


@pytest.mark.parametrize("seed", range(5))
def test_a_stall_of_a_nearly_idle_server_is_found_in_half_a_minute_and_ends_at_once(seed):
    seconds = nearly_idle(7200, seed)
    for begin in (3600, 4000):
        seconds.commits[begin : begin + 75] = 1.0
        seconds.add(LOCK, begin, begin + 75, 12)
    told, detector = search(seconds)
    assert detector.active is None
    found = incidents(told)
    assert [each.end is None for each in found] == [True, False, True, False]
    for begin, begun, ended in ((3600, *found[:2]), (4000, *found[2:])):
        assert begun.found - (BEGIN + begin) <= 40
        assert abs(begun.begin - (BEGIN + begin)) <= 2
        assert abs(ended.end - (BEGIN + begin + 75)) <= 2
        assert ended.factor > 50


def test_a_nearly_idle_server_on_which_nothing_happens_has_no_incident():
    assert search(nearly_idle(2 * DAY))[0] == []


def test_while_it_lasts_it_is_active():
    seconds = Seconds(4500)
    seconds.slow(3600, 4500, 0.5)
    told, detector = search(seconds)
    assert detector.active == incidents(told)[0]


def test_a_fall_of_a_fifth_is_found_and_one_of_a_twentieth_is_not():
    for factor, number in ((0.8, 2), (0.95, 0)):
        seconds = Seconds(7200, seed=3)
        seconds.slow(3600, 4800, factor)
        assert len(search(seconds)[0]) == number


def with_bursts(size, seed):
    """Once a minute another load slows transactions for one to six seconds."""
    draws, seconds = np.random.default_rng(seed), Seconds(size, seed=seed)
    for begin in np.nonzero(draws.random(size) < 1 / 60)[0]:
        seconds.commits[begin : begin + 1 + int(min(5, draws.exponential(2)))] /= draws.uniform(1.2, 2.5)
    return seconds


@pytest.mark.parametrize("seed", range(1, 6))
def test_where_short_bursts_are_usual_a_fall_of_a_fifth_is_found_within_a_minute(seed):
    seconds = with_bursts(16_200, seed)
    seconds.slow(14_400, 15_600, 0.8)
    told, detector = search(seconds)
    begun, _ = incidents(told)
    assert 0 < begun.found - (BEGIN + 14_400) <= 60
    assert detector.limit < 1.3


def test_short_bursts_alone_are_no_incident():
    assert search(with_bursts(DAY, 7))[0] == []


def test_a_server_on_which_nothing_happens_has_no_incident():
    told, detector = search(Seconds(2 * DAY, scatter=0.2))
    assert told == []
    assert detector.judged == 2 * DAY - LEARNING


def test_more_demand_alone_is_no_incident():
    seconds = Seconds(7200)
    seconds.more(3600, 4800, 2.0)
    told, _ = search(seconds)
    assert incidents(told) == []
    (found,) = demand(told)
    assert found.kind is DemandKind.MORE
    assert abs(found.begin - (BEGIN + 3600)) <= 20
    assert found.throughput == pytest.approx(2 * found.usual_throughput, rel=0.05)


def test_more_demand_that_makes_each_transaction_slower_is_no_incident():
    seconds = Seconds(7200)
    seconds.more(3600, 4800, 1.5)
    seconds.add(CPU, 3600, 4800, 12)
    told, _ = search(seconds)
    assert incidents(told) == []
    assert {each.kind for each in demand(told)} == {DemandKind.MORE}
    assert demand(told)[-1].factor > 1.3


def test_a_fall_of_throughput_after_more_demand_is_an_incident():
    seconds = Seconds(9000)
    seconds.more(3600, 9000, 1.5)
    seconds.add(CPU, 3600, 9000, 12)
    seconds.slow(5400, 6600, 0.5)
    begun, ended = incidents(search(seconds)[0])
    assert abs(begun.begin - (BEGIN + 5400)) <= 10
    assert abs(ended.end - (BEGIN + 6600)) <= 10


def test_a_lull_is_no_incident_nor_is_its_end():
    seconds = Seconds(7200)
    seconds.more(3600, 4800, 0.0)
    seconds.more(5400, 6000, 0.2)
    told, _ = search(seconds)
    assert incidents(told) == []


def test_other_statements_are_no_incident_and_are_named():
    seconds = Seconds(7200)
    seconds.add(REPORT, 3600, 4800, 5)
    told, _ = search(seconds)
    assert incidents(told) == []
    found = next(each for each in demand(told) if each.kind is DemandKind.STATEMENTS)
    assert found.statements == ("report",)


def test_other_statements_for_which_throughput_falls_are_an_incident():
    seconds = Seconds(7200)
    seconds.add(LOCK, 3600, 4800, 5)
    seconds.slow(3600, 4800, 0.6)
    assert [each.kind for each in incidents(search(seconds)[0])] == [IncidentKind.SLOWER] * 2


def test_sessions_of_which_none_ends_are_a_stall():
    seconds = Seconds(7200)
    seconds.slow(3600, 3720, 0.0)
    begun, ended = incidents(search(seconds)[0])
    assert begun.kind is ended.kind is IncidentKind.STALLED
    assert begun.factor_interval is None
    assert math.isfinite(begun.factor)
    assert abs(ended.end - (BEGIN + 3720)) <= 10


def test_a_burst_of_twenty_seconds_is_no_incident():
    seconds = Seconds(7200)
    for begin in (3600, 4200, 5000):
        seconds.slow(begin, begin + 20, 0.1)
    assert search(seconds)[0] == []


def test_after_six_hours_it_is_what_is_usual():
    seconds = Seconds(10 * 3600)
    seconds.slow(3600, 10 * 3600, 0.5)
    begun, ended = incidents(search(seconds)[0])
    assert ended.ending is Ending.ADOPTED
    assert ended.end - begun.begin == pytest.approx(ADOPTED, abs=10)


def test_a_gap_ends_it_as_far_as_anybody_knows():
    seconds = Seconds(7200)
    seconds.slow(3600, 7200, 0.5)
    told, detector = search(seconds, without=((4200, 5400),))
    first, cut, again = incidents(told)
    assert (cut.begin, cut.ending, cut.end) == (first.begin, Ending.UNSEEN, BEGIN + 4200)
    assert detector.active == again
    assert abs(again.begin - (BEGIN + 5400)) <= 30
    assert again.usual_throughput == pytest.approx(1000, rel=0.02)


def test_a_short_gap_changes_nothing():
    seconds = Seconds(7200)
    seconds.slow(3600, 4800, 0.5)
    assert len(incidents(search(seconds, without=((3900, 4000),))[0])) == 2


def test_steps_without_known_transactions_tell_nothing():
    seconds = Seconds(7200)
    seconds.commits[3600:3700] = math.nan
    told, detector = search(seconds)
    assert told == []
    assert detector.judged == 7200 - LEARNING - 100


def test_a_clock_that_was_stepped_back_makes_no_step_come_twice():
    seconds = Seconds(3600)
    detector = Detector(seconds)
    steps = list(seconds.steps())
    told = [each for step in (*steps, *steps) for each in detector.see(step)]
    assert told == []
    assert detector.judged == 3600 - LEARNING


def test_without_seven_minutes_nothing_is_judged():
    seconds = Seconds(420)
    seconds.slow(200, 420, 0.3)
    told, detector = search(seconds)
    assert (told, detector.judged, detector.limit) == ([], 0, None)


def test_counts_of_statements_find_what_few_samples_cannot():
    seconds = Seconds(7200)
    draws = np.random.default_rng(5)
    seconds.sessions[CPU] = draws.poisson(0.2, 7200)
    seconds.spent = 0.2 * draws.normal(1, 0.02, 7200)
    seconds.spent[3600:4800] *= 2
    begun, ended = incidents(search(seconds)[0])
    assert abs(begun.begin - (BEGIN + 3600)) <= 10
    assert begun.found - (BEGIN + 3600) <= 60
    assert ended.factor == pytest.approx(2, rel=0.05)
    assert abs(ended.end - (BEGIN + 4800)) <= 10


def test_the_smallest_slowdown_that_is_surely_found_is_larger_in_a_noisy_series():
    limits = [search(Seconds(3600, scatter=scatter))[1].limit for scatter in (0.02, 0.5)]
    assert 1.15 < limits[0] < 1.3
    assert limits[1] - 1 > 3 * (limits[0] - 1)


def minutes(memory, day, level):
    for minute in range(1440):
        memory.add(BEGIN + day * DAY + minute * 60, level(minute) * 60, 60, 100.0)


def test_what_is_slow_at_the_same_time_each_day_is_usual_from_the_fourth_day_on():
    memory = Memory()
    for day in range(3):
        assert memory.usual(BEGIN + day * DAY) is None
        minutes(memory, day, lambda minute: 3.0 if 600 <= minute < 660 else 1.0)
    course = memory.usual(BEGIN + 3 * DAY)
    assert memory.days == 3
    at = BEGIN + 3 * DAY + 60 * np.array([300.0, 630.0])
    quiet, slow = at_minutes(course, at)
    assert slow - quiet == pytest.approx(math.log(3))


def test_one_day_that_was_unlike_the_others_changes_nothing():
    memory = Memory()
    for day in range(5):
        minutes(memory, day, lambda minute, day=day: 3.0 if day == 4 and 600 <= minute < 660 else 1.0)
    course = memory.usual(BEGIN + 5 * DAY)
    assert np.ptp(course) == pytest.approx(0, abs=1e-9)


def test_the_same_weekday_counts_once_there_are_three():
    memory = Memory()
    for day in range(21):
        minutes(memory, day, lambda minute, day=day: 3.0 if day % 7 == 0 and 600 <= minute < 660 else 1.0)
    assert np.ptp(memory.usual(BEGIN + 21 * DAY)) == pytest.approx(math.log(3))
    assert np.ptp(memory.usual(BEGIN + 22 * DAY)) == pytest.approx(0, abs=1e-9)


def test_a_slow_hour_that_comes_each_day_is_told_on_the_first_days_only():
    memory, seconds = Memory(), Seconds(5 * DAY)
    for day in range(5):
        seconds.slow(day * DAY + 36_000, day * DAY + 39_600, 0.5)
    for step in seconds.steps(60):
        memory.add(step.end - 59, step.load, step.looks, step.commits)
    told = incidents(search(seconds, memory)[0])
    assert {(each.begin - BEGIN) // DAY for each in told} == {0, 1, 2}


def test_a_step_of_nothing_is_no_trouble():
    detector = Detector(Seconds(10))
    for end in range(9, 20_000, 10):
        assert detector.see(LoadStep(end=end, seconds=10, looks=10, load=0.0, commits=0.0, spent=0.0)) == ()


def test_where_nothing_is_known_of_its_last_half_no_beginning_is_located():
    seconds = Seconds(1200)
    seconds.slow(900, 1200, 0.5)
    seconds.commits[1000:] = math.nan
    whole = seconds.window(Span(begin=BEGIN, end=BEGIN + 1200))
    assert locate(whole, BEGIN + 890, BEGIN + 1199) is None


def test_where_nothing_is_known_of_its_first_half_no_end_is_located():
    seconds = Seconds(1200)
    seconds.slow(0, 500, 0.5)
    seconds.commits[:400] = math.nan
    whole = seconds.window(Span(begin=BEGIN, end=BEGIN + 1200))
    assert locate(whole, BEGIN, BEGIN + 510, ends=True) is None


@pytest.mark.parametrize("lost", [(3600, 3700), (3605, 4400), (4390, 4420), (3605, 7200)])
def test_seconds_that_nobody_knows_beside_an_incident_break_nothing(lost):
    seconds = Seconds(7200)
    seconds.slow(3600, 4400, 0.3)
    seconds.spent[:] = seconds.load
    seconds.commits[slice(*lost)] = math.nan
    for each in incidents(search(seconds)[0]):
        assert each.end is None or each.begin < each.end


AMOUNTS = st.sampled_from([0.0, 1e-9, 0.3, 7.0, 1e6, 1e18, math.nan])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS, st.integers(1, 400)), min_size=60, max_size=200))
def test_whatever_steps_come_nothing_breaks(rows):
    detector, end = Detector(Seconds(10)), BEGIN
    for load, commits, spent, away in rows:
        end += 10 * away if away > 390 else 10
        known = 0.0 if math.isnan(load) else load
        step = LoadStep(end=end, seconds=10, looks=10, load=known, commits=commits, spent=spent)
        for told in detector.see(step):
            assert math.isfinite(told.throughput)
            if isinstance(told, Incident):
                assert told.begin <= told.found
                assert told.end is None or told.begin < told.end
                assert told.factor >= 0
