"""Files as others publish them: captures with their licence, and the same forms with numbers made up for these tests."""

import json

import pytest

from pgstrata.errors import UsageError
from pgstrata.importers.assemble import ImportQuestion, assemble
from pgstrata.importers.formats import FORMATS
from pgstrata.importers.results import Placed, ReadingTerms, name_version


def read(name, text, **terms):
    return FORMATS[name].read(text, ReadingTerms(**terms))


def values(contents, metric):
    return [each.measurements[metric] for each in contents.results]


def place(contents):
    return [
        Placed(result=each, source=str(number), dimensions=each.said, named=frozenset())
        for number, each in enumerate(contents.results)
    ]


def assembled(name, text, question=None, **terms):
    contents = read(name, text, **terms)
    return assemble(place(contents), question or ImportQuestion(), contents.compared, history=contents.history)


# ------------------------------------------------------------------------------------------------ pgbench

PGBENCH = """\
pgbench ({version})
starting vacuum...end.
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 50
query mode: prepared
number of clients: 20
number of threads: 4
maximum number of tries: 1
duration: {seconds} s
number of transactions actually processed: 60000
number of failed transactions: 0 (0.000%)
latency average = 5.956 ms
initial connection time = 15.143 ms
tps = {tps} (without initial connection time)
"""


def pgbench(tps, version="18.1", seconds=60):
    return PGBENCH.format(tps=tps, version=version, seconds=seconds)


def test_the_version_of_the_server_is_in_the_banner_where_it_is_another_one():
    text = pgbench(100.5, "18beta3, server 13.22") + pgbench(200.5, "17.4 (Debian 17.4-1.pgdg120+2)")
    first, second = read("pgbench", text).results
    assert (first.said["client version"], first.said["server version"]) == ("18beta3", "13.22")
    assert (second.said["client version"], second.said["server version"]) == ("17.4 (Debian 17.4-1.pgdg120+2)", "17.4")


def test_counters_of_perf_between_runs_belong_to_none():
    perf = "\n Performance counter stats for './pgbench db -T 600':\n\n   825,204,469,140      dTLB-loads    (63.33%)\n\n     600.452951832 seconds time elapsed\n\n"
    found = read("pgbench", (pgbench(100.5) + perf) * 3)
    assert (values(found, "tps"), found.unusable) == ([100.5] * 3, ())


def test_runs_of_another_duration_are_no_repeats_but_cells_of_their_own():
    text = pgbench(50.5, seconds=10) + pgbench(100.5) + pgbench(101.5, "17.1")
    made = assembled("pgbench", text, ImportQuestion(compared=("server version",)))
    assert [(each.target, each.cell) for each in made.observations] == [
        ("17.1", "duration=60 s"), ("18.1", "duration=10 s"), ("18.1", "duration=60 s")
    ]  # fmt: skip


def test_an_attempt_that_could_not_connect_is_named_between_runs_that_finished():
    error = 'pgbench: error: connection to server at "::1", port 5432 failed: FATAL:  sorry, too many clients already\n'
    found = read("pgbench", pgbench(100.5) + error + pgbench(101.5))
    assert values(found, "tps") == [100.5, 101.5]
    lines = len(pgbench(1).splitlines())
    assert [line for line, _ in found.unusable] == [lines + 1]
    assert "too many clients already" in found.unusable[0][1]


@pytest.mark.parametrize("word", ["error", "fatal"])
def test_a_run_whose_clients_were_aborted_is_no_result_wherever_the_message_stands(word):
    aborted = (
        f"pgbench: {word}: client 3 script 0 aborted in command 4 query 0: FATAL:  terminating connection\n"
        f"pgbench: {word}: Run was aborted; the above results are incomplete.\n"
    )
    found = read("pgbench", pgbench(100.5) + aborted)
    assert found.results == ()
    assert "the run was aborted" in found.unusable[0][1]


def test_reports_with_the_time_of_the_day_tell_when_a_run_began():
    lines = "".join(
        f"progress: {1_777_000_000 + 10 * step}.0 s, 100.0 tps, lat 1.0 ms stddev 0.1, 0 failed\n" for step in (1, 2, 3)
    )
    (result,) = read("pgbench", pgbench(100.5).replace("transaction type", lines + "transaction type", 1)).results
    assert result.started.timestamp() == 1_777_000_000


