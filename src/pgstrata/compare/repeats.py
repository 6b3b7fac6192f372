"""What looks wrong and is measured again in new blocks, and what became of it on the new data alone.

Two things look wrong: a point of a curve over clients that does not fit with the others, and a run far from the median
of its environment in a cell. Both are looked for when nothing of them is open any more, so that no verdict rests on
when somebody became suspicious: the blocks before that decide what is asked, the blocks from there on answer it. All of
it follows from the plan and the records, so that a resumed study asks for the same blocks.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np

from pgstrata.compare.arms import Arm, Arms, find_arm, sort_runs
from pgstrata.compare.progress import closing_blocks, open_pairs
from pgstrata.model.anomaly import Anomaly, AnomalyKind, Repeat
from pgstrata.model.experiment import Cell, Experiment
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.sources.runs import cut_runs, whole_runs
from pgstrata.stats.anomaly import (
    JUDGED_FROM,
    REPEAT_BLOCKS,
    Kink,
    find_kinks,
    judge_repeat,
    repeat_differences,
    run_limit,
)
from pgstrata.stats.ranks import FloatArray

FEWEST_POINTS: Final = 5
_RUN_BLOCKS: Final = 1
_WHOLE_BLOCKS: Final = 3

Pairs = frozenset[tuple[str, str]]
"""Environments and cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bent:
    """The curve of an environment with its kinks.

    `cells` are its usable points, fewest clients first, and `blocks` those that it was judged by. New blocks begin with
    `settled`; None while some of it is open.
    """

    environment: str
    cells: tuple[Cell, ...]
    blocks: tuple[int, ...]
    kinks: tuple[Kink, ...]
    settled: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stray:
    """Runs of an environment in a cell that lie more than `limit` (log units) from the `median`: `logs` by block.

    A run is followed by the next one of the same environment and cell; only where the last one strays a new block has
    to be made, which is `settled`, None while the cell is open.
    """

    environment: str
    cell: str
    median: float
    limit: float
    logs: dict[int, float]
    last: int
    settled: int | None


def wanted_pairs(plan: Plan, runs: Sequence[RunRecord], number: int) -> Pairs:
    """What block `number` has to hold: what is open still, and what is measured again.

    A curve with a kink takes seven new blocks at all its points, a run that strays in the last block of its cell one.
    Run by run this environment is measured alone: the new blocks are held against its own other points, which share the
    block with it, and compare it with nobody. In slices another environment, mostly the baseline, takes turns with it
    as before: what is up beside a server is part of its conditions.

    Args:
        plan: what was to be measured.
        runs: as for `open_pairs`; only blocks before `number` count.
        number: of the block, from 1.

    Raises:
        ValueError: a run is there twice.
    """
    doubts = _Doubts(plan, runs, number)
    wanted = set(doubts.opened(number))
    for bent in doubts.bent():
        if bent.settled is not None and bent.settled <= number < bent.settled + REPEAT_BLOCKS:
            wanted |= doubts.again(bent.environment, [cell.identity for cell in bent.cells])
    for stray in doubts.stray():
        if stray.settled == number and stray.last in stray.logs:
            wanted |= doubts.again(stray.environment, [stray.cell])
    return frozenset(wanted)


def find_anomalies(plan: Plan, runs: Sequence[RunRecord]) -> tuple[Anomaly, ...]:
    """What looks wrong, and what new blocks made of it: kinks first, then runs, the largest first.

    While a curve or a cell is open, what there is of it is judged, and nothing is called confirmed or transient that
    would need blocks after its end.

    Args:
        plan: what was to be measured.
        runs: what was measured so far, in any order.

    Raises:
        ValueError: a run is there twice.
    """
    number = max((run.block for run in runs), default=0) + 1
    doubts = _Doubts(plan, runs, number)
    arms = doubts.arms(number)
    kinks = [found for bent in doubts.bent() for found in _judge_kinks(plan, arms, bent)]
    strays = [found for stray in doubts.stray() for found in _judge_runs(plan, arms, stray)]
    return tuple(sorted([*kinks, *strays], key=lambda one: (one.kind is AnomalyKind.RUN, -abs(math.log(one.effect)))))


def find_curves(experiment: Experiment) -> tuple[tuple[Cell, ...], ...]:
    """Cells that differ in nothing but the number of clients (and threads), fewest first; at least five of them."""
    groups: list[list[Cell]] = []
    for cell in experiment.cells:
        alike = next((group for group in groups if _without_clients(group[0]) == _without_clients(cell)), None)
        if alike is None:
            groups.append([cell])
        else:
            alike.append(cell)
    curves = (tuple(sorted(group, key=lambda cell: cell.clients)) for group in groups)
    return tuple(curve for curve in curves if len(curve) >= FEWEST_POINTS)


