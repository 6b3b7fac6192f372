"""Rates that pgstrata chooses, on real servers: the highest within an objective, and shares of the slowest maximum."""

import json

import pytest

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

SLEEP = "SELECT pg_sleep(0.001 + 0.006 * random());\n"
SEARCH = """
question = "?"
blocks = 1
controls = ["same"]
[common]
server = "embedded"
[[cells]]
scripts = [{ file = "sleep.sql" }]
scale = 1
clients = 4
threads = 1
objective = "p99 < 20ms"
run = "24s"
warmup = "0s"
"""
SHARE = """
question = "?"
metric = "latency_p50"
blocks = {blocks}
controls = ["same"]
[common]
server = "embedded"
[[cells]]
scripts = [{{ file = "sleep.sql" }}]
scale = 1
clients = 4
threads = 1
rate = "50 % of maximum"
run = "2s"
warmup = "0s"
"""


def show(sandbox, study):
    return json.loads(sandbox.pgstrata("show", study, "--json").stdout)


def test_the_highest_rate_within_an_objective_is_searched_and_derived_again_from_evidence(sandbox):
    """Four sessions that each take 4 ms on average can do 1000 transactions per second, and fewer within 20 ms."""
    (sandbox.root / "sleep.sql").write_text(SLEEP)
    study, file = sandbox.root / "study-objective", sandbox.file(SEARCH)
    done = sandbox.pgstrata("run", file, "--study", study)
    assert done.returncode == 0, done.stdout + done.stderr
    records = sandbox.records(study)
    assert len(records) == 2
    for record in records.values():
        rates = record["search"]["rates"]
        assert len(rates) == 12
        assert rates[0] == 0
    (comparison,) = [one for one in show(sandbox, study)["comparisons"] if one["metric"] == "sustained_rate"]
    # a machine with much other work keeps 20 ms at a lower rate only
    assert 50 < comparison["baseline_value"] < 1000
    assert comparison["cell"]["objective"] == "p99 < 20ms"
    assert [one["runs"] for one in show(sandbox, study)["sustained"]] == [1, 1]
    text = " ".join(sandbox.pgstrata("show", study).stdout.split())
    assert "the highest rate with p99 below 20 ms" in text
    before = show(sandbox, study)
    assert sandbox.pgstrata("reparse", study).returncode == 0
    assert show(sandbox, study) == before


def test_a_share_of_the_slowest_maximum_is_one_rate_for_all_and_kept(sandbox):
    (sandbox.root / "sleep.sql").write_text(SLEEP)
    study = sandbox.root / "study-share"
    done = sandbox.pgstrata("run", sandbox.file(SHARE.format(blocks=1)), "--study", study)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = show(sandbox, study)["rates"]
    assert found["rate"] == int(min(found["maxima"].values()) / 2)
    assert 200 < found["rate"] < 600
    made = [one["value"] for one in show(sandbox, study)["comparisons"] if one["metric"] == "tps"]
    assert made[0] == pytest.approx(found["rate"], rel=0.25)
    again = sandbox.pgstrata("run", sandbox.file(SHARE.format(blocks=2)), "--study", study)
    assert again.returncode == 0, again.stdout + again.stderr
    assert show(sandbox, study)["rates"] == [found]
    text = " ".join(sandbox.pgstrata("show", study).stdout.split())
    assert (
        f"Rate: {found['rate']:,.0f} transactions/s in all environments, 50 % of the maximum of the slowest one" in text
    )
