"""Statements of two windows: more calls, another mix, or slower calls. Pure."""

from __future__ import annotations

from typing import Final

from pgstrata.diagnosis.queries import split_change
from pgstrata.model.archive import ArchiveWindow, StatementUse
from pgstrata.model.explanation import CallsChange

_NOTHING: Final = StatementUse()


def change_calls(value: ArchiveWindow, reference: ArchiveWindow) -> tuple[CallsChange, ...]:
    """Each statement's part of the change, the largest first; nothing where one window was not counted.

    Statements count when they end, so the growth of demand is that of transactions in the same intervals.
    """
    if not value.counted or not reference.counted:
        return ()
    before, after = reference.transactions / reference.counted, value.transactions / value.counted
    growth = after / before if reference.transactions >= 1 else 1.0
    keys = dict.fromkeys((*value.statements, *reference.statements))
    found = [
        _change(
            key,
            (value.statements.get(key, _NOTHING), value.counted),
            (reference.statements.get(key, _NOTHING), reference.counted),
            growth,
        )
        for key in keys
    ]
    return tuple(sorted(found, key=lambda change: -abs(change.difference)))


def _change(
    key: str, value: tuple[StatementUse, float], reference: tuple[StatementUse, float], growth: float
) -> CallsChange:
    (ours, seconds), (theirs, reference_seconds) = value, reference
    calls, reference_calls = ours.calls / seconds, theirs.calls / reference_seconds
    # one that a window never gave has the other's latency there: all of its part is by its calls
    latency = _per_call(ours.seconds, ours) if ours.calls else _per_call(theirs.seconds, theirs)
    reference_latency = _per_call(theirs.seconds, theirs) if theirs.calls else latency
    by_calls, by_latency = split_change(calls, latency, reference_calls, reference_latency)
    by_demand = (growth - 1) * reference_calls * (latency + reference_latency) / 2
    return CallsChange(
        statement=key,
        calls=calls,
        reference_calls=reference_calls,
        latency=latency,
        reference_latency=reference_latency,
        by_demand=by_demand,
        by_mix=by_calls - by_demand,
        by_latency=by_latency,
        blocks_per_call=_per_call(ours.blocks_hit + ours.blocks_read, ours),
        reference_blocks_per_call=_per_call(theirs.blocks_hit + theirs.blocks_read, theirs),
    )


def _per_call(amount: float, use: StatementUse) -> float:
    return amount / use.calls if use.calls else 0.0
