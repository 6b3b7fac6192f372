"""`show --prices` and `report --prices`: what the throughput of a study costs, by a list of prices."""

import json

import pytest

from program import pgstrata
from stored import write_study

QUESTION = """
question = "Which machine gives more for the money?"
blocks = 12
baseline = { host = "ssh:x86" }
[factors]
host = ["ssh:x86", "ssh:arm"]
[common.settings]
shared_buffers = "128MB"
effective_cache_size = "1GB"
[[cells]]
workload = "select-only"
scale = 1
clients = [4, 8]
run = "10s"
"""
PRICE = '[prices."ssh:{}"]\nper_hour = "{} USD"\nas_of = 2021-01-15\n'


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("prices")

    def measure(_plan, run):
        clients = 1.2 if run.cell.endswith("c8") else 1.0
        return {"tps": clients * (900 if "arm" in run.environment else 1000) + run.block * 7 % 5}

    write_study(place, QUESTION, measure)
    (place / "list.toml").write_text(PRICE.format("x86", "2") + PRICE.format("arm", "1.6"))
    return place


def run(place, *arguments, code=0):
    done = pgstrata(place, *arguments)
    assert done.returncode == code, done.stderr
    return done


def test_values_and_costs_of_a_study_are_told_with_their_prices(place):
    text = " ".join(run(place, "show", "study", "--prices", "list.toml").stdout.split())
    assert (
        "host = ssh:arm is 12.5 % better value than host = ssh:x86 (select-only, scale 1, best of 4 to 8 clients) "
        "[12.5, 12.5]: an hour of it costs 20.0 % less"
    ) in text
    assert "host = ssh:arm: 1.6 USD an hour as of 2021-01-15" in text
    assert "What it costs" not in run(place, "show", "study").stdout


def test_json_has_costs_and_findings(place):
    assert json.loads(run(place, "show", "study", "--json").stdout)["worth"] is None
    worth = json.loads(run(place, "show", "study", "--json", "--prices", "list.toml").stdout)["worth"]
    assert [len(one["cells"]) for one in worth["findings"]] == [1, 1, 2]
    assert {one["verdict"] for one in worth["findings"]} == {"better"}
    assert all(one["effect"] == pytest.approx(0.9 / 0.8, rel=0.01) for one in worth["findings"])
    cost = next(one for one in worth["costs"] if "arm" in one["environment"])
    assert cost["price"]["amount"] == 1.6
    assert cost["of_a_million"] == pytest.approx(1e6 / cost["rate"] / 3600 * 1.6)
    low, high = cost["of_a_million_interval"]
    assert low <= cost["of_a_million"] <= high
    # the faster one costs more, so that neither beats the other
    assert {one["dominated_by"] for one in worth["costs"]} == {""}


def test_the_page_draws_price_against_throughput(place):
    run(place, "report", "study", "--prices", "list.toml", "-o", "prices.html")
    run(place, "report", "study", "-o", "plain.html")
    page, plain = ((place / name).read_text() for name in ("prices.html", "plain.html"))
    assert "What it costs" in page
    # single cells and the peak
    assert page.count("Throughput against price.") == 3
    assert "What it costs" not in plain


def test_a_price_of_nothing_in_the_study_is_refused(place):
    (place / "other.toml").write_text(PRICE.format("db9", "1"))
    said = run(place, "show", "study", "--prices", "other.toml", code=2).stderr
    assert "other.toml: 'ssh:db9' is neither a host nor an environment of this study" in said
    assert "name one of its hosts (ssh:x86, ssh:arm)" in said
