"""Plans and counts of single statements, on real servers that take turns."""

import gzip
import json
import re

import pytest

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

EXPERIMENT = """
question = "What does the index of a lookup save?"
blocks = 2
baseline = "indexed"
[common]
server = "embedded"
settings.shared_preload_libraries = "pg_stat_statements"
settings.shared_buffers = "32MB"
[[environments]]
name = "indexed"
[[environments]]
name = "dropped"
options.setup_sql = "drop.sql"
[[cells]]
workload = "custom"
scripts = [{ file = "lookup.sql", weight = 1 }]
options.setup_sql = "orders.sql"
scale = 1
clients = 1
run = "1s"
"""
ORDERS = (
    "CREATE TABLE orders AS SELECT g AS id, g % 1000 AS customer FROM generate_series(1, 20000) g;\n"
    "CREATE INDEX orders_customer ON orders (customer);\n"
)
# It rests longer than it works: what a statement takes does not hang on how many there are.
LOOKUP = (
    "\\set c random(1, 1000)\nBEGIN;\nSELECT count(*) FROM orders WHERE customer = :c;\nSELECT 'a;' || :c;\nEND;\n"
    "\\sleep 3 ms\n"
)


@pytest.fixture(scope="module")
def measured(shared_sandbox):
    for name, text in (("orders.sql", ORDERS), ("drop.sql", "DROP INDEX orders_customer;\n"), ("lookup.sql", LOOKUP)):
        shared_sandbox.file(text, name)
    study = shared_sandbox.root / "study-statements"
    done = shared_sandbox.pgstrata("run", shared_sandbox.file(EXPERIMENT, "statements.toml"), "--study", study)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = shared_sandbox.pgstrata("show", study, "--why", "--json")
    assert shown.returncode == 0, shown.stderr
    return shared_sandbox, study, json.loads(shown.stdout)["why"]


def test_a_plan_without_its_index_is_shown_beside_the_difference(measured):
    sandbox, study, why = measured
    (plans,) = why["plans"]
    assert (plans["unexplained"], plans["unsteady"], len(plans["differences"])) == ([], [], 1)
    (difference,) = plans["differences"]
    assert difference["statement"] == "SELECT count(*) FROM orders WHERE customer = $1"
    (change,) = difference["changes"]
    assert change.endswith("-> Seq Scan on orders")
    assert "orders_customer" in change
    assert difference["plan"]["planned_with"] == "parameters"
    text = " ".join(sandbox.pgstrata("show", study, "--why").stdout.split())
    assert "The plan of SELECT count(*) FROM orders WHERE customer = $1 differs: " in text


def test_equal_plans_are_one_file(measured):
    _, study, _ = measured
    files = list(study.glob("evidence/b*/*/*/plans.txt"))
    assert len(files) == 4
    assert len({path.stat().st_ino for path in files}) == 2


def test_calls_of_each_statement_are_those_of_the_scripts_and_its_latency_explains_the_difference(measured):
    _, _, why = measured
    (counted,) = why["queries"]
    assert (counted["blocks"], counted["lost"]) == (2, [])
    found = {query["query"]: query for query in counted["queries"]}
    lookup = found["select count(*) from orders where customer = ?"]
    assert lookup["calls"] == pytest.approx(1.0, abs=0.02)
    assert lookup["reference_calls"] == pytest.approx(1.0, abs=0.02)
    assert lookup["latency"] > 3 * lookup["reference_latency"]
    assert lookup["by_calls"] + lookup["by_latency"] == pytest.approx(lookup["difference"])
    assert lookup is max(found.values(), key=lambda query: query["difference"])
    assert not any("pg_stat" in text for text in found)


def test_without_texts_the_figures_stay_and_no_text_and_no_plan_is_left(measured):
    sandbox, study, why = measured
    shown = sandbox.pgstrata("show", study, "--why", "--json", "--no-query-text").stdout
    hidden = json.loads(shown)["why"]
    assert hidden["plans"] == []
    (counted,), (before,) = hidden["queries"], why["queries"]
    assert [query["difference"] for query in counted["queries"]] == [query["difference"] for query in before["queries"]]
    assert all(re.fullmatch("q[0-9a-f]{12}", query["query"]) for query in counted["queries"])
    report = sandbox.root / "untexted.html"
    assert sandbox.pgstrata("report", study, "--no-query-text", "-o", report).returncode == 0
    assert sandbox.pgstrata("report", study, "-o", sandbox.root / "whole.html").returncode == 0
    for text in (shown, report.read_text(), sandbox.pgstrata("show", study, "--why", "--no-query-text").stdout):
        assert "customer =" not in text
    assert "customer = $1" in (sandbox.root / "whole.html").read_text()


def test_a_study_may_be_measured_without_texts(measured):
    sandbox, _, _ = measured
    file = sandbox.file(EXPERIMENT.replace("blocks = 2", "blocks = 1"), "statements.toml")
    study = sandbox.root / "study-untexted"
    done = sandbox.pgstrata("run", file, "--study", study, "--no-query-text")
    assert done.returncode == 0, done.stdout + done.stderr
    samples = [gzip.decompress(path.read_bytes()) for path in study.glob("evidence/b*/*/*/sessions.samples.gz")]
    assert samples
    assert not any(b"customer" in text for text in samples)
    assert not list(study.glob("evidence/b*/*/*/plans.txt"))
    refused = sandbox.pgstrata("run", file, "--study", study)
    assert refused.returncode != 0
    assert "query_text" in refused.stderr


def test_reparse_finds_the_same(measured):
    sandbox, study, why = measured
    assert sandbox.pgstrata("reparse", study).returncode == 0
    again = json.loads(sandbox.pgstrata("show", study, "--why", "--json").stdout)["why"]
    assert (again["plans"], again["queries"]) == (why["plans"], why["queries"])
