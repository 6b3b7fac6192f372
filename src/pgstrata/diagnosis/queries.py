"""Statements of two environments: more calls or slower calls, exactly; which plans differ, and how."""

import math
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from statistics import stdev
from typing import Final

from pgstrata.model.attribution import ValueInterval
from pgstrata.model.queries import QueryChange, QueryCount, QueryCounts
from pgstrata.model.query_plans import PlanDifference, PlansCompared, PlanUse, QueryPlan
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


JIT: Final = "JIT"
"""The line of a shape that says that JIT would be used."""
_WORKERS: Final = " workers planned"
_ONE_WORKER: Final = "1 worker planned"


def compare_plans(uses: Iterable[PlanUse], *, environment: str, reference: str, cell: str) -> PlansCompared | None:
    """The usual plans of a cell's statements in an environment beside those in the reference.

    Statements are matched by their text. Plans differ by their shape alone, never by costs and estimates. None where
    one of the two has no plans at all.
    """
    found = [use for use in uses if use.cell == cell]
    ours, theirs = _by_statement(found, environment), _by_statement(found, reference)
    if not ours or not theirs:
        return None
    both = [statement for statement in ours if statement in theirs]
    pairs = [(_usual(ours[statement]), _usual(theirs[statement])) for statement in both]
    sound = [(plan, other) for plan, other in pairs if not plan.error and not other.error]
    differences = tuple(
        PlanDifference(
            environment=environment, reference=reference, cell=cell, plan=plan, reference_plan=other,
            changes=describe_change(other.shape, plan.shape),
        )
        for plan, other in sound if plan.shape != other.shape
    )  # fmt: skip
    return PlansCompared(
        environment=environment,
        reference=reference,
        cell=cell,
        alike=len(sound) - len(differences),
        differences=differences,
        unsteady=tuple(text for text in both if len(ours[text]) > 1 or len(theirs[text]) > 1),
        unexplained=tuple(
            (plan.statement, plan.error or other.error) for plan, other in pairs if plan.error or other.error
        ),
    )


def _by_statement(uses: Iterable[PlanUse], environment: str) -> dict[str, list[PlanUse]]:
    found: dict[str, list[PlanUse]] = {}
    for use in uses:
        if use.environment == environment:
            found.setdefault(use.plan.statement, []).append(use)
    return found


def _usual(uses: Sequence[PlanUse]) -> QueryPlan:
    return max(uses, key=lambda use: use.runs).plan


def describe_change(before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    """What became of the lines of one shape in another one; indentation alone is no change of its own."""
    old, new = [line.strip() for line in before], [line.strip() for line in after]
    found: list[str] = []
    for kind, low, high, start, end in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind != "equal":
            found += _say_change(old[low:high], new[start:end])
    return tuple(found) or ("the same nodes are joined in another order",)


def _say_change(gone: Sequence[str], come: Sequence[str]) -> Iterator[str]:
    """Marks of their own apart; all nodes of a stretch in one sentence."""
    for text, was, is_ in (
        (JIT, JIT in gone, JIT in come),
        *((line, line in gone, line in come) for line in (*gone, *come) if line.endswith(_WORKERS)),
    ):
        if was != is_:
            yield (
                f"{text} {'is used' if is_ else 'is not used'}"
                if text == JIT
                else f"{'no longer ' if was else ''}{_ONE_WORKER if text.split()[0] == '1' else text}"
            )
    nodes = [[line for line in lines if line != JIT and not line.endswith(_WORKERS)] for lines in (gone, come)]
    if any(nodes):
        was_, now = (", ".join(lines) for lines in nodes)
        yield f"{was_} -> {now}" if was_ and now else f"no longer {was_}" if was_ else f"in addition {now}"
