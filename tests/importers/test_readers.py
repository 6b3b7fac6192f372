"""What each format's reader makes of a file: results, and lines that gave none."""

import json
from pathlib import Path

import pytest

from pgstrata.errors import UsageError
from pgstrata.importers.formats import FORMATS
from pgstrata.importers.logs import read_logs
from pgstrata.importers.results import FormatName, ReadingTerms

CAPTURES = Path(__file__).parents[1] / "captures"
FOREIGN = CAPTURES / "foreign"
RUN = (FOREIGN / "serverscamp/aws/bench100/run1.txt").read_text()
PLAIN = ReadingTerms()


def read(name, text, **terms):
    return FORMATS[name].read(text, ReadingTerms(**terms))


def values(contents, metric):
    return [each.measurements[metric] for each in contents.results]


def test_several_runs_of_pgbench_in_a_file_and_one_that_did_not_finish():
    begun = "pgbench (18.3)\nstarting vacuum...end.\nprogress: 1.0 s, 100.0 tps, lat 1.000 ms stddev 0.1, 0 failed\n"
    found = read("pgbench", f"{RUN}{begun}{RUN.replace('3976.4', '4001.5')}{begun}")
    assert values(found, "tps") == [3976.442323, 4001.542323]
    assert found.results[0].said == {
        "script": "<builtin: TPC-B (sort of)>", "scale": "100", "protocol": "prepared", "clients": "32",
        "threads": "4", "duration": "600 s", "client version": "18.3 (Ubuntu 18.3-1)", "server version": "18.3",
    }  # fmt: skip
    assert found.results[0].seconds == 600
    first, second = found.unusable
    lines = len(RUN.splitlines())
    assert first == (lines + 1, "the run did not finish: it reports no throughput")
    assert second[0] == 2 * lines + 4


def test_a_run_that_ended_right_after_its_vacuum_is_not_taken_for_the_beginning_of_the_next():
    begun = "pgbench (18.3)\nstarting vacuum...end.\n"
    found = read("pgbench", f"pgbench (PostgreSQL) 18.3\n{begun}{begun}{RUN}")
    assert values(found, "tps") == [3976.442323]
    assert found.unusable == (
        (1, "the run did not finish: it reports no throughput"),
        (4, "the run did not finish: it reports no throughput"),
    )


def test_runs_of_a_pgbench_without_banner_begin_with_their_vacuum():
    old = "starting vacuum...end.\n" + "\n".join(RUN.splitlines()[1:]) + "\n"
    assert values(read("pgbench", old * 3), "tps") == [3976.442323] * 3


@pytest.mark.parametrize(
    ("version", "tps", "latency"),
    [("9.1.24", 5453.217669, None), ("9.2.23", 6837.633486, None), ("9.3.19", 5824.533305, None),
     ("9.4.14", 5256.145212, 0.000382)],
)  # fmt: skip
def test_the_pgbench_of_old_majors_is_read(version, tps, latency):
    found = read("pgbench", (FOREIGN / "pgbench" / f"{version}.txt").read_text())
    assert values(found, "tps") == [tps]
    assert found.results[0].measurements.get("latency_mean") == latency
    assert found.unusable == ()


def test_a_pgbench_that_was_refused_says_why():
    found = read("pgbench", 'pgbench: error: connection to server failed: FATAL:  role "x" does not exist\n')
    assert found.results == ()
    assert "FATAL" in found.unusable[0][1]


@pytest.mark.parametrize(
    "name", ["pgbench", "sysbench", "hammerdb", "benchbase", "postgresbench", "commits", "pgbent", "otava"]
)
@pytest.mark.parametrize("text", ["", "\x00\x01", "hello\n", "{}", "[1, 2]", "a,b\n1,2\n", "{" * 5000])
def test_what_is_no_such_file_gives_no_result_and_a_reason(name, text):
    found = read(name, text)
    assert found.results == ()
    assert found.unusable


