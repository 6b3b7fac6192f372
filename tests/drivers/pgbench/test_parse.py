import contextlib
import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.drivers.pgbench.parse import hide_profile, parse_complaints, parse_progress, parse_result, parse_summary
from pgstrata.drivers.pgbench.transactions import parse_transactions
from pgstrata.errors import ParseError
from pgstrata.model.metrics import METRICS

CAPTURES = Path(__file__).parents[2] / "captures" / "pgbench"
CASES = sorted(path.parent for path in CAPTURES.glob("*/*/expected.json"))


def evidence_of(case):
    log = case / "log.txt"
    found = {"pgbench.out": (case / "output.txt").read_bytes(), "pgbench.err": (case / "stderr.txt").read_bytes()}
    if log.exists():
        found["transactions.log.gz"] = gzip.compress(log.read_bytes())
    return found


@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}-{case.name}" for case in CASES])
class TestEveryCapture:
    def test_gives_the_expected_result(self, case):
        expected = json.loads((case / "expected.json").read_text())
        result = parse_result(evidence_of(case))
        assert result.version == expected["version"]
        assert result.complete is expected["complete"]
        assert result.tps == expected["tps"]
        for name in ("latency_mean", "latency_stddev"):
            milliseconds = expected[name]
            assert getattr(result, name) == (None if milliseconds is None else pytest.approx(milliseconds / 1000))
        hidden = hide_profile((case / "output.txt").read_text()).encode()
        shown = parse_result(evidence_of(case) | {"pgbench.out": hidden})
        assert [seconds for seconds, _ in shown.statements] == [seconds for seconds, _ in result.statements]
        assert replace(shown, statements=()) == replace(result, statements=())
        assert not re.search(r"\b\d", "".join(text for _, text in shown.statements))
        for name in ("transactions", "failed", "retried", "skipped", "samples"):
            assert getattr(result, name) == expected[name], name
        assert result.percentiles == pytest.approx({float(q): v for q, v in expected["percentiles"].items()})
        assert result.errors == tuple(expected["errors"])
        assert result.by_script == expected.get("by_script", {})

    def test_gives_the_expected_series(self, case):
        points = json.loads((case / "expected.json").read_text())["progress"]
        series = {series.metric: series for series in parse_result(evidence_of(case)).series}
        if not points:
            assert not series
            return
        assert series["tps"].times == tuple(time for time, _, _ in points)
        assert series["tps"].values == tuple(tps for _, tps, _ in points)
        assert series["latency_mean"].values == pytest.approx([lat / 1000 for _, tps, lat in points if tps])
        assert series.keys() <= METRICS.keys()

    def test_has_every_statement_of_a_profile(self, case):
        count = json.loads((case / "expected.json").read_text())["statements"]
        statements = parse_result(evidence_of(case)).statements
        assert len(statements) == count
        assert all(latency >= 0 and text and text == text.strip() for latency, text in statements)


def test_statements_of_a_profile_are_in_seconds_with_their_text():
    text = (CAPTURES / "18.6" / "retries-profile" / "output.txt").read_text()
    assert parse_summary(text).statements[3] == (
        pytest.approx(50e-6),
        "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :bid;",
    )


def test_statements_before_pgbench_15_have_no_counts_beside_their_latency():
    text = (CAPTURES / "14.23" / "profile" / "output.txt").read_text()
    assert parse_summary(text).statements[6][1] == "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;"


def test_a_statement_that_begins_with_a_number_keeps_it():
    text = "statement latencies in milliseconds:\n         0.050  1 + 1;\n         0.002  12 3;\n"
    assert [text for _, text in parse_summary(text).statements] == ["1 + 1;", "12 3;"]


def test_the_summary_of_versions_before_14_gives_tps_without_connecting():
    text = (
        "transaction type: <builtin: select only>\nscaling factor: 1\nquery mode: prepared\nnumber of clients: 1\n"
        "number of threads: 1\nduration: 3 s\nnumber of transactions actually processed: 47112\n"
        "latency average = 0.064 ms\nlatency stddev = 0.014 ms\n"
        "tps = 15703.912345 (including connections establishing)\n"
        "tps = 15710.123456 (excluding connections establishing)\n"
    )
    summary = parse_summary(text)
    assert summary.tps == 15710.123456
    assert summary.version == ""


def test_figures_of_single_scripts_are_not_those_of_the_run():
    summary = parse_summary((CAPTURES / "14.23" / "two-scripts" / "output.txt").read_text())
    assert (summary.transactions, summary.tps) == (1000, 83201.597471)


def test_a_mean_that_includes_failures_is_read():
    text = (
        "number of transactions actually processed: 3\nlatency average = 1.500 ms (including failures)\ntps = 3.0 (x)\n"
    )
    assert parse_summary(text).latency_mean == pytest.approx(1.5e-3)


