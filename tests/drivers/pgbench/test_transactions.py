import contextlib
import gzip
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.drivers.pgbench import transactions
from pgstrata.drivers.pgbench.parse import parse_result
from pgstrata.drivers.pgbench.transactions import parse_courses, parse_transactions
from pgstrata.errors import ParseError
from timing import least_seconds

WORDS = ("failed", "serialization", "deadlock", "skipped")


def log_of(times, extra=""):
    return "".join(f"{i % 3} {i} {t} 0 1795172798 {i}{extra}\n" for i, t in enumerate(times)).encode()


@given(
    st.lists(st.one_of(st.integers(0, 10**12), st.sampled_from(WORDS)), max_size=60),
    st.sampled_from(["", " 80", " 4749 2"]),
    st.integers(60, 400),
)
def test_latencies_are_those_that_were_logged_however_the_log_is_cut(times, extra, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transactions, "_CHUNK", chunk)
        found = parse_transactions(log_of(times, extra))
    assert found.microseconds.tolist() == [time for time in times if isinstance(time, int)]


@given(st.lists(st.text("0123456789 \nfailedx", max_size=40), max_size=8).map(lambda rest: "\n".join(rest).encode()))
def test_no_log_ends_in_anything_but_a_parse_error(rest):
    with contextlib.suppress(ParseError):
        parse_transactions(b"0 1 100 0 1795172798 1\n" + rest + b"\n")


@pytest.mark.parametrize(
    "line",
    [
        "0 1 100 0 1795172798",  # a column short
        "0 1 100 0 1795172798 5 6",  # a column more than the first line
        "0 1 lost 0 1795172798 5",  # an unknown word
        "0 1 1x0 0 1795172798 5",
        "0 1 -10 0 1795172798 5",
        "0 1 9999999999999999999 0 1795172798 5",
        "0  1 100 0 1795172798",
        "",
    ],
)
def test_a_line_of_an_unknown_shape_is_quoted(line):
    log = log_of([10, "failed", 30]) + f"{line}\n".encode() + log_of([40])
    with pytest.raises(ParseError) as error:
        parse_transactions(log)
    assert repr(line) in str(error.value)


def test_lines_whose_faults_cancel_out_are_found():
    with pytest.raises(ParseError, match="0 1 100 0 1795172798 5 6'"):
        parse_transactions(log_of([10]) + b"0 1 100 0 1795172798 5 6\n0 1 100 0 1795172798\n")


def test_an_aggregated_log_is_refused():
    with pytest.raises(ParseError, match="1795172798 100 2000 90000 3 40"):
        parse_transactions(b"1795172798 100 2000 90000 3 40\n")


def test_a_last_line_without_its_end_is_not_counted():
    assert parse_transactions(log_of([10, 20]) + b"0 3 30 0 17951").samples == 2
    assert parse_transactions(b"0 3 30 0 17951").samples == 0


def test_a_quantile_needs_a_hundred_samples_beyond_it():
    tenths = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    thousand = parse_transactions(log_of(range(1000))).quantiles()
    assert list(thousand) == tenths
    assert thousand[0.9] == pytest.approx(899.5e-6)
    assert list(parse_transactions(log_of(range(10000))).quantiles()) == [*tenths, 0.95, 0.99]
    assert list(parse_transactions(log_of(range(9999))).quantiles()) == [*tenths, 0.95]


