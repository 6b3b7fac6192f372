import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from damage import DAMAGES, damaged
from pgstrata.conduct.judge import exhausted, lag_growth
from pgstrata.drivers.sysbench.parse import SysbenchParser, parse_progress, parse_result
from pgstrata.errors import ParseError
from pgstrata.model.metrics import METRICS

CAPTURES = Path(__file__).parents[2] / "captures" / "sysbench"
CASES = sorted(path.parent for path in CAPTURES.glob("*/*/expected.json"))
GROUP = 0.0092  # half the width of a group of the histogram


def evidence_of(case):
    return {
        "sysbench.out": (case / "output.txt").read_bytes(),
        "sysbench.err": (case / "stderr.txt").read_bytes(),
    }


@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}-{case.name}" for case in CASES])
class TestEveryCapture:
    def test_gives_the_expected_result(self, case):
        expected = json.loads((case / "expected.json").read_text())
        result = parse_result(evidence_of(case))
        for name in ("version", "complete", "tps", "transactions", "retried", "samples"):
            assert getattr(result, name) == expected[name], name
        milliseconds = expected["latency_mean"]
        assert result.latency_mean == (None if milliseconds is None else pytest.approx(milliseconds / 1000))
        wanted = {float(quantile): value / 1000 for quantile, value in expected["percentiles"].items()}
        found = {quantile: result.percentiles[quantile] for quantile in wanted}
        # the middles of groups: what lies in a group is spread over it; three decimals of a millisecond
        assert found == pytest.approx(wanted, rel=GROUP, abs=0.5e-6)
        assert list(result.percentiles.values()) == sorted(result.percentiles.values())
        assert (result.failed, result.skipped) == (0, 0)
        assert result.by_script == expected.get("by_script", {})
        assert result.errors == tuple(expected["errors"])

    def test_gives_the_expected_series(self, case):
        expected = json.loads((case / "expected.json").read_text())
        series = {series.metric: series for series in parse_result(evidence_of(case)).series}
        assert series.keys() <= METRICS.keys()
        if expected["progress"]:
            assert list(zip(series["tps"].times, series["tps"].values, strict=True)) == [
                (time, tps) for time, tps in expected["progress"]
            ]
        if expected["lags"]:
            assert series["schedule_lag"].values == pytest.approx(expected["lags"])
        assert ("schedule_lag" in series) == bool(expected["lags"])
        assert ("tps" in series) == bool(expected["progress"])

    def test_tells_what_was_said_besides_the_figures(self, case):
        expected = json.loads((case / "expected.json").read_text())
        assert SysbenchParser().messages(evidence_of(case)) == tuple(expected["messages"])


def test_a_server_without_free_connections_is_known_by_what_is_said():
    said = SysbenchParser().messages(evidence_of(CAPTURES / "1.0.20" / "too-many-connections"))
    assert "too many clients already" in exhausted(said)


def test_a_queue_that_grows_tells_by_how_much_the_rate_is_too_high():
    text = "Target transaction rate: 1000/sec\n" + "".join(
        f"[ {second}s ] thds: 2 tps: 900.00 qps: 900.00 (r/w/o: 900.00/0.00/0.00) lat (ms,99%): 5.00 err/s: 0.00 "
        f"reconn/s: 0.00\n[ {second}s ] queue length: {100 * second}, concurrency: 2\n"
        for second in range(1, 10)
    )
    assert lag_growth(parse_result({"sysbench.out": text.encode()})) == pytest.approx(0.1)


def test_transactions_by_kind_are_those_of_all_threads():
    lines = "Transactions of a thread: new-order 5, payment 4\n[ 1s ] thds: 2 tps: 5.00\n"
    result = parse_result({"sysbench.out": f"{lines}{lines}".encode()})
    assert result.by_script == {"new-order": 10, "payment": 8}


def test_retries_that_a_script_counts_are_told_apart_from_other_ignored_errors():
    statistics = "    ignored errors:                      671    (55.57 per sec.)\n"
    counted = "Retries of a thread: 300\nRetries of a thread: 363\n"
    assert parse_result({"sysbench.out": statistics.encode()}).retried == 671
    assert parse_result({"sysbench.out": f"{counted}{statistics}".encode()}).retried == 663
    assert parse_result({"sysbench.out": f"Retries of a thread: 0\n{statistics}".encode()}).retried == 0