def test_runs_of_sysbench():
    good = [path.read_text() for path in sorted((CAPTURES / "sysbench").rglob("point-select*/output.txt"))]
    one = read("sysbench", good[0])
    two = read("sysbench", good[0] + good[0])
    assert len(one.results) == 1
    assert values(two, "tps") == values(one, "tps") * 2
    cut = good[0][: good[0].index("SQL statistics")]
    assert read("sysbench", cut).unusable[0][1].startswith("the run did not finish")


HAMMERDB = """\
Vuser 1:Beginning rampup time of 1 minutes
Vuser 1:Rampup complete, Taking start Transaction Count.
Vuser 1:Timing test period of 1 in minutes
Vuser 1:4 Active Virtual Users configured
Vuser 1:TEST RESULT : System achieved 101005 NOPM from 232149 PostgreSQL TPM
Vuser 1:Beginning rampup time of 1 minutes
"""


def test_hammerdb_logs_and_job_results():
    found = read("hammerdb", HAMMERDB)
    assert (values(found, "new_orders"), found.results[0].said["users"]) == ([101005], "4")
    assert found.unusable == ((6, "the run did not finish: it reports no throughput"),)
    job = '[\n "6A",\n "2026-08-13 20:45:15",\n "1 Active Virtual Users configured",\n "TEST RESULT : System achieved 26018 NOPM from 60408 PostgreSQL TPM"\n]\n'
    (result,) = read("hammerdb", job).results
    assert (result.measurements["tpm"], result.started.hour) == (60408, 20)


def test_postgresbench():
    text = (FOREIGN / "postgresbench/neon/results/neon_4cpu_16gb_6849.json").read_text()
    found = read("postgresbench", text)
    assert values(found, "tps") == [2161.459151, 2846.860035, 2820.061122]
    assert found.results[0].measurements["latency_p99"] == pytest.approx(0.236412)
    assert [each.said["run"] for each in found.results] == ["1", "2", "3"]


def test_benchbase():
    summary = {
        "Start timestamp (milliseconds)": 1777879493000, "Elapsed Time (nanoseconds)": 60_000_000_000,
        "DBMS Type": "POSTGRES", "Benchmark Type": "tpcc", "Final State": "EXIT", "scalefactor": "10", "terminals": "8",
        "Latency Distribution": {"99th Percentile Latency (microseconds)": 5000, "Average Latency (microseconds)": 1000},
        "Throughput (requests/second)": 812.5, "Goodput (requests/second)": 809.1,
    }  # fmt: skip
    (result,) = read("benchbase", json.dumps(summary)).results
    assert result.measurements == {"tps": 812.5, "latency_mean": 0.001, "latency_p99": 0.005, "goodput": 809.1}
    assert (result.seconds, result.said["clients"]) == (60, "8")
    assert read("benchbase", json.dumps({**summary, "Final State": "ERROR"})).unusable


@pytest.mark.parametrize(
    "document",
    [
        [{"commit": "a1", "tps": 10}, {"commit": "b2", "tps": 11}],
        [{"revision": "a1", "metric": "tps", "value": 10}, {"revision": "b2", "metric": "tps", "value": "11"}],
        {"a1": {"tps": 10}, "b2": {"tps": 11}},
        {"entries": {"pg": [{"commit": {"id": name, "timestamp": "2026-01-01T00:00:00Z"}, "benches": [{"name": "tps", "value": value}]}
                            for name, value in (("a1", 10), ("b2", 11))]}},
    ],
)  # fmt: skip
def test_one_value_for_each_commit(document):
    found = read("commits", json.dumps(document))
    assert [(each.said["commit"], each.measurements["tps"]) for each in found.results] == [("a1", 10), ("b2", 11)]
    assert found.compared == "commit"


@pytest.mark.parametrize(
    ("file", "compared", "metrics"),
    [
        ("sample.csv", "commit", ["metric1", "metric2"]),
        ("sample-semicolons.csv", "commit", ["metric1", "metric2"]),
        ("sample-unix-time.csv", "time", ["metric1", "metric2"]),
        ("sample_multi_branch.csv", "commit", ["metric1", "metric2"]),
    ],
)
def test_histories_of_otava(file, compared, metrics):
    found = read("otava", (FOREIGN / "otava" / file).read_text())
    assert (found.compared, found.unusable) == (compared, ())
    assert list(found.results[0].measurements) == metrics
    assert found.results[0].started.utcoffset() is not None


