"""What throughput costs by a table of others' results, and values that may have been copied."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.app.decide import decide_file
from pgstrata.compare.one_look import ImportTerms, decide_import
from pgstrata.compare.table_worth import find_table_worth
from pgstrata.errors import UsageError
from pgstrata.model.answer import Verdict
from pgstrata.model.price import Price
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.commands.decide import decision_json, render_decision
from pgstrata.report.commands.decision_page import make_decision_document
from pgstrata.sources.table import parse_table

PUBLISHED = Path(__file__).parents[2] / "examples" / "instances"
NOISE = (0.01, -0.012, 0.004, -0.003, 0.008, -0.006, 0.002, 0.011, -0.009, 0.005, -0.001, 0.007)
LIST = '[prices.{}]\nper_hour = "{}"\nas_of = 2021-01-15\n'


def published():
    terms = ImportTerms(baseline="m5d.8xlarge")
    return decide_file(PUBLISHED / "published.csv", terms, PUBLISHED / "prices.toml")


def paired(ratio):
    """Twelve blocks in which b has about `ratio` times the throughput of a."""
    rows = [f"{n},a,{1000 * (1 + noise)}\n{n},b,{1000 * ratio}" for n, noise in enumerate(NOISE)]
    text = "block,environment,value\n" + "\n".join(rows)
    return decide_import(parse_table(text, "r.csv", metric="tps"), ImportTerms(baseline="a"))


def prices(a, b):
    return {name: Price(amount=one, currency="USD", as_of="2021-01-15") for name, one in (("a", a), ("b", b))}


def test_published_figures_of_two_instances_come_out_as_published_and_decide_nothing():
    answer = published()
    effects = {item.cell: item.effect for item in answer.comparisons}
    assert effects["read-write"] == pytest.approx(1.19, abs=0.005)
    assert effects["read-only"] == pytest.approx(1.30, abs=0.005)
    assert {item.verdict for item in answer.comparisons} == {Verdict.INSUFFICIENT}
    found = {one.cells[0]: one for one in answer.worth.findings}
    assert found["read-write"].price_ratio == pytest.approx(0.8)
    assert found["read-write"].effect == pytest.approx(34409 / 28878 / 0.8)
    assert all((one.verdict, one.interval) == (Verdict.INSUFFICIENT, None) for one in found.values())
    cost = next(one for one in answer.worth.costs if (one.environment, one.cells) == ("m6gd.8xlarge", ("read-write",)))
    assert cost.of_a_million(cost.rate) == pytest.approx(1e6 / 34409 / 3600 * 1.4464)


def test_the_duplicated_row_is_told():
    repeated = [doubt for doubt in published().warnings if doubt.code == "repeated_cells"]
    assert [doubt.names for doubt in repeated] == [("read-only", "read-only with checksums")]


def test_text_and_json_have_the_value():
    answer = published()
    text = " ".join(render_decision(answer).split())
    assert "on read-write: +48.9 % without an interval; an hour of it costs 20.0 % less." in text
    assert "Read-only and read-only with checksums have the same values in every environment" in text
    worth = json.loads(decision_json(answer))["worth"]
    assert [one["verdict"] for one in worth["findings"]] == ["insufficient"] * 4
    assert json.loads(decision_json(paired(1.1)))["worth"] is None


def test_the_page_has_prices_values_and_a_chart_without_a_frontier_that_nobody_judged():
    page = emit_page(make_decision_document(published()))
    part = page[page.index("What it costs") :].replace("\xa0", " ")
    assert "an hour of it costs 20.0 % less." in part
    assert "m6gd.8xlarge: 1.4464 USD an hour" in part
    assert part.count("Throughput against price.") == len({cost.cells for cost in published().worth.costs})
    assert "The line joins" not in part
    unpriced = decide_file(PUBLISHED / "published.csv", ImportTerms(baseline="m5d.8xlarge"), None)
    assert "What it costs" not in emit_page(make_decision_document(unpriced))


@given(st.floats(0.5, 2), st.floats(0.01, 100), st.floats(0.01, 100))
def test_effect_and_interval_move_by_the_ratio_of_prices_exactly(ratio, a, b):
    answer = paired(ratio)
    (compared,), (found,) = answer.comparisons, find_table_worth(answer, prices(a, b)).findings
    assert found.effect == pytest.approx(compared.effect * a / b)
    if found.verdict is not Verdict.EQUIVALENT:
        assert found.interval.low == pytest.approx(compared.interval.low * a / b)
        assert found.interval.high == pytest.approx(compared.interval.high * a / b)


@pytest.mark.parametrize(
    ("ratio", "price", "verdict"),
    [
        (1.05, 0.8, Verdict.BETTER),
        (0.8, 0.8, Verdict.EQUIVALENT),
        (1.25, 1.5, Verdict.WORSE),
        (1.25, 1.0, Verdict.BETTER),
    ],
)
def test_the_rule_for_throughput_judges_value(ratio, price, verdict):
    (found,) = find_table_worth(paired(ratio), prices(1.0, price)).findings
    assert found.verdict is verdict


def test_a_cell_behind_a_baseline_that_is_called_on_follows_a_comma(tmp_path):
    rows = [f"{cell},jit {name},{rate}" for cell in ("small", "large") for name, rate in (("on", 1000), ("off", 1100))]
    (tmp_path / "r.csv").write_text("cell,environment,value\n" + "\n".join(rows))
    (tmp_path / "p.toml").write_text("".join(LIST.format(f'"jit {name}"', "1 USD") for name in ("on", "off")))
    answer = decide_file(tmp_path / "r.csv", ImportTerms(baseline="jit on", metric="tps"), tmp_path / "p.toml")
    assert "value for money of jit off from that of jit on, on small: " in " ".join(render_decision(answer).split())


def test_without_the_price_of_the_baseline_nothing_is_compared():
    worth = find_table_worth(paired(1.1), {"b": prices(1, 1)["b"]})
    assert (worth.findings, worth.unpriced) == ((), ("a",))


def test_without_any_shared_block_values_are_too_few_and_not_too_early():
    text = "block,environment,value\n1,a,1000\n2,b,1100\n"
    answer = decide_import(parse_table(text, "r.csv", metric="tps"), ImportTerms(baseline="a"))
    both = prices(1, 1)
    said = render_decision(replace(answer, worth=find_table_worth(answer, both), prices=both))
    assert "Value for money of b: too few values to tell; an hour of it costs as much." in " ".join(said.split())
    assert "too early" not in said


@pytest.mark.parametrize(
    ("listed", "metric", "what"),
    [
        (LIST.format("c", "1 USD"), "tps", "is not an environment of"),
        (LIST.format("a", "1 USD"), "latency_p99", "latency_p99 is better the lower it is"),
        (LIST.format("a", "1"), "tps", "not an amount with a currency"),
        (LIST.format("a", "1 USD") + LIST.format("b", "1 EUR"), "tps", "prices are in EUR and USD"),
    ],
)
def test_prices_that_cannot_be_used_are_refused(tmp_path, listed, metric, what):
    (tmp_path / "r.csv").write_text("environment,value\na,1\nb,2\n", encoding="utf-8")
    (tmp_path / "p.toml").write_text(listed, encoding="utf-8")
    with pytest.raises(UsageError, match=what):
        decide_file(tmp_path / "r.csv", ImportTerms(baseline="a", metric=metric), tmp_path / "p.toml")


def test_a_list_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UsageError, match="prices cannot be read"):
        decide_file(PUBLISHED / "published.csv", ImportTerms(baseline="m5d.8xlarge"), tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("rows", "codes"),
    [
        # short numbers may agree by chance, and one value alone says nothing
        (["a,x,100", "b,x,120", "a,y,100", "b,y,120"], []),
        (["a,x,1234.5", "b,x,2345.6", "a,y,1234.5", "b,y,2345.7"], []),
        (["a,x,1234.5", "b,x,2345.6", "a,y,1234.5", "b,y,2345.6"], ["repeated_cells"]),
        (["a,x,1234.5", "b,x,1234.5", "a,y,2345.6", "b,y,2345.6"], ["repeated_environments"]),
    ],
)
def test_series_that_agree_digit_for_digit_are_doubted(rows, codes):
    text = "environment,cell,value\n" + "\n".join(rows)
    answer = decide_import(parse_table(text, "r.csv", metric="tps"), ImportTerms(baseline="a"))
    assert [doubt.code for doubt in answer.warnings if doubt.code.startswith("repeated")] == codes
