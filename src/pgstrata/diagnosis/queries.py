"""More calls or slower calls: what each statement adds to a difference between two environments, exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import stdev
from typing import Final

from pgstrata.model.attribution import ValueInterval
from pgstrata.model.queries import QueryChange, QueryCount, QueryCounts
from pgstrata.stats.student import two_sided_point

_LEVEL: Final = 0.05


def split_change(calls: float, latency: float, reference_calls: float, reference_latency: float) -> tuple[float, float]:
    """The two shares of calls x latency minus the same of the reference: by the calls, and by their latency.

    The midpoint form: the difference of one factor times the mean of the other. Their sum is exact, because
    ab - cd = (a - c)(b + d)/2 + (b - d)(a + c)/2; exchanging the sides turns both signs.

    Args:
        calls: per transaction.
        latency: seconds of one call.
        reference_calls: of the other side.
        reference_latency: of the other side.
    """
    by_calls = (calls - reference_calls) * (latency + reference_latency) / 2
    by_latency = (latency - reference_latency) * (calls + reference_calls) / 2
    return by_calls, by_latency


def query_changes(pairs: Sequence[tuple[QueryCounts, QueryCounts]]) -> tuple[QueryChange, ...]:
    """Each statement's share over the blocks, the largest first.

    A statement that one side never gave has the other's latency there: all of its share is by the calls.

    Args:
        pairs: of each block what was counted in the environment, and in its reference.
    """
    texts = dict.fromkeys(query.query for pair in pairs for side in pair for query in side.queries)
    sides = [tuple({query.query: query for query in side.queries} for side in pair) for pair in pairs]
    found = [_change(text, [(ours.get(text), theirs.get(text)) for ours, theirs in sides]) for text in texts]
    return tuple(sorted(found, key=lambda change: -abs(change.difference)))


def _change(text: str, pairs: Sequence[tuple[QueryCount | None, QueryCount | None]]) -> QueryChange:
    calls, seconds = _means([ours for ours, _ in pairs])
    reference_calls, reference_seconds = _means([theirs for _, theirs in pairs])
    reference_latency = reference_seconds / reference_calls if reference_calls else seconds / calls
    latency = seconds / calls if calls else reference_latency
    by_calls, by_latency = split_change(calls, latency, reference_calls, reference_latency)
    return QueryChange(
        query=text, calls=calls, reference_calls=reference_calls, latency=latency,
        reference_latency=reference_latency, by_calls=by_calls, by_latency=by_latency, interval=_interval(pairs),
    )  # fmt: skip


def _interval(pairs: Sequence[tuple[QueryCount | None, QueryCount | None]]) -> ValueInterval | None:
    """Student's t over the differences of the blocks."""
    if len(pairs) < 2:  # noqa: PLR2004 - one difference does not scatter
        return None
    differences = [_seconds(ours) - _seconds(theirs) for ours, theirs in pairs]
    centre, spread = math.fsum(differences) / len(differences), stdev(differences)
    half = two_sided_point(_LEVEL, len(differences) - 1) * spread / math.sqrt(len(differences))
    return ValueInterval(low=centre - half, high=centre + half)


def _seconds(count: QueryCount | None) -> float:
    return count.seconds if count is not None else 0.0


def _means(counts: Sequence[QueryCount | None]) -> tuple[float, float]:
    """Calls and seconds per transaction; a block without the statement has none."""
    there = [count for count in counts if count is not None]
    calls, seconds = (math.fsum(count.calls for count in there), math.fsum(count.seconds for count in there))
    return calls / len(counts), seconds / len(counts)
