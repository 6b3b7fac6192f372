import math
import subprocess
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.drivers.pgbench.parse import parse_result
from pgstrata.drivers.pgbench.slices import parse_counts
from pgstrata.drivers.pgbench.transactions import parse_transactions
from pgstrata.errors import ParseError
from pgstrata.model.metrics import ROUND_TPS

PRINTED = b"""slice 0 1000000 1250000 9 1 0
slice 1 2000000 2250000 500 2 0
slice 2 3000000 3500000 1500 2 3
latency 460 1000
latency 530 1000
total 300000 17
"""


def test_throughput_of_each_round_is_over_its_own_length():
    counts = parse_counts(PRINTED)
    rounds = counts.rounds()
    assert rounds.metric == ROUND_TPS
    assert rounds.values == pytest.approx((2000.0, 3000.0))
    assert rounds.times == pytest.approx((1.0, 2.0))
    assert counts.transactions == 2009
    assert counts.seconds == pytest.approx(1.0)


def test_a_round_that_is_missing_leaves_a_gap():
    rounds = parse_counts(PRINTED.replace(b"slice 1 ", b"slice 3 ")).rounds()
    assert math.isnan(rounds.values[0])
    assert len(rounds.values) == 3


def test_quantiles_are_interpolated_in_their_bins_and_need_samples_beyond():
    counts = parse_counts(PRINTED)
    found = counts.quantiles()
    assert list(found) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    for quantile, value in found.items():
        # 100 us alone in its bin, and 201 and 202 us
        true = 99.5 + quantile / 0.5 if quantile <= 0.5 else 200.5 + 2 * (quantile - 0.5) / 0.5
        assert value == pytest.approx(true * 1e-6)
    assert counts.mean() == pytest.approx(0.3 / 2000)


def test_a_bin_that_holds_one_microsecond_is_as_wide_as_that():
    # half of 12 and half of 13 us: the median lies between them
    bins = b"latency 248 500\nlatency 256 500\ntotal 12500 0\n"
    found = parse_counts(bins).quantiles()
    assert [round(found[quantile] * 1e6, 6) for quantile in (0.1, 0.5, 0.9)] == [11.7, 12.5, 13.3]


@given(st.lists(st.integers(1, 100_000), min_size=200, max_size=400))
def test_quantiles_of_bins_are_those_of_the_latencies_in_them(latencies):
    bins = Counter(int(math.log(latency) * 100) for latency in latencies)
    printed = "".join(f"latency {number} {count}\n" for number, count in bins.items())
    for quantile, value in parse_counts(f"{printed}total 1 0\n".encode()).quantiles().items():
        exact = sorted(latencies)[math.ceil(quantile * len(latencies) - 1e-6) - 1]
        # a bin is 1.005 % wide, and reaches half a microsecond beyond what it holds
        assert value * 1e6 == pytest.approx(exact, abs=0.0101 * exact + 0.5)


@pytest.mark.parametrize("line", [b"slice 1 2 3\n", b"latency x 3\n", b"mawk: out of memory\n"])
def test_an_unknown_line_is_quoted(line):
    with pytest.raises(ParseError, match=line.decode().split()[0]):
        parse_counts(PRINTED + line)


def test_awk_counts_a_transaction_where_it_ended(tmp_path):
    marks = tmp_path / "marks"
    marks.write_text(
        "0 0 1700000000000000000 1700000000250000000\n"
        "0 1 1700000000250000000 1700000000500000000\n"
        "1 0 1700000001000000000 1700000001250000000\n"
    )
    lines = [
        "0 1 1000 0 1700000000 100000",  # in the round that is thrown away
        "0 2 1000 0 1700000000 300000",  # after the pause began: the other arm's turn
        "0 3 900000 0 1700000001 100",  # began before the pause: counted, no latency
        "0 4 1000 0 1700000001 200000",
        "0 5 failed 0 1700000001 200100",
        "0 6 1000 0 1700000001 249999",
        "0 7 1000 0 1700000001 250100",  # too late
    ]
    (tmp_path / "tx.7").write_text("\n".join(lines[:4]) + "\n")
    (tmp_path / "tx.7.1").write_text("\n".join(lines[4:]) + "\n")
    program = resources.files("pgstrata.drivers.pgbench").joinpath("count.awk").read_text()
    done = subprocess.run(
        ["awk", "-v", f"marks={marks}", "-v", "arm=0", program, tmp_path / "tx.7", tmp_path / "tx.7.1"],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    )
    counts = parse_counts(done.stdout)
    assert [(part.round, part.transactions) for part in counts.slices] == [(0, 1), (1, 3)]
    slices = [line.split() for line in done.stdout.splitlines() if line.startswith(b"slice")]
    assert [line[5:] for line in slices] == [[b"0", b"0"], [b"1", b"1"]], "in flight in a pause, without a latency"
    assert counts.samples == 3
    assert counts.mean() == pytest.approx(0.001)
    assert counts.slices[1].seconds == pytest.approx(0.25)


def test_a_captured_log_has_the_same_percentiles_in_slices_and_in_one_run(tmp_path):
    log = Path(__file__).parents[2] / "captures" / "pgbench" / "18.6" / "percentiles" / "log.txt"
    marks = tmp_path / "marks"
    marks.write_text("1 0 1795292960000000000 1795292990000000000\n")
    program = resources.files("pgstrata.drivers.pgbench").joinpath("count.awk").read_text()
    done = subprocess.run(
        ["awk", "-v", f"marks={marks}", "-v", "arm=0", program, log],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    )
    sliced, alone = parse_counts(done.stdout).quantiles(), parse_transactions(log.read_bytes()).quantiles()
    assert list(sliced) == list(alone) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert list(sliced.values()) == pytest.approx(list(alone.values()), rel=0.01)


def test_a_sliced_run_takes_its_throughput_from_the_unlogged_stretch():
    summary = b"pgbench (18.6)\nnumber of transactions actually processed: 9999\ntps = 123.4 (without initial connection time)\n"
    evidence = {"slices.txt": PRINTED, "pgbench.out": summary, "pgbench.err": b""}
    logged = parse_result(evidence)
    assert logged.complete
    assert logged.tps == pytest.approx(2009.0)
    assert logged.transactions == 2009
    stretch = parse_result({**evidence, "stretch.pgbench.out": summary.replace(b"123.4", b"2222.0")})
    assert stretch.tps == pytest.approx(2222.0)
    assert [series.metric for series in stretch.series] == [ROUND_TPS]


@pytest.mark.parametrize("line", [b"", b"slice 0 " + b"9" * 400 + b" 2 3 4 5", b"latency 99999 1", b"latency x 1"])
def test_counts_of_another_shape_are_refused(line):
    with pytest.raises(ParseError, match="unknown shape"):
        parse_counts(b"total 1 0\n" + line + b"\ntotal 1 0\n")
