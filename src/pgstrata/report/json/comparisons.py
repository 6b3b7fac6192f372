"""Fields of comparisons and of ordered axes in JSON, doubts as sentences among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pgstrata.model.answer import Comparison, OrderedAxis
from pgstrata.model.doubts import Doubt
from pgstrata.report.json.fields import pick_fields
from pgstrata.report.sentences.findings import say_doubt
from pgstrata.units import Direction

_COMPARISON: Final = (
    "verdict effect interval equivalence_interval confidence level lane repeated_p adjusted_p blocks planned_blocks "
    "decided_at"
)


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
        "steps": [pick_fields(step, "before after effect interval p verdict") for step in axis.steps],
        **pick_fields(axis, "p smallest_p out_of_reach trend_p blocks"),
    }