# ------------------------------------------------------------------------------------------------ sysbench

SYSBENCH = """\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 16
Report intermediate results every 1 second(s)
Initializing random number generator from current time


Initializing worker threads...

Threads started!

[ 1s ] thds: 16 tps: 2598.27 qps: 52139.10 (r/w/o: 36527.51/10399.07/5212.51) lat (ms,95%): 9.56 err/s: 0.00 reconn/s: 0.00
SQL statistics:
    queries performed:
        read:                            350000
        write:                           100000
        other:                           50000
        total:                           500000
    transactions:                        25000  (2500.50 per sec.)
    queries:                             500000 (50010.00 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          10.0164s
    total number of events:              25000

Latency (ms):
         min:                                    2.64
         avg:                                    6.40
         max:                                  106.51
         95th percentile:                        8.28
         sum:                               160000.00

Threads fairness:
    events (avg/stddev):           1562.5000/10.74
    execution time (avg/stddev):   10.0000/0.00

"""

BEFORE_1_0 = """\
sysbench 0.5:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: 20
Report intermediate results every 10 second(s)
Random number generator seed is 0 and will be ignored

Threads started!

{reports}OLTP test statistics:
    queries performed:
        read:                            484478
        total:                           692110
    transactions:                        34605  (5767.50 per sec.)
    read/write requests:                 622899 (103816.16 per sec.)
    other operations:                    69210  (11535.08 per sec.)
    ignored errors:                      44     (0.07 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          120.0028s
    total number of events:              34605
    total time taken by event execution: 2399.1939s
    response time:
         min:                                  2.57ms
         avg:                                 69.33ms
         max:                                106.23ms
         approx.  95 percentile:               5.67ms

Threads fairness:
    events (avg/stddev):           1730.2500/12.77
    execution time (avg/stddev):   119.8097/0.01

"""


def test_the_percentile_that_sysbench_was_asked_for_is_kept():
    (result,) = read("sysbench", SYSBENCH).results
    assert result.measurements == pytest.approx({"tps": 2500.5, "latency_mean": 0.0064, "latency_p95": 0.00828})
    assert result.said == {"threads": "16", "client version": "1.0.20"}
    other = read("sysbench", SYSBENCH.replace("95th", "75th"))
    assert other.results[0].measurements["latency_p75"] == pytest.approx(0.00828)
    assert other.lower == {"latency_p75"}


def test_logs_of_sysbench_before_1_0():
    reports = "".join(
        f"[{10 * number:4}s] threads: 20, tps: {tps:.2f}, reads: 88347.79, writes: 25237.60, response time: 3697.65us (95%), errors: 0.00, reconnects:  0.00\n"
        for number, tps in enumerate([500.0] * 2 + [1000.0] * 10, 1)
    )
    (result,) = read("sysbench", BEFORE_1_0.format(reports=reports)).results
    assert result.measurements == pytest.approx(
        {"tps": 5767.5, "latency_mean": 2399.1939 / 34605, "latency_p95": 0.00567, "retried": 44}
    )
    assert result.said == {"threads": "20", "client version": "0.5"}
    assert (result.seconds, result.opening) == (120.0028, pytest.approx(-0.5))


@pytest.mark.parametrize("option", ["time", "max-time"])
def test_a_run_that_its_time_limit_ended_has_a_result(option):
    expired = f"FATAL: The --{option} limit has expired, forcing shutdown...\n"
    (result,) = read("sysbench", BEFORE_1_0.format(reports=expired)).results
    assert result.measurements["tps"] == 5767.5
    aborted = read(
        "sysbench", BEFORE_1_0.format(reports="FATAL: mysql_drv_query() returned error 2013 (Lost connection)\n")
    )
    assert aborted.results == ()


