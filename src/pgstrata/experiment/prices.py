"""The table [prices]: what an hour of a machine costs, by host or by the name of an environment."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final

from pgstrata.errors import UsageError
from pgstrata.experiment.findings import Findings
from pgstrata.experiment.keys import MOST, WrongValueError, slug, suggest
from pgstrata.experiment.values import Kind, kind_of
from pgstrata.model.experiment import Environment
from pgstrata.model.price import Price

_AMOUNT: Final = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([A-Z]{3})")
_KEYS: Final = ("per_hour", "as_of", "includes", "source")
_REMEDY: Final = 'write { per_hour = "1.4464 USD", as_of = 2021-01-15 }; includes and source are texts'
_MOST_TEXT: Final = 500
# The ratio of any two of them, and its logarithm, are numbers.
_LEAST_AMOUNT: Final = 1e-9
_MOST_AMOUNT: Final = 1e12


def read_prices(value: object) -> Mapping[str, Price]:
    """Prices by the name of their host or environment; WrongValueError if one is not valid."""
    if not isinstance(value, dict):
        remedy = 'write [prices."ssh:db1"] with its keys below it'
        raise WrongValueError(f"must be a table, not {kind_of(value)}", remedy)
    if len(value) > MOST:
        raise WrongValueError(f"too many prices: {len(value):,}", f"write at most {MOST}")
    prices = {name: _read_price(f"the price of {name!r:.80}", given) for name, given in value.items()}
    _refuse_currencies(prices)
    return prices


def _refuse_currencies(prices: Mapping[str, Price]) -> None:
    currencies = sorted({price.currency for price in prices.values()})
    if len(currencies) > 1:
        what = f"prices are in {' and '.join(currencies)}, and have to be in one currency"
        raise WrongValueError(what, "convert them to one currency yourself, because exchange rates change")


def _read_price(what: str, given: object) -> Price:
    if not isinstance(given, dict) or not {"per_hour", "as_of"} <= given.keys() <= set(_KEYS):
        raise WrongValueError(
            f"{what} needs per_hour and as_of; besides these only includes and source are allowed", _REMEDY
        )
    said = given["per_hour"]
    found = _AMOUNT.fullmatch(said.strip()) if isinstance(said, str) else None
    amount = float(found[1]) if found else math.nan
    if found is None or not 0 < amount < math.inf:
        raise WrongValueError(f"{what} is not an amount with a currency", _REMEDY)
    if not _LEAST_AMOUNT <= amount <= _MOST_AMOUNT:
        raise WrongValueError(f"{what} is too small or too large: {amount:g}", "use another unit of the currency")
    day = given["as_of"]
    if not isinstance(day, date) or isinstance(day, datetime):
        raise WrongValueError(f"{what} has no date: as_of is {kind_of(day)}", _REMEDY)
    texts = {key: given.get(key, "") for key in ("includes", "source")}
    if not all(isinstance(text, str) and len(text) <= _MOST_TEXT for text in texts.values()):
        raise WrongValueError(f"includes or source of {what} is not a text of at most {_MOST_TEXT} characters", _REMEDY)
    return Price(amount=amount, currency=found[2], as_of=day.isoformat(), **texts)


_SCHEMA: Final = {
    "type": "object",
    "properties": {key: {"type": "string"} for key in _KEYS},
    "required": ["per_hour", "as_of"],
    "additionalProperties": False,
}
PRICES: Final = Kind(read_prices, {"type": "object", "additionalProperties": _SCHEMA})
PRICE: Final = Kind(lambda value: _read_price("the price", value), _SCHEMA)


def price_environments(
    prices: Mapping[str, Price],
    own: Mapping[str, Price],
    environments: tuple[Environment, ...],
    findings: Findings,
) -> Mapping[str, Price]:
    """Prices by the name of an environment, `own` before all others; prices without an environment are noted."""
    found, unknown = assign_prices(prices, environments)
    names = [*dict.fromkeys(each.host.text for each in environments), *(each.name for each in environments)]
    for name in unknown:
        what = f"{name!r:.80} is neither a host nor an environment of this experiment"
        findings.add(("prices",), what, suggest(name, names, noun="one of"))
    found = {**found, **own}
    try:
        _refuse_currencies(found)
    except WrongValueError as error:
        findings.add(("environments",), error.what, error.remedy)
    return found


def assign_prices(
    prices: Mapping[str, Price], environments: tuple[Environment, ...]
) -> tuple[Mapping[str, Price], tuple[str, ...]]:
    """Prices by the name of an environment, its own before that of its host; and the keys without an environment."""
    found: dict[str, Price] = {}
    used: set[str] = set()
    for each in environments:
        keys = [key for key in prices if slug(key) == each.name or key == each.name]
        keys += [key for key in prices if key == each.host.text]
        if keys:
            found[each.name] = prices[keys[0]]
        used |= set(keys)
    return found, tuple(key for key in prices if key not in used)


def parse_prices(text: str, source: str) -> Mapping[str, Price]:
    """A price list: a file with tables [prices], other tables are ignored; UsageError if it is not valid."""
    try:
        data: Any = tomllib.loads(text)
        if "prices" not in data:
            remedy = f'begin with [prices."NAME OF A HOST OR ENVIRONMENT"]; {_REMEDY}'
            raise UsageError("the file has no table [prices]", where=source, remedy=remedy)
        return read_prices(data["prices"])
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the file is not valid TOML: {error}", where=source, remedy=_REMEDY) from None
    except WrongValueError as error:
        raise UsageError(error.what, where=source, remedy=error.remedy) from None
    except (ValueError, RecursionError):
        what = "a number has too many digits, or tables are nested too deeply"
        raise UsageError(what, where=source, remedy=_REMEDY) from None