@pytest.mark.parametrize("count", ["", "few", "-1", "1 2", "1" * 16])
def test_retries_of_an_unknown_shape_are_refused(count):
    with pytest.raises(ParseError, match="unknown shape of retries"):
        parse_result({"sysbench.out": f"Retries of a thread: {count}\n".encode()})


def test_counts_of_a_script_end_a_complaint():
    said = "FATAL: it broke\nRetries of a thread: 5\n"
    assert SysbenchParser().messages({"sysbench.out": said.encode()}) == ("FATAL: it broke",)


@pytest.mark.parametrize("said", ["", "new-order", "new-order 5,payment 4", "new-order 5, payment -4"])
def test_transactions_by_kind_of_an_unknown_shape_are_quoted(said):
    line = f"Transactions of a thread: {said}"
    with pytest.raises(ParseError) as error:
        parse_result({"sysbench.out": f"{line}\n".encode()})
    assert repr(line) in str(error.value)


def test_connections_that_were_made_anew_are_an_error():
    text = (CAPTURES / "1.0.20" / "read-only" / "output.txt").read_text()
    changed = text.replace("reconnects:                          0      (0.00", "reconnects:     2      (0.70")
    assert changed != text
    result = parse_result({"sysbench.out": changed.encode()})
    assert result.errors == ("reconnects:     2      (0.70 per sec.)",)
    assert not result.complete


def test_warm_ups_count_as_something_that_ran_and_nothing_is_an_incomplete_run():
    parser = SysbenchParser()
    assert parser.ran({"warmup.sysbench.out": b"sysbench 1.0.20"})
    assert not parser.ran({"sysbench.out": b""})
    result = parse_result({})
    assert not result.complete
    assert (result.tps, result.transactions, result.samples, result.percentiles) == (None, 0, 0, {})


@pytest.mark.parametrize(
    "line",
    [
        "    transactions:                        many  (1080.87 per sec.)",
        "    transactions:                        12.5  (1080.87 per sec.)",
        "    transactions:                        3245",
        "         sum:                                 fast",
        "[ 1s ] thds: 2 nothing",
        "       0.619 |*** x",
    ],
)
def test_an_unknown_shape_of_a_known_field_is_quoted(line):
    text = f"{line}\n    total number of events:              3245\n    transactions: 3245 (1.0 per sec.)\n"
    with pytest.raises(ParseError) as error:
        parse_result({"sysbench.out": text.encode()})
    assert repr(line) in str(error.value)


def test_groups_of_fast_transactions_that_print_alike_are_one():
    text = "       0.020 |**** 120\n       0.020 |**** 180\n       0.021 |**** 100\n"
    result = parse_result({"sysbench.out": text.encode()})
    assert result.samples == 400
    assert 0.0195e-3 <= result.percentiles[0.5] <= 0.0205e-3


def test_reports_that_are_read_in_pieces_are_progress():
    (point,) = parse_progress(
        "[ 2s ] thds: 2 tps: 52.02 qps: 1040.36 (r/w/o: 728.25/208.07/104.04) lat (ms,99%): 11.65\n"
    )
    assert (point.time, point.tps, point.latency) == (2.0, 52.02, None)


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_no_input_ends_in_anything_but_a_parse_error(output, errors):
    with contextlib.suppress(ParseError):
        parse_result({"sysbench.out": output, "sysbench.err": errors})
    SysbenchParser().messages({"sysbench.out": output, "sysbench.err": errors})


@given(case=st.sampled_from(CASES), damages=DAMAGES)
def test_no_damaged_output_ends_in_anything_but_a_parse_error(case, damages):
    evidence = {"sysbench.out": damaged((case / "output.txt").read_bytes(), damages)}
    SysbenchParser().messages(evidence)
    with contextlib.suppress(ParseError):
        result = parse_result(evidence)
        assert result.tps is None or result.tps >= 0
        assert all(value >= 0 for value in result.percentiles.values())


def test_the_tail_of_each_second_is_a_series_and_an_idle_second_has_none():
    report = "[ {}s ] thds: 2 tps: {} qps: 1.00 (r/w/o: 1.00/0.00/0.00) lat (ms,99%): {} err/s: 0.00 reconn/s: 0.00\n"
    text = "sysbench 1.0.20\n" + report.format(1, "974.02", "7.84") + report.format(2, "0.00", "0.00")
    found = {series.metric: series for series in parse_result({"sysbench.out": text.encode()}).series}
    assert found["latency_p99"].times == (1.0,)
    assert found["latency_p99"].values == pytest.approx((0.00784,))
    assert found["tps"].times == (1.0, 2.0)
