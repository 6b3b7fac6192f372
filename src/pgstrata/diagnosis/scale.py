"""Windows in a unit in which squares of their times can be computed, whatever a study holds. Pure.

No transaction takes 1e60 s or 1e-60 s, but a damaged study or one from elsewhere can say so. Squares of such times
would be too large for a floating-point number, or nothing. Windows with usual times stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pgstrata.diagnosis.account import Seen
from pgstrata.model.attribution import Account, Attribution, Contribution, ValueInterval

_LEAST: Final = 1e-60
_MOST: Final = 1e60

Sides = Sequence[Sequence[Seen]]


def choose_unit(sides: Sides) -> float:
    """Seconds of the unit for all windows of a comparison: 1, unless a time is far from what any machine shows."""
    times = [abs(time) for side in sides for seen in side for time in (seen.seconds, seen.cpu, seen.queue) if time]
    if all(_LEAST <= time <= _MOST or not math.isfinite(time) for time in times):
        return 1.0
    return max(time for time in times if math.isfinite(time))


def in_unit(sides: Sides, unit: float) -> tuple[tuple[Seen, ...], ...]:
    """The same windows with their times in that unit; a time of a transaction is at least 1e-60 of it."""
    if unit == 1.0:
        return tuple(map(tuple, sides))
    return tuple(tuple(_in_unit(seen, unit) for seen in side) for side in sides)


def _in_unit(seen: Seen, unit: float) -> Seen:
    cpu, queue = (None if time is None else time / unit for time in (seen.cpu, seen.queue))
    return replace(seen, seconds=max(_LEAST, seen.seconds / unit), cpu=cpu, queue=queue)


def account_in_seconds(account: Account, unit: float) -> Account:
    """An account of windows in a unit, in seconds again."""
    if unit == 1.0:
        return account
    rows = tuple(replace(row, seconds=row.seconds * unit) for row in account.rows)
    return replace(account, seconds=account.seconds * unit, rows=rows)


def attribution_in_seconds(found: Attribution, unit: float) -> Attribution:
    """An attribution of windows in a unit, in seconds again."""
    if unit == 1.0:
        return found
    parts, queries, rows, causes, processes = (
        tuple(_in_seconds(item, unit) for item in items)
        for items in (found.parts, found.queries, found.rows, found.causes, found.processes)
    )
    return replace(
        found, total=_in_seconds(found.total, unit), parts=parts, queries=queries, rows=rows, causes=causes,
        processes=processes,
    )  # fmt: skip


def _in_seconds(item: Contribution, unit: float) -> Contribution:
    span = item.interval
    return replace(
        item,
        value=item.value * unit,
        reference=item.reference * unit,
        difference=item.difference * unit,
        interval=None if span is None else ValueInterval(low=span.low * unit, high=span.high * unit),
    )