def test_preparing_and_cleaning_up_are_no_runs_that_did_not_finish():
    others = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\n{}\n"
    text = others.format("Creating table 'sbtest1'...") + SYSBENCH + others.format("Dropping table 'sbtest1'...")
    found = read("sysbench", text)
    assert (values(found, "tps"), found.unusable) == ([2500.5], ())
    assert read("sysbench", others.format("Creating table 'sbtest1'...")).unusable == (
        (0, "the file has no run of sysbench"),
    )
    failed = others.format("FATAL: Connection to database failed: fe_sendauth: no password supplied")
    assert "no password supplied" in read("sysbench", text + failed).unusable[0][1]


def test_runs_without_the_first_lines_are_told_apart():
    bare = SYSBENCH[SYSBENCH.index("SQL statistics") :]
    assert values(read("sysbench", bare + bare.replace("2500.50", "2400.50")), "tps") == [2500.5, 2400.5]


def test_a_log_of_sysbench_1_1_with_several_percentiles():
    text = SYSBENCH.replace(
        "General statistics:\n    total time:                          10.0164s",
        "Throughput:\n    events/s (eps):                      2500.5000\n    time elapsed:                        10.0164s",
    )
    text = text.replace(
        "         95th",
        "         99th percentile:                       27.17\n        999th percentile:                      816.63\n         95th",
    )
    (result,) = read("sysbench", text).results
    assert result.seconds == 10.0164
    assert {name for name in result.measurements if "_p" in name} == {"latency_p99", "latency_p95"}


def test_a_test_of_the_processor_is_none_of_a_database():
    text = SYSBENCH.replace("SQL statistics:", "CPU speed:")
    assert read("sysbench", text).unusable == ((1, "this is not a test of a database: it has no transactions"),)


# ------------------------------------------------------------------------------------------------ HammerDB

HEAD = "Hammerdb Log @ Fri Jul 05 0{}:55:26 BST 2019\n+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-\n"
LOG = """\
Vuser 1:Beginning rampup time of 2 minutes
Vuser 2:Processing 10000000 transactions with output suppressed...
Vuser 1:Rampup complete, Taking start Transaction Count.
Vuser 1:Timing test period of 5 in minutes
Vuser 1:Test complete, Taking end Transaction Count.
Vuser 1:4 Active Virtual Users configured
Vuser 1:TEST RESULT : System achieved {nopm} NOPM from 43386 PostgreSQL TPM
Vuser 1:FINISHED SUCCESS
Vuser 2:FINISHED SUCCESS
ALL VIRTUAL USERS COMPLETE
"""


def job_report(benchmark, config, result):
    """The shape of a report of HammerDB 6, with figures made up."""
    return json.dumps({
        "schema": "hammerdb-job-report-v1",
        "artifact": {"type": "hammerdb-result-json", "source": "HammerDB", "redacted": True},
        "job": {"jobid": "0A1B2C", "hdb_version": "v6.0", "database": "PostgreSQL", "release": "18.4",
                "benchmark": benchmark, "timestamp": "2026-02-03 04:05:06"},
        "benchmark_config": config,
        "system": {"available": True, "hostname": "localhost", "cpucount": "8", "memory": "15.6 GB"},
        "result": result,
        "transaction_count": {"available": True, "series": [{"metric": "tpm", "points": [
            {"timestamp": "2026-02-03 04:05:16", "value": 1234}]}]},
    })  # fmt: skip


def test_the_report_of_a_job_of_hammerdb():
    config = {"warehouses": 50, "virtual_users": 8, "rampup_minutes": 2, "duration_minutes": 5}
    achieved = {"type": "tproc_c_result", "active_virtual_users": 8, "nopm": 100200, "tpm": 230460}
    (result,) = read("hammerdb", job_report("TPROC-C", config, achieved)).results
    assert result.measurements == {"new_orders": 100200, "tpm": 230460}
    assert (result.started.isoformat(), result.seconds) == ("2026-02-03T04:05:06+00:00", 420)
    assert (result.said["version"], result.said["users"], result.said["warehouses"]) == ("18.4", "8", "50")
    nothing = read("hammerdb", job_report("TPROC-C", config, {"type": "tproc_c_result", "nopm": None}))
    what = "it has no result of TPROC-C: neither NOPM nor the mean of query times"
    assert nothing.unusable == ((0, what),)


