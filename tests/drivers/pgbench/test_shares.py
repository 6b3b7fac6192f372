"""Clients shared among processes: who gets how many, and how their reports become one."""

import pytest

import records
from pgstrata.drivers.pgbench.parse import parse_result
from pgstrata.drivers.pgbench.shares import share_out
from pgstrata.drivers.shares import add_points, add_results, by_share
from pgstrata.ports.driver import ProgressPoint

SUMMARY = """pgbench (18.6)
number of transactions actually processed: {count}
number of failed transactions: {failed} (0.000%)
latency average = {mean} ms
latency stddev = {spread} ms
tps = {tps} (without initial connection time)
"""


def report(count, tps, mean=1.0, spread=0.5, failed=0):
    return SUMMARY.format(count=count, tps=tps, mean=mean, spread=spread, failed=failed).encode()


def test_without_cpus_one_process_has_all_clients():
    (share,) = share_out(8, 4, 7, ())
    assert (share.clients, share.threads, share.seed, share.cpu, share.session_name) == (8, 4, 7, None, "")
    assert (share.file("out"), share.file("err")) == ("pgbench.out", "pgbench.err")


def test_each_cpu_has_a_process_with_its_clients_and_a_name_that_tells_it():
    shares = share_out(5, 5, 7, (2, 0, 2, 0, 2))
    assert [(share.cpu, share.clients, share.threads) for share in shares] == [(0, 2, 2), (2, 3, 3)]
    assert [share.file("out") for share in shares] == ["pgbench.out", "pgbench.1.out"]
    assert len({share.seed for share in shares}) == len({share.session_name for share in shares}) == 2
    assert all(share.session_name.startswith("pgbench") for share in shares)


def test_threads_are_divided_too_and_no_process_is_without():
    assert [share.threads for share in share_out(6, 2, 1, (0, 0, 0, 1, 1, 2))] == [1, 1, 1]


def test_reports_are_read_by_process_and_those_of_the_stretch_apart():
    evidence = {
        "pgbench.1.out": b"b",
        "pgbench.out": b"a",
        "pgbench.err": b"c",
        "stretch.pgbench.out": b"s",
        "warmup.pgbench.2.err": b"w",
        "server.log": b"-",
    }
    assert by_share("pgbench", evidence) == ({"out": b"a", "err": b"c"}, {"out": b"b"})
    assert by_share("pgbench", evidence, "stretch.") == ({"out": b"s"},)


def test_two_reports_are_one_result():
    evidence = {
        "pgbench.out": report(300, 30.0, mean=1.0, spread=0.0),
        "pgbench.1.out": report(100, 10.0, mean=2.0, spread=0.0, failed=3),
        "pgbench.err": b"progress: 1.0 s, 30.0 tps, lat 1.000 ms stddev 0.1, 0 failed\n",
        "pgbench.1.err": b"progress: 1.0 s, 10.0 tps, lat 2.000 ms stddev 0.1, 0 failed\npgbench: error: client 0 aborted\n",
    }
    result = parse_result(evidence)
    assert (result.transactions, result.tps, result.failed, result.complete) == (400, 40.0, 3, False)
    assert result.latency_mean == pytest.approx(0.00125)
    # between two equal groups of 1 and 2 ms, three to one
    assert result.latency_stddev == pytest.approx(0.001 * (0.75 * 0.25) ** 0.5)
    assert result.series[0].values == (40.0,)
    assert result.series[1].values[0] == pytest.approx(0.00125)
    assert result.errors == ("pgbench: error: client 0 aborted",)


def test_a_process_that_came_to_no_summary_makes_the_whole_incomplete():
    result = parse_result({"pgbench.out": report(300, 30.0), "pgbench.1.out": b"pgbench (18.6)\n"})
    assert (result.complete, result.tps) == (False, None)


def test_one_report_stays_as_it_is():
    result = records.make_result(tps=1.0)
    point = ProgressPoint(time=1.0, tps=2.0, latency=0.1)
    assert add_results([result]) is result
    assert add_points([[point]]) == (point,)


def test_progress_is_told_as_far_as_all_have_reported():
    early = ProgressPoint(time=1.0, tps=2.0, latency=0.1, lag=0.2)
    late = ProgressPoint(time=1.1, tps=6.0, latency=0.3, lag=0.4, failed=1)
    (point,) = add_points([[early, early], [late]])
    assert (point.time, point.tps, point.failed) == (1.1, 8.0, 1)
    assert (point.latency, point.lag) == (pytest.approx(0.25), pytest.approx(0.3))
    assert add_points([[ProgressPoint(time=1.0, tps=0.0, latency=0.0)] * 2, []]) == ()
