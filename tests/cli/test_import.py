"""`pgstrata import` as a user meets it: one file of observations, everything that is left out named."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from program import pgstrata

FOREIGN = Path(__file__).parents[1] / "captures" / "foreign"
PATTERN = ("--format", "pgbench", "--pattern", "{provider}/bench{scale}/{run}.txt", "--compare", "provider")


def bring(place, *arguments):
    return pgstrata(place, "import", *arguments, "-o", "out.csv")


def rows(place):
    with (place / "out.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(FOREIGN / "serverscamp", tmp_path / "results")
    return tmp_path


def test_folders_of_pgbench_become_observations_that_decide_takes(folder):
    done = bring(folder, "results", *PATTERN)
    assert (done.returncode, done.stderr) == (0, "")
    assert "out.csv: 18 results from 18 files and 18 logs of pgbench" in done.stdout
    assert "! 2 not read, because the path does not fit the pattern:\n  LICENSE\n  SOURCE.txt" in done.stdout
    assert "? Were the repeats measured in turns?" in done.stdout
    found = rows(folder)
    assert "block" not in found[0]
    assert {row["repeats"] for row in found} == {"unknown"}
    assert found[0]["started"] == "2026-05-04T07:24:53+00:00"
    assert found[0]["source"] == "aws/bench100/run1.txt"
    answer = pgstrata(folder, "decide", "out.csv", "--metric", "tps", "--baseline", "aws")
    assert answer.returncode == 3, answer.stderr
    text = " ".join(answer.stdout.split())
    assert "3 against 3, an interval" in text
    assert "Measured one after the other by their time stamps: all runs of serverscamp-test1, serverscamp-test2" in text
    assert "Repeats rise in 6 of 6 series, by their time stamps" in text


def test_turns_that_the_time_stamps_contradict_are_refused(folder):
    done = bring(folder, "results", *PATTERN, "--repeats", "in-turns")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--repeats in-turns: the time stamps contradict it: all runs of aws" in done.stderr
    assert not (folder / "out.csv").exists()


def test_without_time_stamps_turns_are_believed_and_become_blocks(folder):
    for log in (folder / "results").rglob("run?.[0-9]*"):
        log.unlink()
    done = bring(folder, "results", *PATTERN, "--repeats", "in-turns")
    assert done.returncode == 0, done.stderr
    assert {row["block"] for row in rows(folder)} == {"run1", "run2", "run3"}


def test_blocks_by_order_alone_are_doubted_where_results_are_missing(tmp_path):
    finished = (FOREIGN / "serverscamp/aws/bench100/run1.txt").read_text()
    for name, text in (("a", finished * 3), ("b", f"{finished}pgbench (18.3)\nstarting vacuum...end.\n{finished}")):
        (tmp_path / "results" / name).mkdir(parents=True)
        (tmp_path / "results" / name / "all.txt").write_text(text)
    asked = ("results", "--format", "pgbench", "--pattern", "{provider}/*.txt", "--repeats", "in-turns")
    done = bring(tmp_path, *asked)
    assert "! Blocks follow from the order of the results alone, and some are missing" in done.stdout, done.stderr
    (tmp_path / "out.csv").unlink()
    (tmp_path / "results" / "b" / "all.txt").write_text(finished * 3)
    assert "order of the results alone" not in bring(tmp_path, *asked).stdout


def test_what_is_not_finished_or_does_not_fit_is_named_and_the_list_is_bounded(folder):
    (folder / "results/aws/bench100/run4.txt").write_text("pgbench (18.3)\nstarting vacuum...end.\n")
    for number in range(30):
        (folder / f"results/note{number:02}").write_text("")
    done = bring(folder, "results", *PATTERN)
    assert "! 1 without a result:\n  aws/bench100/run4.txt:1: the run did not finish" in done.stdout
    assert "! 32 not read, because the path does not fit the pattern:" in done.stdout
    assert "  and 22 more\n" in done.stdout


def test_versions_are_in_their_order(tmp_path):
    text = "kernel tps\n3.10 10\n3.9 11\n4.7 12\n3.10-rc1 13\n"
    (tmp_path / "kernels.txt").write_text(text)
    assert bring(tmp_path, "kernels.txt", "--format", "table").returncode == 0
    assert [row["environment"] for row in rows(tmp_path)] == ["3.9", "3.10-rc1", "3.10", "4.7"]


def test_a_history_is_judged_along_its_commits(tmp_path):
    done = bring(tmp_path, str(FOREIGN / "otava/sample.csv"), "--format", "otava")
    assert "in turns" not in done.stdout
    answer = pgstrata(tmp_path, "decide", "out.csv", "--metric", "metric2", "--ordered")
    assert answer.stdout.startswith("Along the environments: aaa6 brought -12.4 %")
    other = pgstrata(tmp_path, "decide", "out.csv", "--metric", "metric1", "--ordered")
    assert "brought" not in other.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere", *PATTERN), "nowhere: there is no such file or folder"),
        (("results", "--format", "excel"), "--format: 'excel' is not a format\n  -> choose one of pgbench: "),
        (("results", "--format", "pgbench", "--pattern", "{a}/{b}"), "results: none of 38 files fits the pattern"),
        (("results", "--format", "pgbench", "--pattern", "{provider}/{bench}/{run}.txt"), "--compare: it is not clear which dimension is compared\n  | provider (aws, serverscamp-test1, serverscamp-test2); bench (bench100, bench1000)"),
        (("results", *PATTERN[:-1], "host"), "--compare: there is no dimension 'host'\n  -> choose among provider, scale, run"),
        (("results", *PATTERN, "--repeats", "perhaps"), "--repeats: 'perhaps' is not a way to measure repeats"),
        (("results", *PATTERN, "--repeat", "turn"), "--repeat: there is no dimension 'turn'"),
        (("results", "--format", "benchbase", "--pattern", "*/*/{run}.txt"), "results: there is no result in 18 files\n  | aws/bench100/run1.txt:1: not valid JSON"),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_is_refused_with_a_remedy(folder, arguments, said):
    done = bring(folder, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"pgstrata: {said}"), done.stderr
    assert "  -> " in done.stderr
    assert not (folder / "out.csv").exists()


def test_a_file_that_is_there_is_not_written_over(folder):
    (folder / "out.csv").write_text("mine")
    done = bring(folder, "results", *PATTERN)
    assert (done.returncode, (folder / "out.csv").read_text()) == (2, "mine")
    assert "out.csv: the file exists" in done.stderr


def test_of_several_folders_the_name_of_the_folder_is_a_dimension(folder):
    base = folder / "results"
    done = bring(folder, "results/aws", "results/serverscamp-test2", "--format", "pgbench", "--pattern", "{provider}/*{scale}/{run}.txt", "--compare", "provider")  # fmt: skip
    assert (done.returncode, "two fields with nothing between them" in done.stderr) == (2, True)
    done = bring(folder, str(base / "aws"), str(base / "serverscamp-test2"), "--format", "pgbench", "--pattern", "{provider}/bench{scale}/{run}.txt", "--compare", "provider")  # fmt: skip
    assert "12 results from 12 files and 12 logs" in done.stdout, done.stderr
    assert {row["environment"] for row in rows(folder)} == {"aws", "serverscamp-test2"}


def test_names_that_are_no_utf8_are_no_traceback(folder):
    source = (folder / "results/aws/bench100/run1.txt").read_bytes()
    for name in (b"results/b\xe9/bench100", b"results/c/bench100"):
        place = folder / Path(name.decode("utf-8", "surrogateescape"))
        place.mkdir(parents=True)
        (place / "run1.txt").write_bytes(source)
    done = bring(folder, "results", *PATTERN)
    assert done.returncode == 0, done.stderr
    assert "b�" in {row["environment"] for row in rows(folder)}


def test_a_table_that_is_too_large_is_refused(tmp_path):
    (tmp_path / "many.csv").write_text("server,tps\n" + "1,1\n" * 100_002)
    done = bring(tmp_path, "many.csv", "--format", "table")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pgstrata: many.csv: there are more than 100,000 results or rows\n")
    (tmp_path / "wide.csv").write_text("a," * 2000 + "a\n")
    assert "there are 2,001 columns" in bring(tmp_path, "wide.csv", "--format", "wide").stderr


def test_results_with_the_same_number_are_counted_because_something_else_differs(tmp_path):
    (tmp_path / "t.txt").write_text("a 10 1 100\na 20 1 200\nb 10 1 110\nb 20 1 190\n")
    done = bring(tmp_path, "t.txt", "--format", "table", "--columns", "server,-,run,tps")
    assert "! 2 results of the same environment, cell and run as another one:" in done.stdout, done.stderr
    (tmp_path / "out.csv").unlink()
    done = bring(tmp_path, "t.txt", "--format", "table", "--columns", "server,clients,run,tps", "--compare", "server")
    assert "as another one" not in done.stdout


def test_the_next_command_of_a_history_has_the_direction_that_the_file_tells(tmp_path):
    runs = [{"commit": {"id": name}, "date": 1752436426199 + day, "tool": "customSmallerIsBetter",
             "benches": [{"name": "select - median", "value": 28.5 + day}, {"name": "p95", "value": 40}]}
            for day, name in enumerate(("f0", "0f", "aa"))]  # fmt: skip
    (tmp_path / "data.js").write_text(f"window.BENCHMARK_DATA = {json.dumps({'entries': {'all': runs}})}")
    done = bring(tmp_path, "data.js", "--format", "commits")
    assert "Next: pgstrata decide out.csv --metric 'select - median' --lower-is-better --ordered\n" in done.stdout
    assert "in turns" not in done.stdout
    assert list(dict.fromkeys(row["environment"] for row in rows(tmp_path))) == ["f0", "0f", "aa"]
    answer = pgstrata(tmp_path, "decide", "out.csv", "--metric", "p95", "--lower-is-better", "--ordered")
    assert answer.returncode in {0, 3}, answer.stderr
