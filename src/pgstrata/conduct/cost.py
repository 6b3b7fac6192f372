"""What runs cost in seconds, all around them counted, and what a study has spent beside its finished runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from pgstrata.model.plan import Block, Plan
from pgstrata.model.runs import RunRecord
from pgstrata.model.server import Fingerprint
from pgstrata.model.workload import Workload
from pgstrata.plan import warmup_of
from pgstrata.plan.forecast import run_seconds

SPENT: Final = "spent"
"""Name in the store of `UnmeasuredTime`."""
_WARMUP: Final = "warmup"
# "aside" stands in studies of version 0.1.0: what was measured between blocks.
_PREPARING, _AROUND, _ASIDE = "preparing", "around", "aside"
# The largest of these is expected again: a budget that is overstepped is worse than a block that is not begun, and one
# run that hung must not count for ever.
_LAST: Final = 3


def own_seconds(record: RunRecord) -> float:
    """Seconds that one run took: its measured window and the timed steps around it."""
    return record.measured_seconds + sum(record.dead_time.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmeasuredTime:
    """Seconds of a study in no finished run.

    `preparing` before the first block, `around` runs, lost ones included.
    """

    preparing: float = 0.0
    around: float = 0.0

    @property
    def seconds(self) -> float:
        """All of them."""
        return self.preparing + self.around

    @classmethod
    def of(cls, kept: Fingerprint | None) -> UnmeasuredTime:
        """As it was kept in a study; nothing in one that never did."""
        facts = kept.facts if kept is not None else {}
        preparing, around, aside = (float(facts.get(name, 0)) for name in (_PREPARING, _AROUND, _ASIDE))
        return cls(preparing=preparing, around=around + aside)

    def plus(self, preparing: float, around: float) -> UnmeasuredTime:
        """With the seconds of one more call; `around` is below zero where runs were made beside each other."""
        return UnmeasuredTime(preparing=self.preparing + preparing, around=self.around + around)

    def keep(self) -> Fingerprint:
        """For the store."""
        facts = {_PREPARING: self.preparing, _AROUND: self.around}
        return Fingerprint(facts={name: f"{seconds:.3f}" for name, seconds in facts.items()})


@dataclass(slots=True, kw_only=True)
class Costs:
    """Seconds of runs as they were measured, by environment and cell, and as the plan forecasts them until then.

    `lanes` are the places of environments that are measured beside each other, by name: a block takes as long as the
    longest lane. All are in one where nothing is known of it.

    A stage takes what its runs take themselves, and what is `around` them in its cell: data looked for, layers undone,
    evidence written, turns that wait for each other. `usual` is the latter until one stage of the cell was seen. The
    warm-up is kept apart, by cell, because some blocks have none.
    """

    plan: Plan
    workloads: Mapping[str, Workload]
    usual: float = 0.0
    lanes: Mapping[str, int] = field(default_factory=dict)
    own: dict[tuple[str, str], deque[float]] = field(default_factory=dict)
    warm: dict[str, deque[float]] = field(default_factory=dict)
    around: dict[str, deque[float]] = field(default_factory=dict)
    forecasts: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """What the plan says of each cell."""
        for cell in self.plan.experiment.cells:
            design = self.plan.design(cell.identity)
            warm = warmup_of(cell, design)
            self.forecasts[cell.identity] = run_seconds(cell, design, self.workloads) - warm
            self.warm[cell.identity] = deque([warm], maxlen=_LAST)

    def recall(self, records: Collection[RunRecord], beside: UnmeasuredTime) -> None:
        """Learn from the runs of earlier calls; `beside` is what these spent."""
        for record in records:
            self._add(record)
        stages = {record.together or record.identity for record in records}
        self.usual = max(0.0, beside.around) / len(stages) if stages else 0.0

    def learn(self, told: Sequence[tuple[RunRecord, float]], begun: float, ended: float) -> None:
        """Learn from one visit.

        Args:
            told: its records, and when each was told, in seconds of the clock.
            begun: when the visit began.
            ended: when all of it was down again.
        """
        stages = [list(stage) for _, stage in groupby(told, key=lambda one: one[0].cell)]
        for number, stage in enumerate(stages, start=1):
            until = ended if number == len(stages) else stage[-1][1]
            own = sum(own_seconds(record) for record, _ in stage)
            lasts = self.around.setdefault(stage[0][0].cell, deque(maxlen=_LAST))
            lasts.append(max(0.0, until - begun - own))
            for record, _ in stage:
                self._add(record)
            begun = until

    def seconds(self, blocks: Iterable[Block], wanted: Collection[str]) -> float:
        """What the wanted runs of blocks, by identity, will take."""
        return sum(max(self._lanes_of(block, wanted).values(), default=0.0) for block in blocks)

    def _lanes_of(self, block: Block, wanted: Collection[str]) -> Mapping[int, float]:
        """Seconds of each lane of a block."""
        found: dict[int, float] = {}
        for cell, names in _stages(block, wanted):
            lane = self.lanes.get(names[0], 0)
            found[lane] = found.get(lane, 0.0) + self._stage(block.number, cell, names)
        return found

    def _add(self, record: RunRecord) -> None:
        warm = record.dead_time.get(_WARMUP, 0.0)
        lasts = self.own.setdefault((record.environment, record.cell), deque(maxlen=_LAST))
        lasts.append(own_seconds(record) - warm)
        if warm > 0:
            self.warm[record.cell].append(warm)

    def _stage(self, block: int, cell: str, environments: Sequence[str]) -> float:
        warm = max(self.warm[cell]) if self.plan.design(cell).stretches(block) else 0.0
        return self._around(cell) + sum(warm + self._run(environment, cell) for environment in environments)

    def _around(self, cell: str) -> float:
        if cell in self.around:
            return max(self.around[cell])
        return max((max(lasts) for lasts in self.around.values()), default=self.usual)

    def _run(self, environment: str, cell: str) -> float:
        """One run but its warm-up; one that was never made takes at least what the same cell took elsewhere."""
        if (environment, cell) in self.own:
            return max(self.own[environment, cell])
        elsewhere = (max(lasts) for (_, other), lasts in self.own.items() if other == cell)
        return max(self.forecasts[cell], *elsewhere, 0.0)


def _stages(block: Block, wanted: Collection[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Cell and environments of each stage of a block in which something is wanted."""
    for visit in block.visits:
        for stage in visit.stages:
            names = [run.environment for run in stage.runs if run.identity in wanted]
            if names:
                yield stage.cell, names