def test_the_report_of_a_job_of_tproc_h():
    queries = {"type": "tproc_h_result", "queries": 22, "query_sets": 1, "geomean_seconds": 0.25, "nopm": None,
               "total_query_time_seconds": 12.5}  # fmt: skip
    found = read("hammerdb", job_report("TPROC-H", {"scale_factor": 10, "rampup_minutes": None}, queries))
    (result,) = found.results
    assert result.measurements == {"power": 14400, "query_geomean_seconds": 0.25, "query_total_seconds": 12.5}
    assert (result.said["scale"], result.said["queries"], result.said["query sets"]) == ("10", "22", "1")
    assert found.lower == {"query_geomean_seconds", "query_total_seconds"}


def test_a_log_of_hammerdb_has_the_time_of_each_start():
    text = (
        HEAD.format(8)
        + LOG.format(nopm=100)
        + HEAD.format(9)
        + LOG[: LOG.index("Vuser 1:Test")]
        + HEAD.format(7)
        + LOG.format(nopm=102)
    )
    found = read("hammerdb", text)
    assert values(found, "new_orders") == [100, 102]
    assert [each.started.hour for each in found.results] == [8, 7]
    assert found.results[0].seconds == 420
    assert found.unusable == ((15, "the run did not finish: it reports no throughput"),)


def test_times_of_each_line_tell_when_a_run_began():
    lines = LOG.format(nopm=100).splitlines()
    stamped = "".join(
        f"Timestamp 1 @ Fri Jan 18 12:15:{10 + number} MST 2019\n{line}\n" for number, line in enumerate(lines)
    )
    found = read("hammerdb", stamped * 2)
    assert [each.started.second for each in found.results] == [10, 10]


def test_a_result_that_is_printed_again_below_its_log_is_no_repeat():
    again = '[\n  "6A7E2CDBC7F603E293439383",\n  "2026-08-13 20:45:15",\n  "4 Active Virtual Users configured",\n  "TEST RESULT : System achieved 100 NOPM from 43386 PostgreSQL TPM"\n]\n'
    (result,) = read("hammerdb", f"{LOG.format(nopm=100)}HAMMERDB RESULT\n{again}").results
    assert result.started.hour == 20
    assert len(read("hammerdb", LOG.format(nopm=100) * 2).results) == 2


def test_a_run_in_which_a_virtual_user_failed_is_no_result():
    text = LOG.format(nopm=100).replace("Vuser 1:Test complete", "Vuser 2:FINISHED FAILED\nVuser 1:Test complete")
    found = read("hammerdb", text + LOG.format(nopm=101))
    assert values(found, "new_orders") == [101]
    assert found.unusable == ((1, "virtual user 2 failed before the run had a result"),)


def test_results_as_hammerdb_printed_them_up_to_version_3():
    text = "Vuser 1:10 Active Virtual Users configured\nVuser 1:TEST RESULT : System achieved 60501 PostgreSQL TPM at 13207 NOPM\n"
    (result,) = read("hammerdb", text).results
    assert (result.measurements, result.said["users"]) == ({"new_orders": 13207, "tpm": 60501}, "10")


# ------------------------------------------------------------------------------------------------ JSON


