"""Readers of single values of an experiment file: durations, ratios, counts, lists of levels.

What belongs here: one TOML value to one typed value, or an error that names a remedy and never quotes a whole table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from pydantic_core import PydanticCustomError

from pgstrata.experiment.keys import suggest
from pgstrata.units import parse_duration, parse_ratio

Scalar = str | int | float | bool
Levels = tuple[tuple[str | None, Scalar], ...]

MAX_BLOCKS: Final = 24
MAX_SWEEP: Final = 64


def bad(what: str, remedy: str) -> PydanticCustomError:
    """A value that cannot stand there, with what could."""
    # The message goes through a template of pydantic's, which must not interpret braces in it.
    return PydanticCustomError("pgstrata", "{what}", {"what": what, "remedy": remedy})


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


def read_scalar(value: object) -> Scalar:
    """A string, integer, float or boolean."""
    if not isinstance(value, str | int | float | bool) or (isinstance(value, float) and not math.isfinite(value)):
        raise bad(f"{kind_of(value)} cannot stand here", "write one string, number or boolean")
    return value


def read_text(value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise bad(f"needs a text, not {kind_of(value) if value != '' else 'an empty one'}", 'write it in quotes: "..."')
    return value


def read_seconds(value: object) -> float:
    """A duration that is longer than zero."""
    seconds = _seconds(value)
    if seconds <= 0:
        raise bad("a duration must be longer than zero", 'write for example "60s"')
    return seconds


def read_run(value: object) -> float:
    """The length of a run: whole seconds, because that is what drivers measure."""
    seconds = read_seconds(value)
    if seconds < 1 or seconds != int(seconds):
        raise bad("a run lasts whole seconds, at least one", 'write for example "60s"')
    return seconds


def read_warmup(value: object) -> float | None:
    """The length of the warm-up, or None for "auto"."""
    return None if value == "auto" else _seconds(value)


def _seconds(value: object) -> float:
    if not isinstance(value, str):
        raise bad(f"needs a duration, not {kind_of(value)}", 'write it with its unit, in quotes: "60s", "10m", "1h30m"')
    try:
        return parse_duration(value)
    except ValueError:
        raise bad(f"{value!r} is not a duration", 'write it with its unit: "60s", "10m", "1h30m"') from None


def read_threshold(value: object) -> float:
    """A practical difference as a ratio between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise bad(f"needs a ratio, not {kind_of(value)}", 'write for example "3 %"')
    try:
        ratio = parse_ratio(value) if isinstance(value, str) else float(value)
    except ValueError:
        raise bad(f"{value!r} is not a ratio", 'write for example "3 %" or 0.03') from None
    if not 0 < ratio < 1:
        raise bad(f"a threshold of {ratio * 100:g} % makes no sense", 'write one between 0 and 100 %, such as "3 %"')
    return ratio


def read_rate(value: object) -> float | None:
    """Transactions per second; None is not written but left out."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise bad("a rate is a number of transactions per second above zero", "write for example 500, or leave it out")
    return float(value)


def read_count(noun: str, low: int, high: int | None = None) -> Callable[[object], int]:
    """A reader of integers within limits."""

    def read(value: object) -> int:
        allowed = f"from {low} to {high}" if high is not None else f"of at least {low}"
        if isinstance(value, bool) or not isinstance(value, int):
            raise bad(f"{noun} must be an integer, not {kind_of(value)}", f"write an integer {allowed}")
        if value < low or (high is not None and value > high):
            raise bad(f"{noun} cannot be {value}", f"write an integer {allowed}")
        return value

    return read


def read_counts(noun: str) -> Callable[[object], tuple[int, ...]]:
    """A reader of one integer of at least 1, or of a list of different ones."""
    one = read_count(noun, 1)

    def read(value: object) -> tuple[int, ...]:
        if not isinstance(value, list):
            return (one(value),)
        if not value:
            raise bad(f"the list of {noun} is empty", "write at least one integer")
        numbers = tuple(one(item) for item in value)
        double = next((number for number in numbers if numbers.count(number) > 1), None)
        if double is not None:
            raise bad(f"{double} stands twice in the list of {noun}", "take one of them out")
        return numbers

    return read


def read_clients(value: object) -> tuple[int, ...]:
    """One number of clients, a list, or a sweep {from, to, steps, shape}."""
    if not isinstance(value, dict):
        return read_counts("clients")(value)
    unknown = [key for key in value if key not in {"from", "to", "steps", "shape"}]
    if unknown:
        raise bad(f"unknown key {unknown[0]!r} in clients", suggest(unknown[0], ("from", "to", "steps", "shape")))
    missing = [key for key in ("from", "to", "steps") if key not in value]
    if missing:
        raise bad(
            f"clients needs {', '.join(missing)}",
            'write { from = 1, to = 64, steps = 7, shape = "exponential" }',
        )
    low, high = read_count("clients.from", 1)(value["from"]), read_count("clients.to", 1)(value["to"])
    steps = read_count("clients.steps", 2, MAX_SWEEP)(value["steps"])
    shape = read_choice("shape", ("exponential", "linear"))(value.get("shape", "exponential"))
    if high <= low:
        raise bad(f"clients cannot go from {low} to {high}", "write a `to` that is larger than `from`")
    return sweep(low, high, steps, shape)


def sweep(low: int, high: int, steps: int, shape: str) -> tuple[int, ...]:
    """`steps` integers from `low` to `high`, evenly spaced or in equal ratios; equal neighbours are merged."""
    parts = [step / (steps - 1) for step in range(steps)]
    if shape == "linear":
        values = [low + (high - low) * part for part in parts]
    else:
        values = [low * (high / low) ** part for part in parts]
    return tuple(dict.fromkeys(round(value) for value in values))


def read_threads(value: object) -> int | None:
    """A number of threads, or None for "auto"."""
    return None if value == "auto" else read_count("threads", 1)(value)


def read_flag(value: object) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise bad(f"must be true or false, not {kind_of(value)}", "write true or false, without quotes")
    return value


def read_choice(noun: str, choices: tuple[str, ...]) -> Callable[[object], str]:
    """A reader of one of a few words."""

    def read(value: object) -> str:
        if value in choices and isinstance(value, str):
            return value
        if isinstance(value, str):
            raise bad(f"{value!r} is no {noun}", suggest(value, choices))
        raise bad(f"{noun} must be a string, not {kind_of(value)}", f"allowed: {', '.join(choices)}")

    return read


def read_levels(value: object) -> Levels:
    """A list of levels, or a table of named levels."""
    if isinstance(value, dict):
        levels: list[tuple[str | None, Scalar]] = [(name, read_scalar(item)) for name, item in value.items()]
    elif isinstance(value, list):
        levels = [(None, read_scalar(item)) for item in value]
    else:
        raise bad(f"a factor needs a list of levels, not {kind_of(value)}", 'write for example ["16", "18"]')
    if not levels:
        raise bad("a factor needs levels, and this list is empty", 'write for example ["16", "18"], or take it out')
    return tuple(levels)


def read_table(value: object) -> dict[str, Any]:
    """A table; its entries are read later."""
    if not isinstance(value, dict):
        raise bad(f"must be a table, not {kind_of(value)}", "write it as [name] with one key per line below it")
    return value


def read_baseline(value: object) -> str | dict[str, Any]:
    """The name of an environment, or a table of levels."""
    if not isinstance(value, str | dict) or not value:
        raise bad("the baseline is the levels of one environment", 'write for example { server = "16" }')
    return value
