"""Numbers of clients as an experiment file gives them: one, a list, or a sweep that may end where throughput falls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pgstrata.experiment.keys import WrongValueError, suggest
from pgstrata.experiment.values import Kind, choice, count, one_or_list, or_auto

MAX_SWEEP: Final = 64
# Connections that PostgreSQL can be set to accept
_MOST_CLIENTS: Final = 262_143
_SWEEP: Final = ("from", "to", "steps", "shape", "until")


def sweep(low: int, high: int, steps: int, shape: str) -> tuple[int, ...]:
    """`steps` integers from `low` to `high`, evenly spaced or in equal ratios; equal neighbours are merged."""
    parts = [step / (steps - 1) for step in range(steps)]
    if shape == "linear":
        values = [low + (high - low) * part for part in parts]
    else:
        values = [low * (high / low) ** part for part in parts]
    return tuple(dict.fromkeys(round(value) for value in values))


_LIST: Final = one_or_list("clients", count("clients", 1, _MOST_CLIENTS))
_FROM: Final = count("clients.from", 1, _MOST_CLIENTS)
_TO: Final = count("clients.to", 1, _MOST_CLIENTS)
_STEPS: Final = count("clients.steps", 2, MAX_SWEEP)
_FEWEST_RUNGS: Final = 3
_SHAPE: Final = choice("shape", ("exponential", "linear"))


_UNTIL: Final = choice("condition for until", ("throughput falls",))


@dataclass(frozen=True, slots=True)
class Clients:
    """Numbers of clients in the order of the file; `until_falls`: a ladder that ends where throughput falls."""

    numbers: tuple[int, ...] = ()
    until_falls: bool = False


def _read_clients(value: object) -> Clients:
    """One number of clients, a list, or a sweep {from, to, steps, shape, until}."""
    if not isinstance(value, dict):
        return Clients(_LIST.read(value))
    unknown = [key for key in value if key not in _SWEEP]
    if unknown:
        raise WrongValueError(f"unknown key {unknown[0]!r} in clients", suggest(unknown[0], _SWEEP))
    missing = [key for key in ("from", "to", "steps") if key not in value]
    if missing:
        remedy = 'write { from = 1, to = 64, steps = 7, shape = "exponential" }'
        raise WrongValueError(f"clients needs {', '.join(missing)}", remedy)
    low, high, steps = _FROM.read(value["from"]), _TO.read(value["to"]), _STEPS.read(value["steps"])
    shape = _SHAPE.read(value.get("shape", "exponential"))
    if high <= low:
        what = f"clients cannot go from {low} to {high}"
        raise WrongValueError(what, "write a `to` that is larger than `from`")
    numbers = sweep(low, high, steps, shape)
    if "until" not in value:
        return Clients(numbers)
    _UNTIL.read(value["until"])
    if len(numbers) < _FEWEST_RUNGS:
        what = f"a ladder of {len(numbers)} numbers of clients is too short for until"
        raise WrongValueError(what, f"use at least {_FEWEST_RUNGS} steps, or take out until")
    return Clients(numbers, until_falls=True)


_SWEEP_SCHEMA: Final = {
    "type": "object",
    "additionalProperties": False,
    "required": ["from", "to", "steps"],
    "properties": {
        "from": _FROM.schema,
        "to": {**_TO.schema, "minimum": 2},
        "steps": _STEPS.schema,
        "shape": {**_SHAPE.schema, "default": "exponential"},
        "until": _UNTIL.schema,
    },
}
CLIENTS: Final = Kind(_read_clients, {"anyOf": [*_LIST.schema["anyOf"], _SWEEP_SCHEMA]})
THREADS: Final = or_auto(count("threads", 1, _MOST_CLIENTS))