def test_a_quantile_needs_a_hundred_samples_on_its_rarer_side():
    assert list(parse_transactions(log_of(range(999))).quantiles()) == [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    assert list(parse_transactions(log_of(range(200))).quantiles()) == [0.5]
    assert parse_transactions(log_of(range(199))).quantiles() == {}
    assert parse_transactions(b"").quantiles() == {}


@pytest.mark.parametrize("true", [1.002, 1.03, 1.1])
def test_a_shift_smaller_than_a_microsecond_is_seen(true):
    latencies = np.random.default_rng(1).gamma(9, 1.2, 20_000) + 4
    base, slower = (
        parse_transactions(log_of(np.rint(latencies * factor).astype(int))).quantiles() for factor in (1, true)
    )
    for quantile, value in slower.items():
        assert value / base[quantile] == pytest.approx(true, abs=0.006)


@given(st.lists(st.integers(0, 60), min_size=200, max_size=600))
def test_quantiles_grow_and_lie_within_half_a_microsecond_of_a_latency(latencies):
    found = parse_transactions(log_of(latencies)).quantiles()
    assert list(found.values()) == sorted(found.values())
    for quantile, value in found.items():
        exact = sorted(latencies)[math.ceil(quantile * len(latencies) - 1e-6) - 1]
        assert abs(value * 1e6 - exact) <= 0.5 + 1e-6


@pytest.mark.alone
def test_a_hundred_thousand_lines_take_less_than_a_third_of_a_second():
    log = log_of(range(100_000), " 80 0")
    assert parse_transactions(log).samples == 100_000
    assert least_seconds(lambda: parse_transactions(log), 0.3) < 0.3


def rated_log(latencies, *, apart=1000, start=1_795_172_798):
    """Transactions that were to begin `apart` microseconds after each other, with their latencies and lags."""
    lines = []
    for number, latency in enumerate(latencies):
        ended = number * apart + latency
        lines.append(f"0 {number} {latency} 0 {start + ended // 1_000_000} {ended % 1_000_000} {latency - 1}\n")
    return "".join(lines).encode()


def test_late_transactions_are_counted_after_the_lead():
    log = rated_log([50_000] * 1000 + [5_000] * 2970 + [30_000] * 30)
    found = transactions.count_late(log, limit=0.02, lead=1.0)
    assert (found.transactions, found.late) == (3000, 30)
    assert found.mean == pytest.approx(0.00525)
    assert found.growth == pytest.approx(0.0)
    assert transactions.count_late(log, limit=0.02, lead=0.0).late == 1030


def test_threads_one_after_the_other_have_one_beginning():
    both = rated_log([1_000] * 3000) + rated_log([30_000] * 3000)
    found = transactions.count_late(both, limit=0.02, lead=1.0)
    assert (found.transactions, found.late) == (4000, 2000)


def test_a_queue_that_grows_without_end_shows_in_its_growth():
    found = transactions.count_late(rated_log(range(1000, 301_000, 100)), limit=1.0, lead=0.0)
    assert found.growth == pytest.approx(0.1, rel=0.01)


def test_an_empty_log_has_no_transactions_and_a_broken_one_is_refused():
    assert transactions.count_late(b"", limit=1.0, lead=0.0).transactions == 0
    with pytest.raises(ParseError):
        transactions.count_late(log_of([10, 20]) + b"0 1 100 0 17951x2798 1\n", limit=1.0, lead=0.0)


def spread_log(latencies, seconds, start=1_795_172_798):
    """Transactions spread evenly over so many seconds, with their latencies in microseconds."""
    lines = []
    for number, latency in enumerate(latencies):
        ended = int(seconds * 1_000_000 * (number + 0.5) / len(latencies)) + latency
        lines.append(f"0 {number} {latency} 0 {start + ended // 1_000_000} {ended % 1_000_000}\n")
    return "".join(lines).encode()


class TestPercentilesBySecond:
    def test_a_slow_second_shows_in_its_second_alone(self):
        latencies = [5000 if number // 3000 == 4 else 1000 for number in range(30_000)]
        found = {series.metric: series for series in parse_courses([spread_log(latencies, 10)])}
        assert list(found) == ["latency_p50", "latency_p95", "latency_p99"]
        median = dict(zip(found["latency_p50"].times, found["latency_p50"].values, strict=True))
        assert median[5.0] == pytest.approx(0.005)
        assert [median[second] for second in (1.0, 2.0, 3.0, 4.0, 7.0, 10.0)] == pytest.approx([0.001] * 6)

    def test_steps_are_longer_where_there_are_few_samples(self):
        (median, tail) = parse_courses([spread_log([1000] * 6000, 60)])
        assert (median.metric, tail.metric) == ("latency_p50", "latency_p95")
        assert median.times == tuple(float(second) for second in range(1, 61))
        assert tail.times == median.times

    def test_too_few_transactions_give_no_percentiles(self):
        assert parse_courses([spread_log([1000] * 60, 60)]) == ()
        assert parse_courses([b""]) == parse_courses([]) == ()

    def test_logs_of_several_machines_begin_together_whatever_their_clocks_say(self):
        logs = [spread_log([1000] * 3000, 10, start=start) for start in (1_795_172_798, 1_795_000_000)]
        (median, _) = parse_courses(logs)
        assert median.times == tuple(float(second) for second in range(1, 11))

    def test_a_clock_that_jumped_by_years_gives_none_and_costs_nothing(self):
        assert parse_courses([log_of([1000] * 3000) + b"0 1 100 0 9999999999999 1\n"]) == ()

    def test_they_are_series_of_a_run_that_has_seconds(self):
        packed = gzip.compress(spread_log([1000] * 3000, 10))
        progress = b"progress: 1.0 s, 300.0 tps, lat 1.0 ms stddev 0.1, 0 failed\n"
        found = parse_result({"pgbench.err": progress, "transactions.log.gz": packed}).series
        assert "latency_p50" in {series.metric for series in found}
        assert parse_result({"transactions.log.gz": packed}).series == ()
