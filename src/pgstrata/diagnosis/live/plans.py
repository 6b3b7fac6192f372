"""Plans of statements in two windows of a live server: which changed, and which are not known. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pgstrata.diagnosis.queries import describe_change
from pgstrata.model.archive import ArchiveWindow, Span
from pgstrata.model.query_plans import LivePlans, PlanChange, SeenPlan

_BEYOND: Final = ("nodes beyond those that are kept differ",)


def compare_seen_plans(
    value: ArchiveWindow, reference: ArchiveWindow, order: Sequence[str], *, timed: bool = True
) -> LivePlans:
    """The plan of each statement in a window beside that in the comparison window.

    A window has the plan of a statement that was seen longest in it.

    Args:
        value: the window.
        reference: the comparison window.
        order: statements, those to be told first.
        timed: whether the windows are times of one server; otherwise nobody asks when a plan changed.
    """
    ours, theirs = _usual(value), _usual(reference)
    both = [statement for statement in ours if statement in theirs]
    changes = [
        _change(ours[statement], theirs[statement], timed=timed)
        for statement in both
        if ours[statement].plan.shape != theirs[statement].plan.shape
    ]
    places = {statement: place for place, statement in enumerate(order)}
    changes.sort(key=lambda change: places.get(change.statement, len(places)))
    unknown = {each.statement: each for each in value.plans if each.plan.problem and each.statement not in ours}
    return LivePlans(changes=tuple(changes), alike=len(both) - len(changes), unknown=tuple(unknown.values()))


def _usual(window: ArchiveWindow) -> Mapping[str, SeenPlan]:
    found: dict[str, SeenPlan] = {}
    for each in window.plans:
        other = found.get(each.statement)
        if not each.plan.problem and (other is None or _length(each, window.span) >= _length(other, window.span)):
            found[each.statement] = each
    return found


def _length(seen: SeenPlan, span: Span) -> int:
    return min(seen.last, span.end) - max(seen.first, span.begin)


def _change(value: SeenPlan, reference: SeenPlan, *, timed: bool) -> PlanChange:
    alike = value.plan.outline == reference.plan.outline
    earlier, later = sorted((value, reference), key=lambda seen: seen.first)
    return PlanChange(
        statement=value.statement,
        value=value,
        reference=reference,
        changes=_BEYOND if alike else describe_change(reference.plan.outline, value.plan.outline),
        after=earlier.last if timed else None,
        by=max(earlier.last, later.first) if timed else None,
    )
