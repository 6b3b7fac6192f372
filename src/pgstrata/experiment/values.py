"""Kinds of values of an experiment file: durations, ratios, counts, lists of levels.

What belongs here: one TOML value to one typed value, or an error that names a remedy and never quotes a whole table;
and the same in the words of JSON Schema.
"""

import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pgstrata.experiment.keys import MOST, WrongValueError, suggest
from pgstrata.model.objective import QUANTILES, Objective
from pgstrata.units import parse_bytes, parse_duration, parse_ratio

Scalar = str | int | float | bool
Levels = tuple[tuple[str | None, Scalar], ...]

# Of any duration, in seconds
_LONGEST: Final = 365 * 86400
# Of data on disk
_MOST_BYTES: Final = 1 << 60
_T = TypeVar("_T")
_Choice = TypeVar("_Choice", bound=str)


@dataclass(frozen=True, slots=True)
class Kind(Generic[_T]):
    """What a value must be: `read` gives it or raises WrongValueError, `schema` says the same as far as it can."""

    read: Callable[[Any], _T]
    schema: Mapping[str, Any]


def kind_of(value: object) -> str:
    """The TOML name of a value's type, for messages that must not quote the value."""
    names: tuple[tuple[type, str], ...] = (
        (bool, "a boolean"),
        (str, "a string"),
        (int, "an integer"),
        (float, "a float"),
        (list, "a list"),
        (dict, "a table"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "a date or time")


def _read_scalar(value: object) -> Scalar:
    if not isinstance(value, str | int | float | bool) or (isinstance(value, float) and not math.isfinite(value)):
        raise WrongValueError(f"{kind_of(value)} is not allowed here", "write one string, number or boolean")
    return value


def _read_text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        given = kind_of(value) if value != "" else "an empty one"
        raise WrongValueError(f"needs a text, not {given}", 'write it in quotes: "..."')
    return value


def _read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise WrongValueError(f"must be true or false, not {kind_of(value)}", "write true or false, without quotes")
    return value


def _read_commands(value: object) -> Mapping[str, tuple[str, ...]]:
    """Commands by what they are for, split into words as a shell does."""
    return {name: _read_command(name, text) for name, text in _read_table(value).items()}


def _read_command(name: str, text: object) -> tuple[str, ...]:
    remedy = 'write it as on a command line: "pg_ctlcluster 18 main restart"'
    if not isinstance(text, str):
        raise WrongValueError(f"the command for {name!r} is {kind_of(text)}", remedy)
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise WrongValueError(f"the command for {name!r} is not complete: {str(error).lower()}", remedy) from None
    if not words or "\0" in text:
        raise WrongValueError(f"the command for {name!r} is empty or has a NUL character", remedy)
    return words


def _read_words(value: object) -> tuple[str, ...]:
    """A program and its arguments."""
    remedy = 'write a list of words: ["./fill", "--rows", "1000000"]'
    if not isinstance(value, list):
        raise WrongValueError(f"a command is a list of words, not {kind_of(value)}", remedy)
    words = [word for word in value if isinstance(word, str) and "\0" not in word]
    if len(words) < len(value) or not words or not words[0].strip():
        raise WrongValueError("the command has a word that is not a text, or no program", remedy)
    return tuple(words)


def _read_size(value: object) -> int:
    remedy = 'write it with its unit: "512MB", "3 GB"'
    if not isinstance(value, str):
        raise WrongValueError(f"needs a size, not {kind_of(value)}", remedy)
    try:
        size = parse_bytes(value)
    except ValueError:
        raise WrongValueError(f"{value!r} is not a size", remedy) from None
    if not 0 < size < _MOST_BYTES:
        raise WrongValueError(f"{value!r} cannot be the size of data", remedy)
    return size


def _read_copies(value: object) -> Mapping[str, tuple[str, str]]:
    """File and options of COPY by table; the options are empty where none are given."""
    return {table: _read_copy(table, given) for table, given in _read_table(value).items()}


def _read_copy(table: str, given: object) -> tuple[str, str]:
    parts = {"file": given, "options": ""} if isinstance(given, str) else given
    if not isinstance(parts, dict) or not {"file"} <= parts.keys() <= {"file", "options"}:
        remedy = f'write {table} = "{table}.csv", or {{ file = "{table}.csv", options = "FORMAT csv, HEADER" }}'
        raise WrongValueError(f"the file for {table!r} is not given by its name", remedy)
    return _read_text(parts["file"]), _read_text(parts["options"]) if parts.get("options") else ""


def _read_table(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise WrongValueError(
            f"must be a table, not {kind_of(value)}", "write it as [name] with one key per line below it"
        )
    return value


def _read_levels(value: object) -> Levels:
    if isinstance(value, dict):
        levels: list[tuple[str | None, Scalar]] = [(name, _read_scalar(item)) for name, item in value.items()]
    elif isinstance(value, list):
        levels = [(None, _read_scalar(item)) for item in value]
    else:
        what = f"a factor needs a list of levels, not {kind_of(value)}"
        raise WrongValueError(what, 'write for example ["16", "18"]')
    if not levels:
        what = "a factor needs levels, and this list is empty"
        raise WrongValueError(what, 'write for example ["16", "18"], or take it out')
    if len(levels) > MOST:
        raise WrongValueError(f"a factor cannot have {len(levels):,} levels", f"write at most {MOST}")
    return tuple(levels)


def _read_baseline(value: object) -> str | dict[str, Any]:
    if not isinstance(value, str | dict) or not value:
        raise WrongValueError("the baseline is the levels of one environment", 'write for example { server = "16" }')
    return value


def _read_duration(value: object) -> float:
    if not isinstance(value, str):
        remedy = 'write it with its unit, in quotes: "60s", "10m", "1h30m"'
        raise WrongValueError(f"needs a duration, not {kind_of(value)}", remedy)
    try:
        seconds = parse_duration(value)
    except ValueError:
        remedy = 'write it with its unit: "60s", "10m", "1h30m"'
        raise WrongValueError(f"{value!r} is not a duration", remedy) from None
    if seconds > _LONGEST:
        raise WrongValueError(f"{value!r} is too long", f"write at most {_LONGEST / 86400:.0f}d")
    return seconds


def _read_seconds(value: object) -> float:
    seconds = _read_duration(value)
    if seconds <= 0:
        raise WrongValueError("a duration must be longer than zero", 'write for example "60s"')
    return seconds


def _read_run(value: object) -> float:
    # whole seconds, because that is what drivers measure
    seconds = _read_seconds(value)
    if seconds < 1 or seconds != int(seconds):
        raise WrongValueError("a run lasts whole seconds, at least one", 'write for example "60s"')
    return seconds


def _read_threshold(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise WrongValueError(f"needs a ratio, not {kind_of(value)}", 'write for example "3 %"')
    try:
        ratio = parse_ratio(value) if isinstance(value, str) else float(value)
    except ValueError:
        raise WrongValueError(f"{value!r} is not a ratio", 'write for example "3 %" or 0.03') from None
    if not 0 < ratio < 1:
        remedy = 'write one between 0 and 100 %, such as "3 %"'
        raise WrongValueError(f"a threshold of {ratio * 100:g} % makes no sense", remedy)
    return ratio


def _read_objective(value: object) -> Objective:
    example = 'write for example "p99 < 20ms"'
    if not isinstance(value, str):
        raise WrongValueError(f"an objective is a text, not {kind_of(value)}", example)
    of, sign, limit = (part.strip() for part in value.partition("<"))
    if not sign or not of or not limit:
        raise WrongValueError(f"{value!r} is not an objective: a percentile, < and a limit", example)
    if of not in QUANTILES:
        raise WrongValueError(f"{of!r} cannot be limited", suggest(of, QUANTILES))
    return Objective(of=of, limit=_read_seconds(limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Transactions per second, or a share of the slowest environment's maximum."""

    fixed: float | None = None
    share: float | None = None


_SHARE_OF_MAXIMUM: Final = re.compile(r"(\d+(?:\.\d+)?)\s*% of maximum")
_RATE_EXAMPLES: Final = 'write for example 500 or "80 % of maximum"'


def _read_rates(value: object) -> tuple[Rate, ...]:
    """One rate, or a list of different ones."""
    if not isinstance(value, list):
        return (_read_rate(value),)
    if not value:
        raise WrongValueError("the list of rates is empty", _RATE_EXAMPLES)
    rates = tuple(_read_rate(item) for item in value)
    if len(set(rates)) < len(rates):
        raise WrongValueError("a rate is listed twice", "take one of them out")
    return rates


def _read_rate(value: object) -> Rate:
    if not isinstance(value, str):
        return Rate(fixed=_read_fixed_rate(value))
    match = _SHARE_OF_MAXIMUM.fullmatch(value.strip())
    if match is None:
        raise WrongValueError(f"{value!r} is not a rate", _RATE_EXAMPLES)
    percent = float(match[1])
    if not 0 < percent <= 100:  # noqa: PLR2004 - percent
        what = f"{percent:g} % of maximum cannot be kept" if percent else "a rate cannot be 0 % of maximum"
        raise WrongValueError(what, 'write a share above 0 and at most 100 %, such as "80 % of maximum"')
    return Rate(share=percent / 100)


def _read_fixed_rate(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        what = "a rate is a number of transactions per second above zero"
        raise WrongValueError(what, "write for example 500, or leave it out")
    return float(value)


def count(noun: str, low: int, high: int | None = None) -> Kind[int]:
    """Integers within limits."""
    allowed = f"write an integer from {low} to {high}" if high is not None else f"write an integer of at least {low}"

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise WrongValueError(f"{noun} must be an integer, not {kind_of(value)}", allowed)
        if value < low or (high is not None and value > high):
            raise WrongValueError(f"{noun} cannot be {value}", allowed)
        return value

    return Kind(read, {"type": "integer", "minimum": low, **({} if high is None else {"maximum": high})})


def one_or_list(noun: str, one: Kind[_T], item: str = "integer") -> Kind[tuple[_T, ...]]:
    """One value, or a list of different ones; `item` is what each is called."""

    def read(value: object) -> tuple[_T, ...]:
        if not isinstance(value, list):
            return (one.read(value),)
        if not value:
            raise WrongValueError(f"the list of {noun} is empty", f"write at least one {item}")
        numbers = tuple(one.read(item) for item in value)
        double = next((number for number, times in Counter(numbers).items() if times > 1), None)
        if double is not None:
            raise WrongValueError(f"{double} is listed twice in {noun}", "take one of them out")
        return numbers

    listed = {"type": "array", "minItems": 1, "uniqueItems": True, "items": one.schema}
    return Kind(read, {"anyOf": [one.schema, listed]})


def choice(noun: str, choices: type[_Choice] | tuple[_Choice, ...]) -> Kind[_Choice]:
    """One of a few words."""
    known = {str(word): word for word in choices}  # type: ignore[union-attr]

    def read(value: object) -> _Choice:
        if not isinstance(value, str):
            what = f"{noun} must be a string, not {kind_of(value)}"
            raise WrongValueError(what, f"allowed: {', '.join(known)}")
        if value not in known:
            raise WrongValueError(f"{value!r} is not a valid {noun}", suggest(value, known))
        return known[value]

    return Kind(read, {"type": "string", "enum": list(known)})


def or_auto(kind: Kind[_T]) -> Kind[_T | None]:
    """A kind of value that may also be "auto", read as None."""
    auto = kind.schema if kind.schema["type"] == "string" else {"anyOf": [kind.schema, {"const": "auto"}]}
    return Kind(lambda value: None if value == "auto" else kind.read(value), auto)


_SCALARS: Final = {"type": ["string", "integer", "number", "boolean"]}
_DURATION: Final = {"type": "string", "examples": ["60s", "10m", "1h30m"]}
_COPY_SCHEMA: Final = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["file"],
            "properties": {"file": {"type": "string"}, "options": {"type": "string"}},
        },
    ]
}
_LEVELS: Final = (
    {"type": "array", "minItems": 1, "items": _SCALARS},
    {"type": "object", "minProperties": 1, "additionalProperties": _SCALARS},
)
_BASELINES: Final = ({"type": "string"}, {"type": "object", "minProperties": 1})

SCALAR: Final = Kind(_read_scalar, _SCALARS)
TEXT: Final = Kind(_read_text, {"type": "string", "minLength": 1})
FLAG: Final = Kind(_read_flag, {"type": "boolean"})
TABLE: Final = Kind(_read_table, {"type": "object"})
WORDS: Final = Kind(_read_words, {"type": "array", "minItems": 1, "items": {"type": "string"}})
SIZE: Final = Kind(_read_size, {"type": "string", "examples": ["512MB", "3 GB"]})
COPIES: Final = Kind(_read_copies, {"type": "object", "additionalProperties": _COPY_SCHEMA})
COMMANDS: Final = Kind(_read_commands, {"type": "object", "additionalProperties": {"type": "string"}})
LEVELS: Final = Kind(_read_levels, {"anyOf": list(_LEVELS)})
BASELINE: Final = Kind(_read_baseline, {"anyOf": list(_BASELINES), "examples": [{"server": "16"}]})
SECONDS: Final = Kind(_read_seconds, _DURATION)
RUN: Final = Kind(_read_run, _DURATION)
WARMUP: Final = or_auto(Kind(_read_duration, _DURATION))
THRESHOLD: Final = Kind(_read_threshold, {"type": ["string", "number"], "examples": ["3 %"]})
OBJECTIVE: Final = Kind(_read_objective, {"type": "string", "pattern": "<", "examples": ["p99 < 20ms"]})
_RATES: Final = (
    {"type": "number", "exclusiveMinimum": 0},
    {"type": "string", "pattern": "% of maximum", "examples": ["80 % of maximum"]},
)
RATE: Final = Kind(
    _read_rates,
    {"anyOf": [*_RATES, {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"anyOf": list(_RATES)}}]},
)
