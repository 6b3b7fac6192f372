"""Several comparisons at once: headlines with Holm's step-down while stopping, adjusted p values of cells.

Sources: Holm 1979 (step-down); Jennison & Turnbull 1999, chapter 9 (repeated intervals are valid at any stopping time,
so Holm's procedure on them is too); Benjamini & Hochberg 1995.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pgstrata.model.answer import Verdict
from pgstrata.stats.boundaries import ALPHA, GRID, ROUNDING, Boundaries, Boundary
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.rule import Decision, Rule, check_samples, common_boundaries, make_decisions
from pgstrata.stats.sequence import Looks, critical_row, look_at_all

_DIFFERENCES: Final = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceSeries:
    """The differences of one comparison with the numbers of their blocks, ascending; d has shape (len(blocks),)."""

    blocks: tuple[int, ...]
    d: FloatArray

    def __post_init__(self) -> None:
        if len(self.blocks) != len(self.d) or any(a >= b for a, b in zip(self.blocks, self.blocks[1:], strict=False)):
            raise ValueError("each difference has its block, and block numbers ascend")


def decide_family(members: Sequence[DifferenceSeries], rules: Sequence[Rule]) -> tuple[Decision, ...]:
    """Headlines of one study, with a look at all undecided ones after each block.

    A difference is looked for at alpha / m, rounded down to the grid, m being the number of members; each difference
    found leaves alpha / (m - found) to the rest, at the same look too, so that no verdict is lost afterwards.
    Equivalence is looked for at its own level, uncorrected, and frees no level. A member without new blocks still
    profits from a level that has risen.

    Args:
        members: the comparisons, in any order.
        rules: one for each member; what follows a rule's last block is ignored.

    Returns:
        Decisions in the order of members; `alpha` is the level at the decision, or the one reached at the end.

    Raises:
        ValueError: a difference is not finite.
    """
    return decide_families([members], [rules])[0]


def decide_families(
    families: Sequence[Sequence[DifferenceSeries]], rules: Sequence[Sequence[Rule]]
) -> tuple[tuple[Decision, ...], ...]:
    """`decide_family` of many families, whose looks are computed together."""
    flat_rules = [rule for family in rules for rule in family]
    flat = [series for family in families for series in family]
    arrays = check_samples([series.d[: rule.last] for series, rule in zip(flat, flat_rules, strict=True)])
    looks = look_at_all(arrays, np.array([rule.delta for rule in flat_rules], dtype=np.float64))
    boundaries = common_boundaries(flat_rules)
    walks: list[_Member] = []
    for family, of_family in zip(families, rules, strict=True):
        begin = len(walks)
        members = [
            _Member(blocks=series.blocks[: rule.last], alpha=rule.alpha, row=begin + place)
            for place, (series, rule) in enumerate(zip(family, of_family, strict=True))
        ]
        _walk(members, looks, boundaries)
        walks.extend(members)
    levels = [_level(boundaries, member.alpha, member.share) for member in walks]
    decisions = make_decisions(arrays, flat_rules, levels, looks, [member.n for member in walks])
    placed = [replace(each, block=member.block) for each, member in zip(decisions, walks, strict=True)]
    return tuple(_split(placed, [len(family) for family in families]))


def step_down(
    number: int, decide: Callable[[Sequence[int], float], Sequence[Decision]], *, alpha: float = ALPHA
) -> tuple[Decision, ...]:
    """Holm's step-down at one look (Holm 1979): each difference found leaves alpha / (number - found) to the rest.

    Args:
        number: of headlines.
        decide: decisions on those of the given places at a level.
        alpha: the error probability that all share.
    """
    settled: dict[int, Decision] = {}
    while len(settled) < number:
        rest = [place for place in range(number) if place not in settled]
        decisions = dict(zip(rest, decide(rest, alpha / len(rest)), strict=True))
        found = {place: decision for place, decision in decisions.items() if decision.verdict in _DIFFERENCES}
        settled |= found or decisions
    return tuple(settled[place] for place in range(number))


@dataclass(slots=True, kw_only=True)
class _Member:
    """A comparison on its walk over the blocks; `share` is the number of members that share alpha with it."""

    blocks: tuple[int, ...]
    alpha: float
    row: int
    n: int = 0
    share: int = 1
    open: bool = True
    block: int | None = None

    def close(self, share: int, block: int) -> None:
        self.open, self.share, self.block = False, share, block


def _walk(members: Sequence[_Member], looks: Looks, boundaries: Boundaries) -> None:
    """Settles the members; afterwards `n` and `share` tell where and how."""
    left, equivalence = len(members), critical_row(boundaries.equivalence)
    for block in sorted({block for member in members for block in member.blocks}):
        for member in members:
            member.n += member.open and block in member.blocks
        undecided = [member for member in members if member.open and member.n]
        while crossed := [member for member in undecided if _crosses(member, left, looks, boundaries)]:
            for member in crossed:
                member.close(left, block)
            left -= len(crossed)
            undecided = [member for member in undecided if member.open]
        for member in undecided:
            if looks.edge[member.row, member.n - 1] <= equivalence[member.n - 1]:
                member.close(left, block)
    for member in members:
        if member.open:
            member.share = left


def _crosses(member: _Member, left: int, looks: Looks, boundaries: Boundaries) -> bool:
    critical = critical_row(_level(boundaries, member.alpha, left))[member.n - 1]
    return bool(looks.zero[member.row, member.n - 1] <= critical)


def _level(boundaries: Boundaries, alpha: float, share: int) -> Boundary:
    """The boundary of alpha / share; one that is never crossed where that is below the grid."""
    if alpha / share * (1 + ROUNDING) < GRID[-1]:
        return Boundary(alpha=alpha / share, first=boundaries.last + 1, last=boundaries.last, values=())
    return boundaries.at(alpha / share)


def _split(decisions: Sequence[Decision], sizes: Sequence[int]) -> Iterator[tuple[Decision, ...]]:
    begin = 0
    for size in sizes:
        yield tuple(decisions[begin : begin + size])
        begin += size


def benjamini_hochberg(p: Sequence[float | None]) -> tuple[float | None, ...]:
    """Adjusted p values in the order of p: the smallest false discovery rate at which each would be a discovery.

    None, a comparison that crossed no boundary, stays None and counts as a test that found nothing.

    Raises:
        ValueError: a p value is outside 0 to 1.
    """
    known = sorted((value, place) for place, value in enumerate(p) if value is not None)
    if any(not 0 <= value <= 1 for value, _ in known):
        raise ValueError("p values lie between 0 and 1")
    adjusted: list[float | None] = [None] * len(p)
    smallest = 1.0
    for rank in range(len(known), 0, -1):
        value, place = known[rank - 1]
        smallest = min(smallest, value * (len(p) / rank))
        adjusted[place] = smallest
    return tuple(adjusted)
