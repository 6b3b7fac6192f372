"""Plans of the same statements in two environments: which differ, and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from pgstrata.model.query_plans import PlanDifference, PlansCompared, PlanUse, QueryPlan

JIT: Final = "JIT"
"""The line of a shape that says that JIT would be used."""
_WORKERS: Final = " workers planned"
_ONE_WORKER: Final = "1 worker planned"


def compare_plans(uses: Iterable[PlanUse], *, environment: str, reference: str, cell: str) -> PlansCompared | None:
    """The usual plans of a cell's statements in an environment beside those in the reference.

    Statements are matched by their text. Plans differ by their shape alone, never by costs and estimates. None where
    one of both has no plans at all.
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
            found += _say(old[low:high], new[start:end])
    return tuple(found) or ("the same nodes are joined in another order",)


def _say(gone: Sequence[str], come: Sequence[str]) -> Iterator[str]:
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
