"""`pgstrata export` as a user meets it: CSV that `decide` takes, histories, Parquet where it can be written."""

import csv
import importlib.util
import io

import pytest

from program import pgstrata
from stored import write_study

QUESTION = """
question = "Is it faster?"
blocks = 9
[factors]
"settings.synchronous_commit" = ["on", "off"]
[common]
server = "18"
[[cells]]
workload = "select-only"
scale = 1
clients = 1
run = "10s"
"""


@pytest.fixture
def study(tmp_path):
    def measure(_plan, run):
        faster = 1.2 if "off" in run.environment else 1.0
        return {"tps": faster * (1000 + 3 * (run.block * 7 % 5)), "failed": 0.0, "latency_mean": 0.001}

    write_study(tmp_path, QUESTION, measure)
    return tmp_path


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_study_as_csv_is_decided_like_any_table(study):
    done = pgstrata(study, "export", "study", "-o", "all.csv")
    assert (done.returncode, done.stdout) == (0, "all.csv: 36 rows of 18 runs\n"), done.stderr
    rows = read((study / "all.csv").read_text())
    assert {row["metric"] for row in rows} == {"tps", "latency_mean"}
    assert {row["settings.synchronous_commit"] for row in rows} == {"on", "off"}
    baseline = next(row["environment"] for row in rows if row["settings.synchronous_commit"] == "on")
    answer = pgstrata(study, "decide", "all.csv", "--metric", "tps", "--baseline", baseline)
    assert answer.returncode == 0, answer.stderr
    assert "+20" in answer.stdout


def test_a_history_for_otava_comes_back_as_it_was(study):
    assert pgstrata(study, "export", "study", "--format", "otava", "-o", "history.csv").returncode == 0
    rows = read((study / "history.csv").read_text())
    assert len(rows) == 18
    assert set(rows[0]) == {"time", "environment", "block", "latency_mean", "tps"}
    done = pgstrata(study, "import", "--format", "otava", "history.csv", "-o", "back.csv", "--repeats", "unknown")
    assert "back.csv: 18 results from 1 file" in done.stdout, done.stderr


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="pyarrow is installed")
def test_parquet_without_pyarrow_says_what_to_install(study):
    done = pgstrata(study, "export", "study", "--format", "parquet")
    assert done.returncode == 2
    assert "pip install 'pgstrata[parquet]'" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")
def test_parquet_has_the_rows_and_columns_of_csv(study):
    from pyarrow import parquet

    assert pgstrata(study, "export", "study", "-o", "all.csv").returncode == 0
    done = pgstrata(study, "export", "study", "--format", "parquet", "-o", "all.parquet")
    assert (done.returncode, done.stdout) == (0, "all.parquet: 36 rows of 18 runs\n"), done.stderr
    rows = read((study / "all.csv").read_text())
    table = parquet.read_table(study / "all.parquet")
    assert table.column_names == list(rows[0])
    found = [{name: "" if value is None else str(value) for name, value in row.items()} for row in table.to_pylist()]
    assert found == rows


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("study", "--format", "excel"), "--format: 'excel' is not a format\n  -> choose one of csv, otava, parquet"),
        (("table.csv", "--format", "otava"), "table.csv: a history needs the time of each measurement"),
        (("nowhere",), "nowhere: there is no such file"),
        (("table.csv", "-o", "table.csv"), "table.csv: the file exists"),
    ],
)
def test_what_cannot_be_exported_is_refused_with_a_remedy(study, arguments, said):
    (study / "table.csv").write_text("environment,value\na,1\nb,2\n")
    done = pgstrata(study, "export", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"pgstrata: {said}"), done.stderr