def test_a_history_of_environments_compares_them_and_not_the_times_and_blocks_are_no_metric():
    text = "time,environment,block,tps\n2026-01-01T00:00:00Z,a,1,10\n2026-01-01T00:01:00Z,b,1,11\n"
    found = read("otava", text)
    assert (found.compared, values(found, "tps")) == ("environment", [10, 11])
    assert found.results[0].said == {"environment": "a", "block": "1"}
    assert found.results[0].measurements == {"tps": 10}
    assert not found.history
    commits = read("otava", text.replace("block", "commit"))
    assert (commits.compared, commits.history) == ("commit", True)


def test_a_table_of_blanks_without_header():
    text = "# kernels\n4.7  300   1 16  1234.5\n4.7 300 2 16\n4.7 300 3 16 -\n"
    found = read("table", text, columns=("kernel", "scale", "run", "clients", "tps"))
    assert values(found, "tps") == [1234.5]
    assert found.results[0].said == {"kernel": "4.7", "scale": "300", "run": "1", "clients": "16"}
    assert found.unusable == ((3, "it has 4 fields, and there are 5 columns"), (4, "'-' is not a value of tps"))


def test_a_table_without_header_asks_for_the_names_of_its_columns():
    with pytest.raises(UsageError, match="numbers where the names of columns are expected") as refused:
        read("table", "3.9 30 4 1000.1\n3.10 30 4 990\n")
    assert refused.value.where == "--columns"
    found = read("table", "3.9 30 4 1000.1\n3.10 30 4 990\n", columns=("kernel", "scale", "clients", "tps"))
    assert values(found, "tps") == [1000.1, 990]


def test_a_table_whose_columns_of_values_nobody_names_is_refused():
    with pytest.raises(UsageError, match="which of these columns hold values"):
        read("table", "kernel,speed\n4.7,10\n")
    assert values(read("table", "kernel,speed\n4.7,10\n", metrics=("speed",)), "speed") == [10]


def test_a_wide_table_with_a_field_that_is_empty():
    found = read(
        "wide",
        "clients,run,16,18\n1,1,100,110\n1,2,,111\n",
        index=("clients", "run"),
        compared=("server",),
        metrics=("tps",),
    )
    assert [(each.said["server"], each.measurements["tps"]) for each in found.results] == [
        ("16", 100),
        ("18", 110),
        ("18", 111),
    ]
    assert found.unusable == ((3, "no value of 16"),)


def test_the_results_database_of_pgbent():
    text = (
        "server,test,set,scale,start_time,end_time,tps,script,clients,avg_latency,info\n"
        "a,1,1,100,2026-01-01 10:00:00,2026-01-01 10:01:00,900.5,select,8,1.5,stock\n"
        "b,2,1,100,2026-01-01 10:02:00,,0,select,8,,stock\n"
    )
    found = read("pgbent", text)
    (result,) = found.results
    assert (result.measurements, result.seconds) == ({"tps": 900.5, "latency_mean": 0.0015}, 60)
    assert (result.said["server"], result.said["info"]) == ("a", "stock")
    assert found.unusable == ((3, "test 2 did not finish"),)


def test_logs_tell_when_a_run_began_and_how_it_opened():
    lines = [f"{1_777_000_000 + 10 * place} {count} 1 1 1 1" for place, count in enumerate([50] * 4 + [100] * 17)]
    logged = read_logs(["\n".join(lines), "\n".join(lines)], whole=True)
    assert (logged.started.timestamp(), logged.opening) == (1_777_000_000, pytest.approx(-0.5))
    assert read_logs(["0 199 2241 0 1777000003 995407\n"], whole=True).started.timestamp() == 1_777_000_003
    assert read_logs(["nothing of the kind\n"], whole=True) is None


def test_each_name_of_a_format_has_its_reader():
    assert list(FORMATS) == list(FormatName)