def test_nothing_at_all_is_an_incomplete_run_without_figures():
    result = parse_result({})
    assert not result.complete
    assert (result.tps, result.transactions, result.samples, result.percentiles) == (None, 0, 0, {})


@pytest.mark.parametrize(
    "line",
    [
        "number of transactions actually processed: many",
        "number of failed transactions: 1.5 (3%)",
        "latency average = fast",
        "tps = 12,5 000".replace("12,5", "x"),
        "statement latencies in milliseconds and colours:",
    ],
)
def test_an_unknown_shape_of_a_known_field_is_quoted(line):
    with pytest.raises(ParseError) as error:
        parse_summary(f"{line}\n")
    assert line in str(error.value)


def test_a_throughput_without_a_count_is_an_unknown_shape():
    with pytest.raises(ParseError, match="no count of transactions"):
        parse_summary("tps = 3.5 (without initial connection time)\n")


class TestProgress:
    def test_failed_transactions_are_counted(self):
        (point,) = parse_progress("progress: 2.0 s, 8586.2 tps, lat 0.133 ms stddev 0.054, 16503 failed\n")
        assert (point.time, point.tps, point.latency, point.failed) == (2.0, 8586.2, pytest.approx(133e-6), 16503)

    def test_a_line_in_the_making_is_left_out(self):
        assert parse_progress("progress: 1.0 s, 100.0 tps, lat 0.133 ms stddev 0.05") == ()

    def test_a_second_without_transactions_has_no_latency_in_the_series(self):
        text = b"progress: 1.0 s, 5.0 tps, lat 1.000 ms stddev 0.1\nprogress: 2.0 s, 0.0 tps, lat NaN ms stddev NaN\n"
        tps, latency = parse_result({"pgbench.err": text}).series
        assert tps.values == (5.0, 0.0)
        assert latency.times == (1.0,)

    def test_an_unknown_shape_is_quoted(self):
        with pytest.raises(ParseError, match="progress: 1 minute"):
            parse_progress("progress: 1 minute, lots\n")


class TestComplaints:
    @pytest.mark.parametrize(
        "line",
        [
            "pgbench: error: client 3 script 0 aborted in command 2 query 0: ERROR:  deadlock detected",
            "client 0 aborted in command 3 (SQL) of script 0; perhaps the backend died while processing",
            "psql: FATAL:  the database system is starting up",
            "Run was aborted; the above results are incomplete.",
        ],
    )
    def test_lines_of_all_versions_are_recognised(self, line):
        assert parse_complaints(f"pgbench: setting random seed to 7\n{line}\nHINT:  none\n") == (line,)

    def test_progress_and_notices_are_none(self):
        assert parse_complaints("progress: 1.0 s, 2.0 tps, lat 1.0 ms stddev 0.1, 3 failed\nNOTICE:  hello\n") == ()


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_no_input_ends_in_anything_but_a_parse_error(output, errors):
    with contextlib.suppress(ParseError):
        parse_result({"pgbench.out": output, "pgbench.err": errors})


LINES = (
    (CAPTURES / "18.6" / "rate-retries" / "output.txt").read_text()
    + (CAPTURES / "14.23" / "two-scripts-profile" / "output.txt").read_text()
).splitlines()


@given(st.lists(st.sampled_from(LINES).flatmap(lambda line: st.integers(0, len(line)).map(lambda n: line[:n]))))
def test_no_mutilated_summary_ends_in_anything_but_a_parse_error(lines):
    with contextlib.suppress(ParseError):
        parse_summary("\n".join(lines))


@given(st.binary(max_size=200))
def test_no_damaged_log_ends_in_anything_but_a_parse_error(packed):
    for content in (packed, gzip.compress(packed)):
        with contextlib.suppress(ParseError):
            parse_result({"transactions.log.gz": content})


def test_a_truncated_archive_is_a_parse_error():
    packed = gzip.compress(b"0 1 100 0 1795172798 1\n" * 100)
    with pytest.raises(ParseError, match="cannot be unpacked"):
        parse_result({"transactions.log.gz": packed[:-9]})


def test_an_empty_archive_gives_no_percentiles():
    result = parse_result({"transactions.log.gz": gzip.compress(b"")})
    assert (result.samples, result.percentiles) == (0, {})
    assert parse_transactions(b"").samples == 0


class TestHiding:
    def test_a_name_in_front_of_a_statement_stays_and_any_other_comment_goes(self):
        head = "statement latencies in milliseconds:"
        lines = ("/* monthly report */ SELECT 42;", "/* for 4711 */ SELECT 1;", "SELECT /* a name */ 2;")
        hidden = hide_profile("\n".join((head, *(f"         0.137  {line}" for line in lines))))
        assert [line[16:].strip() for line in hidden.splitlines()[1:]] == [
            "/* monthly report */ SELECT ?;", "SELECT ?;", "SELECT   ?;",
        ]  # fmt: skip
