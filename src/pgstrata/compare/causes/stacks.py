"""CPU time of functions and their call paths in two environments, block by block, and which changes exceed chance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import fmean, variance
from typing import Final

from pgstrata.model.attribution import RunStacks
from pgstrata.stats.moderated import moderated_error
from pgstrata.stats.student import two_sided_point

LEVEL: Final = 0.0027
"""A change that chance makes as seldom is resolved, three standard errors of a normal value: there are hundreds."""
MOST_DEPTH: Final = 60
_FEWEST_BLOCKS: Final = 2

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuChange:
    """CPU seconds per transaction: means over the blocks, their difference and its standard error.

    `limit`: what a difference has to be beyond, so that chance makes it as seldom as `LEVEL` says.
    """

    value: float
    reference: float
    error: float
    limit: float

    @property
    def difference(self) -> float:
        """Environment minus reference."""
        return self.value - self.reference

    @property
    def resolved(self) -> bool:
        """Whether more than noise is in the difference."""
        return abs(self.difference) > self.limit and self.difference != 0


@dataclass(slots=True)
class _Counts:
    """Seconds per transaction by block, and the sum of their Poisson variances, of both sides."""

    value: dict[int, float] = field(default_factory=dict)
    reference: dict[int, float] = field(default_factory=dict)
    variance: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flames:
    """Two environments in one cell: `whole` is all, `inclusive` by path, `own` by function without what it called."""

    blocks: int
    samples: int
    whole: CpuChange
    inclusive: Mapping[Path, CpuChange]
    own: Mapping[str, CpuChange]


def compare_stacks(runs: Iterable[RunStacks], references: Iterable[RunStacks]) -> Flames | None:
    """Compare stacks in the blocks that both have; None with fewer than two.

    As with the parts of an account (`diagnosis.attribution`), a frame's variance between blocks is averaged with what
    is known of it beforehand: the variance of counting (Poisson), which is its minimum, and the variance of all
    functions in this comparison. A few blocks alone say too little about a single frame.
    """
    sides = [{run.block: run for run in side if run.stacks} for side in (runs, references)]
    blocks = sorted(sides[0].keys() & sides[1].keys())
    if len(blocks) < _FEWEST_BLOCKS:
        return None
    inclusive: dict[Path, _Counts] = {}
    own: dict[str, _Counts] = {}
    samples = 0
    for place, side in enumerate(sides):
        for block in blocks:
            run = side[block]
            for stack, count in run.stacks.items():
                path = tuple(stack.split(";")[:MOST_DEPTH])
                samples += count
                for depth in range(len(path) + 1):
                    _add(inclusive.setdefault(path[:depth], _Counts()), place, block, count, run.seconds)
                _add(own.setdefault(path[-1], _Counts()), place, block, count, run.seconds)
    scatter = _Scatter.of([*own.values(), inclusive[()]], blocks)
    changes = {path: scatter.measure(counts) for path, counts in inclusive.items() if path}
    changes[()] = scatter.measure_whole(inclusive[()])
    return Flames(
        blocks=len(blocks),
        samples=samples,
        whole=changes[()],
        inclusive=changes,
        own={name: scatter.measure(counts) for name, counts in own.items()},
    )


def _add(counts: _Counts, place: int, block: int, count: int, seconds: float) -> None:
    side = counts.reference if place else counts.value
    side[block] = side.get(block, 0.0) + count * seconds
    counts.variance += count * seconds**2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scatter:
    """How functions of a comparison scatter between blocks.

    `fluctuation`: by which share of themselves beyond their counts, squared. `together`: mostly all of them alike, as
    on a host that is slow at times: then many functions tell no more of it than one.
    """

    blocks: Sequence[int]
    fluctuation: float
    together: bool

    @staticmethod
    def of(counts: Sequence[_Counts], blocks: Sequence[int]) -> _Scatter:
        """From functions, the whole as the last."""
        *parts, whole = ((_differences(each, blocks), each.variance / len(blocks), each) for each in counts)
        sizes = sum(_size(each, blocks) for _, _, each in parts)
        beyond = sum(variance(differences) - counting for differences, counting, _ in parts)
        together = _size(whole[2], blocks)
        own = beyond / sizes if sizes else 0.0
        shared = (variance(whole[0]) - whole[1]) / together if together else 0.0
        return _Scatter(blocks=blocks, fluctuation=max(own, shared, 0.0), together=shared >= own)

    def measure(self, counts: _Counts) -> CpuChange:
        """The means of a frame or function, and how sure their difference is."""
        between = variance(_differences(counts, self.blocks))
        counting = counts.variance / len(self.blocks)
        error, freedom = moderated_error(
            between, counting, self.fluctuation, _size(counts, self.blocks), len(self.blocks)
        )
        return self._judge(counts, error, len(self.blocks) - 1 if self.together else freedom)

    def measure_whole(self, counts: _Counts) -> CpuChange:
        """The change of all functions together; its variance is not averaged with any other."""
        scatter = max(variance(_differences(counts, self.blocks)), counts.variance / len(self.blocks))
        return self._judge(counts, math.sqrt(scatter / len(self.blocks)), len(self.blocks) - 1)

    def _judge(self, counts: _Counts, error: float, freedom: int) -> CpuChange:
        return CpuChange(
            value=_mean(counts.value, self.blocks),
            reference=_mean(counts.reference, self.blocks),
            error=error,
            limit=_errors(freedom) * error,
        )


@lru_cache
def _errors(freedom: int) -> float:
    """Standard errors from which on a difference is resolved."""
    return two_sided_point(LEVEL, freedom)


def _mean(side: Mapping[int, float], blocks: Sequence[int]) -> float:
    return fmean(side.get(block, 0.0) for block in blocks)


def _size(counts: _Counts, blocks: Sequence[int]) -> float:
    """The squares of both means."""
    return _mean(counts.value, blocks) ** 2 + _mean(counts.reference, blocks) ** 2


def _differences(counts: _Counts, blocks: Sequence[int]) -> list[float]:
    return [counts.value.get(block, 0.0) - counts.reference.get(block, 0.0) for block in blocks]