def test_a_summary_of_benchbase():
    latencies = {"95th Percentile": 12000, "Maximum": 200000, "Median": 6000, "Minimum": 400, "25th Percentile": 5900,
                 "90th Percentile": 11900, "99th Percentile": 15000, "75th Percentile": 6100, "Average": 6900}  # fmt: skip
    summary = {
        "Start timestamp (milliseconds)": 1_700_000_000_500, "Current Timestamp (milliseconds)": 1_700_000_060_700,
        "Elapsed Time (nanoseconds)": 60_000_001_000, "DBMS Type": "POSTGRES",
        "DBMS Version": "PostgreSQL 12.18 (Debian 12.18-1) on x86_64-pc-linux-gnu, compiled by gcc 12.2.0, 64-bit",
        "Benchmark Type": "tpcc", "Final State": "EXIT", "Measured Requests": 8640,
        "isolation": "TRANSACTION_SERIALIZABLE", "scalefactor": "1", "terminals": "1",
        "Latency Distribution": {f"{name} Latency (microseconds)": value for name, value in latencies.items()},
        "Throughput (requests/second)": 144.0, "Goodput (requests/second)": 143.5,
    }  # fmt: skip
    (result,) = read("benchbase", json.dumps(summary, indent=1)).results
    assert result.measurements == pytest.approx({
        "tps": 144.0, "latency_mean": 0.0069, "latency_p50": 0.006, "latency_p90": 0.0119, "latency_p95": 0.012,
        "latency_p99": 0.015, "goodput": 143.5,
    })  # fmt: skip
    assert result.said["version"] == "12.18"
    assert result.said["version build"].endswith("compiled by gcc 12.2.0, 64-bit")
    assert (result.started.timestamp(), round(result.seconds)) == (1_700_000_000.5, 60)


def test_a_summary_of_an_older_benchbase_has_the_time_at_which_it_was_written():
    old = {"scalefactor": None, "Current Timestamp (milliseconds)": 1768056967653, "Benchmark Type": "cfp",
           "DBMS Version": "8.0.44-0ubuntu0.22.04.1", "Throughput (requests/second)": 1759.5}  # fmt: skip
    (result,) = read("benchbase", json.dumps(old)).results
    assert (result.started.timestamp(), result.said["version"]) == (1768056967.653, "8.0.44-0ubuntu0.22.04.1")
    (what,) = read("benchbase", '{"max_connections": "100"}').unusable
    assert what[1] == "its JSON does not have this format: the key 'Throughput (requests/second)' is missing"


def test_postgresbench_tells_systems_with_standbys_from_those_without():
    series = [{"interval": place, "elapsed_s": 30 * place, "tps": 9000 if place < 2 else 10_000} for place in range(20)]
    text = json.dumps({
        "system": "A", "date": "2026-07-15", "tuned": "no", "machine": "16vCPU, 128GB RAM", "postgres_version": "18.3",
        "instance": {"type": "x.large", "vcpus": 16, "ram_gb": 128, "primary_storage": "optimized storage"},
        "cluster_size": 1, "comment": "", "ha": {"label": "HA \u2013 1 standby", "mode": "async", "standbys": 1},
        "benchmark": {"tool": "pgbench", "workload": "TPC-B (built-in)", "scale_factor": 500, "clients": 256,
                      "threads": 16, "duration": 600, "query_mode": "prepared", "interval_seconds": 30},
        "load": {"load_time_seconds": 50.5},
        "results": [{"run": 2, "tps": 9900.5, "transactions": 5940300, "failed_transactions": 0,
                     "latency_avg_ms": 25.5, "latency_p95_ms": 33.5, "latency_p99_ms": 42.5, "interval_seconds": 30,
                     "timeseries": series}],
    })  # fmt: skip
    (result,) = read("postgresbench", text).results
    assert (result.said["ha"], result.said["storage"]) == ("HA \u2013 1 standby", "optimized storage")
    assert result.said["scale"] == "500"
    assert -0.1 < result.opening < 0
    assert (result.started.isoformat(), result.measurements["tps"]) == ("2026-07-15T00:00:00+00:00", 9900.5)
    alone = json.loads(text)
    del alone["ha"]
    both = f"const data = [\n{text}\n,{json.dumps(alone)}\n];\n"
    cells = {each.cell for each in assembled("postgresbench", both).observations}
    assert cells == {"ha=HA \u2013 1 standby", "ha=(none)"}


def github(*entries, tool="customSmallerIsBetter"):
    listed = [
        {"commit": {"id": name, "timestamp": f"2025-07-{day:02}T15:42:21Z", "message": "x"}, "date": 1752436000000 + order,
         "tool": tool, "benches": [{"name": "select - median", "value": value, "unit": "ms", "extra": "count: 3"}]}
        for order, (name, day, value) in enumerate(entries)
    ]  # fmt: skip
    return f"window.BENCHMARK_DATA = {json.dumps({'lastUpdate': 1, 'entries': {'Component benchmarks': listed}})}"


