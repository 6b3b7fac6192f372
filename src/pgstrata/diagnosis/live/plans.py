"""Plans of statements in two windows of a live server: which changed, and which are not known. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pgstrata.diagnosis.queries import describe_change
from pgstrata.model.archive import ArchiveWindow, Span
from pgstrata.model.query_plans import LivePlans, PlanChange, PlanSource, SeenPlan

_BEYOND: Final = ("nodes beyond those that are kept differ",)
_Key = tuple[str, PlanSource]
"""Statement, and where its plans come from: only plans of one source are compared."""


def compare_seen_plans(
    value: ArchiveWindow, reference: ArchiveWindow, order: Sequence[str], *, timed: bool = True
) -> LivePlans:
    """The plan of each statement in a window beside that in the comparison window.

    A window has the generic plan of a statement that was seen longest in it, and the plan that was logged most often.
    If both changed, the generic one is told.

    Args:
        value: the window.
        reference: the comparison window.
        order: statements, those to be told first.
        timed: whether the windows are times of one server; otherwise nobody asks when a plan changed.
    """
    ours, theirs = _usual(value), _usual(reference)
    both = [key for key in ours if key in theirs]
    changes: dict[str, PlanChange] = {}
    for key in sorted(both, key=lambda key: key[1] is not PlanSource.GENERIC):
        if ours[key].plan.shape != theirs[key].plan.shape:
            changes.setdefault(key[0], _change(ours[key], theirs[key], timed=timed))
    places = {statement: place for place, statement in enumerate(order)}
    known = {statement for statement, _ in ours}
    unknown = {each.statement: each for each in value.plans if each.plan.problem and each.statement not in known}
    return LivePlans(
        changes=tuple(sorted(changes.values(), key=lambda change: places.get(change.statement, len(places)))),
        alike=len({statement for statement, _ in both} - changes.keys()),
        unknown=tuple(unknown.values()),
    )


def _usual(window: ArchiveWindow) -> Mapping[_Key, SeenPlan]:
    found: dict[_Key, SeenPlan] = {}
    for each in window.plans:
        key = each.statement, each.source
        other = found.get(key)
        if not each.plan.problem and (other is None or _weight(each, window.span) >= _weight(other, window.span)):
            found[key] = each
    return found


def _weight(seen: SeenPlan, span: Span) -> float:
    """Seconds for which it was seen in the window; of a logged plan how often, as if it came evenly."""
    inside = min(seen.last, span.end) - max(seen.first, span.begin)
    if seen.source is PlanSource.GENERIC:
        return inside
    return seen.times * (inside + 1) / (seen.last - seen.first + 1)


def _change(value: SeenPlan, reference: SeenPlan, *, timed: bool) -> PlanChange:
    alike = value.plan.outline == reference.plan.outline
    earlier, later = sorted((value, reference), key=lambda seen: seen.first)
    told = timed and earlier.last < later.first
    return PlanChange(
        statement=value.statement,
        value=value,
        reference=reference,
        changes=_BEYOND if alike else describe_change(reference.plan.outline, value.plan.outline),
        after=earlier.last if told else None,
        by=later.first if told else None,
    )
