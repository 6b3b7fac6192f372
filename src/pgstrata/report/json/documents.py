"""Fields common to all JSON documents, and how a document is written.

Fields are added, never changed, within one schema number.
"""

import json
import math
from collections.abc import Mapping
from enum import Enum
from operator import attrgetter
from typing import Any, Final

from pgstrata.model.answer import Interval
from pgstrata.model.attribution import ValueInterval

SCHEMA: Final = 1


def render_document(document: Mapping[str, Any]) -> str:
    """The document as text.

    Raises:
        ValueError: a number is none, and nobody made null of it.
    """
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def pick_fields(item: object, names: str) -> dict[str, Any]:
    """Attributes in this order, `names` separated by blanks; each is null where `item` is None.

    `runs=count.runs` reads `count.runs` and writes it as `runs`.
    """
    pairs = (name.partition("=") for name in names.split())
    found = {name: attrgetter(path or name) for name, _, path in pairs}
    return {name: None if item is None else _plain(get(item)) for name, get in found.items()}


def _plain(value: Any) -> Any:
    """The value in the terms of JSON."""
    match value:
        case Enum():
            return value.value
        case float():
            return value if math.isfinite(value) else None
        case Interval() | ValueInterval():
            ends = [value.low, value.high]
            return ends if all(map(math.isfinite, ends)) else None
        case tuple() | list():
            return [_plain(each) for each in value]
        case Mapping():
            return dict(value)
        case _:
            return value