def test_the_data_of_github_action_benchmark_as_the_action_writes_them():
    found = read("commits", github(("f00d", 9, 28.5), ("beef", 1, 30.25)))
    assert values(found, "select - median") == [28.5, 30.25]
    # `date` is when it was measured, the commit has its own time
    assert [each.started.timestamp() for each in found.results] == [1752436000.0, 1752436000.001]
    assert found.lower == {"select - median"}
    assert not read("commits", github(("f00d", 9, 28.5), tool="customBiggerIsBetter")).lower


def test_commits_are_in_the_order_of_their_times_not_of_their_names():
    names = [
        each.target for each in assembled("commits", github(("0a", 9, 1), ("ff", 1, 2), ("4b", 5, 3))).observations
    ]
    assert names == ["ff", "4b", "0a"]
    listed = json.dumps([{"commit": name, "tps": 5} for name in ("f1", "a2", "c3")])
    assert [each.target for each in assembled("commits", listed).observations] == ["f1", "a2", "c3"]
    history = "time,commit,tps\n2026-01-03,0a,1\n2026-01-01,ff,2\n2026-01-02,4b,3\n"
    assert [each.target for each in assembled("otava", history).observations] == ["ff", "4b", "0a"]
    assert assembled("otava", history).history
    machines = "time,commit,machine,tps\n2026-01-01,ff,b,2\n2026-01-02,ff,a,3\n"
    assert not assembled("otava", machines, ImportQuestion(compared=("machine",))).history


def test_one_document_in_each_line():
    found = read("commits", '{"commit": "f1", "tps": 10}\n{"commit": "a2", "tps": 11}\n')
    assert values(found, "tps") == [10, 11]
    assert read("commits", '{"commit": "f1", "tps": 10}\n{"commit": "a2", "tps\n').unusable[0][0] == 2


# ------------------------------------------------------------------------------------------------ tables


def test_a_table_in_markdown_and_one_of_psql():
    markdown = "---\ntitle: Results\n---\n\n| server | protocol | tps |\n|--------|:--------:|----:|\n| a | simple | 5580 |\n| b\\|c | simple | 68 |\n\n_Done._\n"
    found = read("table", markdown)
    assert [(each.said["server"], each.measurements["tps"], each.line) for each in found.results] == [
        ("a", 5580, 7),
        ("b|c", 68, 8),
    ]
    psql = " server | protocol | tps  \n--------+----------+------\n a      | simple   | 5580\n b      | simple   |   68\n(2 rows)\n"
    assert values(read("table", psql), "tps") == [5580, 68]
    assert read("table", f"{markdown}\n{markdown}").unusable == ((16, "a further table is not read"),)


def test_metrics_are_known_in_capitals_too_and_a_column_of_times_is_when_runs_began():
    found = read("table", "Time,Server,TPS,Latency_P99\n2026-01-01 10:00:00,a,100,0.5\n2026-01-01 11:00:00,b,101,0.6\n")
    assert [each.measurements for each in found.results] == [
        {"tps": 100, "latency_p99": 0.5},
        {"tps": 101, "latency_p99": 0.6},
    ]
    assert [each.started.hour for each in found.results] == [10, 11]
    assert found.results[0].said == {"Server": "a"}
    elapsed = read("table", "time,server,tps\n60,a,100\n120,b,101\n")
    assert [(each.started, each.said["time"]) for each in elapsed.results] == [(None, "60"), (None, "120")]
    with pytest.raises(UsageError, match="several columns hold values of tps: TPS, tps"):
        read("table", "server,TPS,tps\na,1,2\n")


def test_a_wide_table_whose_header_ends_with_a_separator():
    text = "test,6.29.5,10.0.1,10.10.2,\nfillseq.v400,1.00,1.01,1.02\nreadwhilewriting.t1,1.00,0.99,\n"
    found = read("wide", text, index=("test",), compared=("version",), metrics=("qps",))
    assert values(found, "qps") == [1.0, 1.01, 1.02, 1.0, 0.99]
    assert found.unusable == ((3, "no value of 10.10.2"),)
    made = assembled("wide", text, index=("test",), compared=("version",), metrics=("qps",))
    assert list(dict.fromkeys(each.target for each in made.observations)) == ["6.29.5", "10.0.1", "10.10.2"]


