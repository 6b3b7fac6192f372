"""The table [synthetic]: values that are declared instead of measured, by the kernel that was found running."""

from __future__ import annotations

import re
from typing import Final

from pgstrata.experiment.keys import WrongValueError
from pgstrata.experiment.values import Kind, kind_of
from pgstrata.model.synthetic import Synthetic
from pgstrata.units import parse_ratio

_KEYS: Final = ("kernel", "change", "scatter")
_REMEDY: Final = 'write { kernel = "6.12", change = "-9 %", scatter = "1 %" }'
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+[A-Za-z0-9._+-]*")
_SHORT: Final = re.compile(r"^(\d+\.\d+)(?=-|$)")
_MOST_SCATTER: Final = 0.5


def read_synthetic(value: object) -> Synthetic:
    """The declared values; WrongValueError if they are not valid."""
    if not isinstance(value, dict):
        raise WrongValueError(f"must be a table, not {kind_of(value)}", _REMEDY)
    if not {"kernel", "change"} <= value.keys() <= set(_KEYS):
        raise WrongValueError("needs kernel and change; besides these only scatter is allowed", _REMEDY)
    kernel = value["kernel"]
    if not isinstance(kernel, str) or not _VERSION.fullmatch(kernel):
        raise WrongValueError("kernel is not a version in quotes", _REMEDY)
    change, scatter = _read_ratio(value, "change"), _read_ratio(value, "scatter")
    if not -1 < change < 1 or not change:
        raise WrongValueError(f"a change of {change * 100:g} % is not between -100 and 100 %, or is 0", _REMEDY)
    if not 0 <= scatter < _MOST_SCATTER:
        raise WrongValueError(f"a scatter of {scatter * 100:g} % is not between 0 and 50 %", _REMEDY)
    # the tags v6.9-rc3 and v6.9 are the releases 6.9.0-rc3 and 6.9.0, of which the former comes first
    kernel = _SHORT.sub(r"\1.0", kernel)
    return Synthetic(kernel=kernel, factor=1 + change, scatter=scatter)


def _read_ratio(table: dict[str, object], key: str) -> float:
    given = table.get(key, "0 %")
    if not isinstance(given, str):
        raise WrongValueError(f"{key} is not a ratio in quotes", _REMEDY)
    sign, text = (-1, given[1:]) if given.startswith("-") else (1, given)
    try:
        return sign * parse_ratio(text.strip())
    except ValueError:
        raise WrongValueError(f"{key} is not a ratio", _REMEDY) from None


SYNTHETIC: Final = Kind(
    read_synthetic,
    {
        "type": "object",
        "properties": {key: {"type": "string"} for key in _KEYS},
        "required": ["kernel", "change"],
        "additionalProperties": False,
    },
)
