"""Which projections a page draws: all of them where there is room, else as many of each kind as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Final

from pgstrata.errors import UsageError
from pgstrata.report.projections.model import PAIR, Projection, UndrawnAxis
from pgstrata.report.sentences.names import name_factor

MOST_CHARTS: Final = 36
MOST_POINTS: Final = 1800
"""Points of all charts together: about 600 kB, so that a page of thousands of runs stays below 3 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindChoice:
    """The projections of one kind that are drawn, the largest share of the matrix first, and how many there are."""

    axis: str
    series: str
    drawn: tuple[Projection, ...]
    of: int

    @property
    def kind(self) -> tuple[str, str]:
        """As of its projections."""
        return self.axis, self.series


def choose_projections(
    projections: Sequence[Projection],
    *,
    along: Sequence[str] = (),
    charts: int = MOST_CHARTS,
    points: int = MOST_POINTS,
) -> tuple[KindChoice, ...]:
    """Kind by kind; one of each kind in turn until `charts` or `points` are reached.

    Args:
        projections: all there are.
        along: axes that the reader asked for: all of their projections are drawn, and no others.
        charts: most charts.
        points: most points of all charts together.
    """
    kinds: dict[tuple[str, str], list[Projection]] = {}
    for each in projections:
        kinds.setdefault(each.kind, []).append(each)
    drawn: list[Projection] = []
    left = points
    for each in chain.from_iterable(zip_longest(*kinds.values())):
        if each is None or (along and each.axis not in along):
            continue
        if along or (len(drawn) < charts and each.points <= left) or not drawn:
            drawn.append(each)
            left -= each.points
    return tuple(
        KindChoice(axis=axis, series=series, drawn=tuple(each for each in found if each in drawn), of=len(found))
        for (axis, series), found in kinds.items()
    )


def axis_names(projections: Sequence[Projection]) -> tuple[str, ...]:
    """All axes, each once, as people call them."""
    return tuple(dict.fromkeys(name_factor(each.axis) for each in projections))


def find_axes(
    projections: Sequence[Projection], asked: Sequence[str], undrawn: Sequence[UndrawnAxis] = ()
) -> tuple[str, ...]:
    """The axes that are `asked` for, by either form of their names.

    Args:
        projections: all that can be drawn.
        asked: what the reader wrote.
        undrawn: axes of the study that cannot be drawn.

    Raises:
        UsageError: there is no such axis, or it cannot be drawn; the error says why.
    """
    names = {form: each.axis for each in projections for form in (each.axis, name_factor(each.axis))}
    lacking = {form: each for each in undrawn for form in (each.axis, name_factor(each.axis))}
    for each in asked:
        if each not in names:
            known = ", ".join(axis_names(projections))
            remedy = f"use one of {known}" if known else "no axis of this study has two levels: leave the option out"
            said = say_undrawn(lacking[each]) if each in lacking else f"this study has no axis {each!r}"
            raise UsageError(said, where="--along", remedy=remedy)
    return tuple(dict.fromkeys(names[each] for each in asked))


def say_undrawn(axis: UndrawnAxis) -> str:
    """Why an axis has no chart, as an error says it."""
    name = name_factor(axis.axis)
    if len(axis.levels) < PAIR:
        level = axis.levels[0] if axis.levels else "none"
        return f"{name} has one level in this study ({level}), so nothing can be drawn along it"
    return f"no chart along {name}: no two environments or cells differ in it alone, so it would show other differences"