def test_a_table_without_header_names_its_columns():
    text = "20240119-1800-glibc 1000 pgbench epyc 0-master 10 0 simple 64 1 2131183.114922 0.030\n"
    columns = ["build", "scale", "-", "machine", "patch", "-", "-", "protocol", "clients", "run", "tps", "-"]
    (result,) = read("table", text, columns=tuple(columns)).results
    assert (result.measurements, result.said["patch"]) == ({"tps": 2131183.114922}, "0-master")


def test_a_metric_that_a_history_does_not_have_is_refused():
    with pytest.raises(UsageError, match="there is no column 'tsp'"):
        read("otava", "time,commit,tps\n2026-01-01,a,1\n", metrics=("tsp",))


# ------------------------------------------------------------------------------------------------ pgbent

DUMP = """\
--
-- PostgreSQL database dump
--

COPY public.tests (server, test, set, scale, start_time, end_time, tps, script, clients, avg_latency, server_version) FROM stdin;
rising\t7\t1\t100\t2026-01-01 10:00:00\t2026-01-01 10:01:00\t900.5\tselect\t8\t1.5\tPostgreSQL 17.4 on aarch64-apple-darwin
rising\t8\t2\t100\t2026-01-01 10:02:00\t\\N\t0\tselect\t8\t\\N\tPostgreSQL 17.4 on aarch64-apple-darwin
siren\t1\t3\t100\t2026-01-01 11:00:00\t2026-01-01 11:01:00\t800.5\tselect\t8\t1.75\tPostgreSQL 18.1 on x86_64-pc-linux-gnu
\\.

COPY public.testset (server, set, info, category) FROM stdin;
rising\t1\tM1\\tSockets\tconfig
siren\t3\tstock\tconfig
\\.
"""


def test_a_dump_of_the_results_of_pgbent():
    found = read("pgbent", DUMP)
    first, second = found.results
    assert (first.measurements, first.seconds) == ({"tps": 900.5, "latency_mean": 0.0015}, 60)
    assert (first.said["server"], first.said["info"], second.said["info"]) == ("rising", "M1\tSockets", "stock")
    assert (second.said["server_version"], second.started.hour) == ("18.1", 11)
    # sets are numbered anew on each server
    assert "set" not in first.said
    assert found.unusable == ((7, "test 8 did not finish"),)
    assert found.compared == "server"


def test_the_table_that_pgbent_publishes():
    text = (
        "| submit_id | server | test | batch | run | cpu | server_ver | script | clients | scale | tps | avg_latency | percentile_90_latency |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        "| 12 | decade | 359 | Sockets | 2021/10/29 | Apple M1 Pro | PostgreSQL 14.0  | select | 128 | 100 | 96148.5 | 1.25 | 1.5 |\n"
        "| 13 | decade | 351 | Sockets | 2021/10/29 | Apple M1 Pro | PostgreSQL 14.0  | select | 128 | 100 | 93356.5 | 1.5 | 1.75 |\n"
    )
    found = read("pgbent", text)
    assert [each.measurements for each in found.results] == [
        {"tps": 96148.5, "latency_mean": 0.00125, "latency_p90": 0.0015},
        {"tps": 93356.5, "latency_mean": 0.0015, "latency_p90": 0.00175},
    ]
    assert found.results[0].said["server_ver"] == "14.0"
    assert found.results[0].started.isoformat() == "2021-10-29T00:00:00+00:00"
    assert "run" not in found.results[0].said


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("17.2", {"v": "17.2"}),
        ("PostgreSQL 14.0", {"v": "14.0"}),
        ("18.2 (e21737f)", {"v": "18.2", "v build": "18.2 (e21737f)"}),
        ("CockroachDB CCL v24.1.0", {"v": "CockroachDB CCL v24.1.0"}),
        ("", {}),
    ],
)
def test_versions_with_what_their_builds_say(text, levels):
    assert name_version("v", text) == levels
