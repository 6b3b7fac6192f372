"""What all JSON documents share: the fields of a comparison, numbers that may be none, and how a document is written.

Fields are added, never changed, within one schema number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pgstrata.model.answer import AxisStep, Comparison, Interval, OrderedAxis, ResultWarning
from pgstrata.units import Direction

SCHEMA: Final = 1


def render_document(document: Mapping[str, Any]) -> str:
    """The document as text.

    Raises:
        ValueError: a number is none, and nobody made null of it.
    """
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def number_field(value: float | None) -> float | None:
    """The number, None where it is none."""
    return value if value is not None and math.isfinite(value) else None


def interval_field(interval: Interval | None) -> list[float] | None:
    """Both ends, None where one of them is no number."""
    if interval is None or not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return None
    return [interval.low, interval.high]


def warning_fields(warnings: Iterable[ResultWarning]) -> list[dict[str, str]]:
    """Code and sentence of each."""
    return [{"code": warning.code, "text": warning.text} for warning in warnings]


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
        "verdict": item.verdict.value,
        "effect": number_field(item.effect),
        "interval": interval_field(item.interval),
        "equivalence_interval": interval_field(item.equivalence_interval),
        "confidence": item.confidence,
        "level": item.level,
        "lane": item.lane.value,
        "repeated_p": number_field(item.repeated_p),
        "adjusted_p": number_field(item.adjusted_p),
        "blocks": item.blocks,
        "planned_blocks": item.planned_blocks,
        "decided_at": item.decided_at,
        "smallest_visible_effect": visible,
        "runs": item.runs,
        "invalid": item.invalid,
        "value": number_field(item.value),
        "baseline_value": number_field(item.baseline_value),
        "exploratory": item.exploratory,
        "control": item.control,
        "warnings": warning_fields(item.warnings),
    }


def axis_fields(axis: OrderedAxis, *, cell: Mapping[str, Any] | str) -> dict[str, Any]:
    """An ordered axis; `cell` as in `comparison_fields`."""
    return {
        "factor": axis.factor,
        "levels": list(axis.levels),
        "cell": cell,
        "metric": axis.metric,
        "steps": [_step_fields(step) for step in axis.steps],
        "p": number_field(axis.p),
        "smallest_p": number_field(axis.smallest_p),
        "trend_p": number_field(axis.trend_p),
        "blocks": axis.blocks,
    }


def _step_fields(step: AxisStep) -> dict[str, Any]:
    return {
        "before": step.before,
        "after": step.after,
        "effect": number_field(step.effect),
        "interval": interval_field(step.interval),
        "p": number_field(step.p),
    }