def _without_clients(cell: Cell) -> Cell:
    return replace(cell, clients=1, threads=1)


# ------------------------------------------------------------------------------------------------ what looks wrong


class _ArmsBefore(Mapping[tuple[str, str], Arm]):
    """The arms of the runs before a block, each sorted when it is asked for: of many blocks few are."""

    def __init__(
        self, runs: Mapping[tuple[str, str], Sequence[RunRecord]], block: int, metrics: frozenset[str]
    ) -> None:
        self._runs, self._block, self._metrics = runs, block, metrics
        self._sorted: dict[tuple[str, str], Arm] = {}

    def __getitem__(self, key: tuple[str, str]) -> Arm:
        if key not in self._sorted:
            runs = self._runs.get(key, ())
            self._sorted |= sort_runs([run for run in runs if run.block < self._block], self._metrics)
        return self._sorted[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return (key for key, runs in self._runs.items() if any(run.block < self._block for run in runs))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Doubts:
    """What looks wrong in the blocks before `number`."""

    def __init__(self, plan: Plan, runs: Sequence[RunRecord], number: int) -> None:
        self._plan = plan
        self._number = number
        metric = frozenset((plan.experiment.metric,))
        cut = cut_runs(runs)
        self.opened = cache(lambda block: open_pairs(plan, cut, block))
        self._closings = closing_blocks(plan, [run for run in cut if run.block < number])
        whole: dict[tuple[str, str], list[RunRecord]] = defaultdict(list)
        for run in whole_runs(runs):
            whole[run.environment, run.cell].append(run)
        self.arms = cache(lambda block: _ArmsBefore(whole, block, metric))

    def again(self, environment: str, cells: Sequence[str]) -> Pairs:
        """The environment in these cells, in slices with somebody to take turns with; nothing where nobody is left."""
        pairs: set[tuple[str, str]] = set()
        for cell in cells:
            partners = self._partners(environment, cell)
            if partners is None:
                return frozenset()
            pairs |= {(name, cell) for name in (environment, *partners)}
        return frozenset(pairs)

    def _partners(self, environment: str, cell: str) -> tuple[str, ...] | None:
        """The baseline, or for itself the first environment that goes on; None where slices need one and have none."""
        if not self._plan.design(cell).sliced:
            return ()
        names = sorted(
            (each.name for each in self._plan.experiment.environments if each.name != environment),
            key=lambda name: name != self._plan.experiment.baseline,
        )
        arms = self.arms(self._number)
        sound = (name for name in names if not find_arm(arms, name, cell).is_closed)
        found = next(sound, None)
        return None if found is None else (found,)

    def bent(self) -> Iterator[_Bent]:
        """Curves with kinks, judged by the blocks before the first in which nothing of them was open."""
        for curve in find_curves(self._plan.experiment):
            for environment in self._plan.experiment.environments:
                found = self._judge_curve(environment.name, curve)
                if found.kinks:
                    yield found

    def stray(self) -> Iterator[_Stray]:
        """Runs far from the median of their environment, with at least six blocks to tell."""
        for cell in self._plan.experiment.cells:
            for environment in self._plan.experiment.environments:
                found = self._judge_cell(environment.name, cell.identity)
                if found is not None:
                    yield found

    def _settle(self, environment: str, cells: Sequence[str]) -> int | None:
        """The first block in which none of this was open, None if that is to come; what is closed stays closed."""
        members = {(environment, cell) for cell in cells}
        if self._closings is not None:
            known = [found for member in members if (found := self._closings[member]) is not None]
            return max(known) if len(known) == len(members) else None
        if not members.isdisjoint(self.opened(self._number)):
            return None
        blocks = range(1, self._number + 1)
        return blocks[bisect_left(blocks, 1, key=lambda block: int(members.isdisjoint(self.opened(block))))]

    def _judge_curve(self, environment: str, curve: Sequence[Cell]) -> _Bent:
        settled = self._settle(environment, [cell.identity for cell in curve])
        before = settled or self._number
        arms, blocks = self.arms(before), tuple(range(1, before))
        metric = self._plan.experiment.metric
        # Of a point that collapsed only the luckier runs are left.
        sound = [cell for cell in curve if not find_arm(arms, environment, cell.identity).has_collapsed]
        cells = tuple(cell for cell in sound if find_arm(arms, environment, cell.identity).values.get(metric))
        logs = _whole_blocks(_read_logs(arms, environment, cells, blocks, metric))
        kinks = find_kinks([cell.clients for cell in cells], logs) if len(cells) >= FEWEST_POINTS else ()
        return _Bent(
            environment=environment,
            cells=cells,
            blocks=tuple(block for block, row in zip(blocks, logs, strict=True) if np.isfinite(row).any()),
            kinks=kinks,
            settled=settled,
        )

    def _judge_cell(self, environment: str, cell: str) -> _Stray | None:
        settled = self._settle(environment, [cell])
        arm = find_arm(self.arms(settled or self._number), environment, cell)
        values = dict(sorted(arm.levels(self._plan.experiment.metric).items()))
        if arm.has_collapsed or len(values) < JUDGED_FROM:
            return None
        logs = np.log(np.array(list(values.values()), dtype=np.float64))
        median = float(np.median(logs))
        # Where the machine drifts more than its floor says, a run that goes along with it is not the one to be blamed.
        limit = max(run_limit(_floor(self._plan, cell), logs), run_limit(None, logs))
        far = {block: log for block, log in zip(values, logs.tolist(), strict=True) if abs(log - median) > limit}
        if not far:
            return None
        return _Stray(
            environment=environment, cell=cell, median=median, limit=limit, logs=far, last=max(values), settled=settled
        )


def _floor(plan: Plan, cell: str) -> float | None:
    floor = plan.floors.get(cell)
    return floor.s0 if floor is not None and floor.valid and floor.metric == plan.experiment.metric else None


def _read_logs(arms: Arms, environment: str, cells: Sequence[Cell], blocks: Sequence[int], metric: str) -> FloatArray:
    """ln of the values, shape (blocks, cells), NaN where there is none."""
    found = [find_arm(arms, environment, cell.identity).levels(metric) for cell in cells]
    values = np.array([[by_block.get(block, math.nan) for by_block in found] for block in blocks], dtype=np.float64)
    return np.asarray(np.log(values.reshape(len(blocks), len(cells))), dtype=np.float64)


def _whole_blocks(logs: FloatArray) -> FloatArray:
    """Without the blocks that lack a point, as long as enough are left: points that go on alone drift with the host."""
    lacking = ~np.isfinite(logs).all(axis=1, keepdims=True)
    return np.where(lacking, np.nan, logs) if (~lacking).sum() >= _WHOLE_BLOCKS else logs


# ------------------------------------------------------------------------------------------------ what became of it


def _judge_kinks(plan: Plan, arms: Arms, bent: _Bent) -> list[Anomaly]:
    """Each kink of a curve, by the blocks since."""
    metric = plan.experiment.metric
    blocks = range(bent.settled, bent.settled + REPEAT_BLOCKS) if bent.settled is not None else range(0)
    logs = _read_logs(arms, bent.environment, bent.cells, blocks, metric)
    new = tuple(block for block, row in zip(blocks, logs, strict=True) if np.isfinite(row).all())
    differences = repeat_differences([cell.clients for cell in bent.cells], logs, bent.kinks)
    return [
        Anomaly(
            kind=AnomalyKind.KINK,
            environment=bent.environment,
            cell=bent.cells[kink.place].identity,
            witness=bent.cells[kink.witness].identity,
            metric=metric,
            effect=math.exp(kink.residual),
            blocks=bent.blocks,
            outcome=judge_repeat(d, first=kink.residual),
            new_blocks=new,
            asked=REPEAT_BLOCKS,
            again=math.exp(float(np.median(d))) if d.size else None,
        )
        for kink, d in zip(bent.kinks, differences, strict=True)
    ]


def _judge_runs(plan: Plan, arms: Arms, stray: _Stray) -> Iterator[Anomaly]:
    """Each run that strays, by the next run of the same environment and cell."""
    metric = plan.experiment.metric
    values = find_arm(arms, stray.environment, stray.cell).levels(metric)
    for block, log in stray.logs.items():
        following = min((later for later in values if later > block), default=None)
        off = math.log(values[following]) - stray.median if following is not None else math.nan
        outcome = Repeat.TRANSIENT if abs(off) <= stray.limit else Repeat.CONFIRMED
        yield Anomaly(
            kind=AnomalyKind.RUN,
            environment=stray.environment,
            cell=stray.cell,
            witness=stray.cell,
            metric=metric,
            effect=math.exp(log - stray.median),
            blocks=(block,),
            outcome=outcome if following is not None else Repeat.UNDECIDED,
            new_blocks=(following,) if following is not None else (),
            asked=_RUN_BLOCKS,
            again=math.exp(off) if following is not None else None,
        )
