"""Prices in experiment files and in lists: by host or by name, dated, in one currency."""

import pytest

from pgstrata.errors import ExperimentError, UsageError
from pgstrata.experiment.parse import parse_experiment
from pgstrata.experiment.prices import parse_prices
from pgstrata.plan.identity import identify
from pgstrata.workloads import builtin_workloads

WORKLOADS = builtin_workloads()
TEXT = """
[factors]
host = ["ssh:x86", "ssh:arm"]
{prices}
[[cells]]
workload = "select-only"
scale = 10
clients = 4
"""
ARM = '[prices."ssh:arm"]\nper_hour = "1.4464 USD"\nas_of = 2021-01-15\nincludes = "one NVMe disk"'


def parse(prices):
    return parse_experiment(TEXT.format(prices=prices), "x", read_file=str, workloads=WORKLOADS)


def test_a_price_belongs_to_all_environments_of_its_host_or_to_one_by_name():
    found = parse(ARM).prices
    assert list(found) == ["arm"]
    (price,) = found.values()
    assert (price.amount, price.currency, price.as_of, price.includes) == (1.4464, "USD", "2021-01-15", "one NVMe disk")
    named = ARM.replace("ssh:arm", next(iter(found)))
    assert parse(named).prices == found


def test_prices_do_not_change_the_identity_of_a_plan():
    assert identify(parse(ARM), ()) == identify(parse(""), ())


@pytest.mark.parametrize(
    ("prices", "what"),
    [
        (ARM.replace("1.4464 USD", "1.4464"), "not an amount with a currency"),
        (ARM.replace("1.4464 USD", "-1 USD"), "not an amount with a currency"),
        (ARM.replace("1.4464 USD", "0 USD"), "not an amount with a currency"),
        (ARM.replace("1.4464 USD", "1e400 USD"), "not an amount with a currency"),
        (ARM.replace("1.4464 USD", f"1{'0' * 300} USD"), "is too small or too large: 1e+300"),
        (ARM.replace("1.4464 USD", f"0.{'0' * 300}1 USD"), "is too small or too large: 1e-301"),
        (ARM.replace("as_of = 2021-01-15", 'as_of = "2021"'), "has no date"),
        (ARM.replace("as_of = 2021-01-15", "as_of = 2021-01-15T00:00:00"), "has no date"),
        (ARM.replace("as_of = 2021-01-15", ""), "needs per_hour and as_of"),
        (ARM + "\nper_day = 3", "only includes and source are allowed"),
        (ARM.replace('"one NVMe disk"', "3"), "is not a text of at most 500 characters"),
        (ARM.replace("ssh:arm", "ssh:amr"), "is neither a host nor an environment"),
        (ARM + '\n[prices."ssh:x86"]\nper_hour = "2 EUR"\nas_of = 2021-01-15', "prices are in EUR and USD"),
    ],
)
def test_what_is_no_price_is_refused_by_its_reason(prices, what):
    with pytest.raises(ExperimentError) as caught:
        parse(prices)
    assert any(what in problem.what for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("price = 1", r"no table \[prices\]"),
        ("[prices", "not valid TOML"),
        ("prices = 3", "must be a table"),
        (ARM[:-4], "not valid TOML"),
    ],
)
def test_what_is_no_list_of_prices_is_refused(text, what):
    with pytest.raises(UsageError, match=what):
        parse_prices(text, "list.toml")


LISTED = """
[[environments]]
name = "big one"
{own}

[[environments]]
name = "small"
settings.jit = "off"
{more}
[[cells]]
workload = "select-only"
scale = 10
clients = 4
"""
OWN = 'price = {{ per_hour = "{}", as_of = 2021-01-15 }}'


def parse_listed(own, more=""):
    return parse_experiment(LISTED.format(own=own, more=more), "x", read_file=str, workloads=WORKLOADS)


def test_a_listed_environment_has_its_own_price_before_that_of_its_host():
    host = '[prices.local]\nper_hour = "1 USD"\nas_of = 2021-01-15'
    found = parse_listed(OWN.format("2 USD"), host).prices
    assert {name: price.amount for name, price in found.items()} == {"big-one": 2, "small": 1}
    assert identify(parse_listed(OWN.format("2 USD")), ()) == identify(parse_listed(""), ())


@pytest.mark.parametrize(
    ("own", "more", "what"),
    [
        (OWN.format("2"), "", "the price is not an amount with a currency"),
        ("price = 3", "", "the price needs per_hour and as_of"),
        (OWN.format("2 USD"), OWN.format("2 EUR"), "prices are in EUR and USD"),
    ],
)
def test_a_wrong_price_of_a_listed_environment_is_refused(own, more, what):
    with pytest.raises(ExperimentError) as caught:
        parse_listed(own, more)
    assert any(what in problem.what for problem in caught.value.problems)
