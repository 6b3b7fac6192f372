"""What all JSON documents share: the fields of a comparison, numbers that may be none, and how a document is written.

Fields are added, never changed, within one schema number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from enum import Enum
from operator import attrgetter
from typing import Any, Final

from pgstrata.model.answer import Comparison, Interval, OrderedAxis
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.doubts import Doubt
from pgstrata.report.sentences.findings import say_doubt
from pgstrata.units import Direction

SCHEMA: Final = 1
_COMPARISON: Final = (
    "verdict effect interval equivalence_interval confidence level lane repeated_p adjusted_p blocks planned_blocks "
    "decided_at"
)


def render_document(document: Mapping[str, Any]) -> str:
    """The document as text.

    Raises:
        ValueError: a number is none, and nobody made null of it.
    """
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def number_field(value: float | None) -> float | None:
    """The number, None where it is none."""
    return value if value is not None and math.isfinite(value) else None


def interval_field(interval: Interval | ValueInterval | None) -> list[float] | None:
    """Both ends, None where one of them is no number."""
    if interval is None or not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return None
    return [interval.low, interval.high]


def pick_fields(item: object, names: str) -> dict[str, Any]:
    """Attributes in this order, `names` parted by blanks; `runs=count.runs` is called otherwise in JSON.

    Without an item each is null.
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
            return number_field(value)
        case Interval() | ValueInterval():
            return interval_field(value)
        case tuple() | list():
            return [_plain(each) for each in value]
        case Mapping():
            return dict(value)
        case _:
            return value


def warning_fields(doubts: Iterable[Doubt]) -> list[dict[str, str]]:
    """Code and sentence of each."""
    return [{"code": doubt.code, "text": say_doubt(doubt)} for doubt in doubts]


def comparison_fields(
    item: Comparison,
    *,
    environment: Mapping[str, Any],
    reference: str,
    cell: Mapping[str, Any] | str,
    direction: Direction,
    visible: float | None = None,
) -> dict[str, Any]:
    """A comparison.

    Args:
        item: what was compared.
        environment: the environment, in full.
        reference: name of what it is compared with.
        cell: the cell, in full, or that it is all of them.
        direction: which values of the metric are better.
        visible: the smallest effect, as a share, that the comparison could have shown; None where nobody knows.
    """
    return {
        "environment": environment,
        "reference": reference,
        "cell": cell,
        "metric": item.metric,
        "direction": direction.value,
        **pick_fields(item, _COMPARISON),
        "smallest_visible_effect": visible,
        **pick_fields(item, "runs invalid value baseline_value exploratory control"),
        "warnings": warning_fields(item.warnings),
    }


def axis_fields(axis: OrderedAxis, *, cell: Mapping[str, Any] | str) -> dict[str, Any]:
    """An ordered axis; `cell` as in `comparison_fields`."""
    return {
        **pick_fields(axis, "factor levels"),
        "cell": cell,
        "metric": axis.metric,
        "steps": [pick_fields(step, "before after effect interval p") for step in axis.steps],
        **pick_fields(axis, "p smallest_p trend_p blocks"),
    }
