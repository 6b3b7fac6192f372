"""The loop over a plan: preflight, then block after block until done, out of budget, or interrupted."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pgstrata.compare.repeats import wanted_pairs
from pgstrata.conduct.preflight import preflight
from pgstrata.conduct.rig import Rig
from pgstrata.conduct.visit import conduct_visit
from pgstrata.errors import ServerFailedError
from pgstrata.model.plan import Block, Plan
from pgstrata.model.runs import RunRecord, RunStatus
from pgstrata.ports.events import Event, EventKind

# So many failures in a row are no property of one environment any more.
_FAILURES_IN_A_ROW: Final = 6


class Ending(StrEnum):
    """Why the loop ended."""

    COMPLETE = "complete"
    DECIDED = "decided"
    BUDGET = "budget"


@dataclass(slots=True, kw_only=True)
class Conduct:
    """One pass over a plan. `spent` are seconds of the budget that earlier passes used.

    What is decided is not measured any more, unless `stop_early` is False (a noise floor needs all its blocks), except
    where something looked wrong, for a few blocks.
    """

    rig: Rig
    plan: Plan
    budget: float | None
    spent: float = 0.0
    stop_early: bool = True
    done: set[str] = field(default_factory=set)
    records: list[RunRecord] = field(default_factory=list)
    seconds_per_run: list[float] = field(default_factory=list)
    failures: int = 0
    begun: float = 0.0

    def carry_out(self) -> Ending:
        """Do what is missing; ServerFailedError where nothing works, otherwise how it ended."""
        self.begun = self.rig.clock.monotonic()
        self.done = set(self.rig.store.committed())
        if all(run.identity in self.done for run in self.plan.runs):
            return Ending.COMPLETE
        self.records = list(self.rig.store.records())
        prepared = False
        for block in self.plan.blocks:
            todo = self._todo(block)
            if todo is None:
                return Ending.DECIDED
            if not todo:
                continue
            if not prepared:
                what = "what is decided is not measured any more" if self.stop_early else "all of them count"
                self._say(
                    Event(kind=EventKind.STUDY_STARTED, text=what, done=len(self.done), total=len(self.plan.runs))
                )
            if not self._affordable(len(todo)):
                return Ending.BUDGET
            if not prepared:
                preflight(self.rig, self.plan, [run for run in block.runs if run.identity in todo])
                prepared = True
            self._conduct_block(block, todo)
        return Ending.COMPLETE

    # ------------------------------------------------------------------------------------------- blocks

    def _todo(self, block: Block) -> frozenset[str] | None:
        """Runs of a block that are still to be made, by identity; None where all is decided and in no doubt.

        The blocks before are all that counts, so that a resumed block is finished as it was begun.
        """
        wanted = {run.identity for run in block.runs}
        if self.stop_early:
            pairs = wanted_pairs(self.plan, self.records, block.number)
            wanted = {run.identity for run in block.runs if (run.environment, run.cell) in pairs}
            if not wanted:
                return None
        return frozenset(wanted - self.done)

    def _affordable(self, runs: int) -> bool:
        """Whether so many further runs, a whole block, fit into what is left of the budget."""
        if self.budget is None:
            return True
        used = self.spent + self.rig.clock.monotonic() - self.begun
        return used + runs * self._run_seconds() <= self.budget

    def _run_seconds(self) -> float:
        """Of one run with all around it, as far as is known."""
        if self.seconds_per_run:
            return statistics.median(self.seconds_per_run)
        runs = len(self.plan.blocks[0].runs) if self.plan.blocks else 1
        return self.plan.forecast.seconds_per_block / max(1, runs)

    def _conduct_block(self, block: Block, todo: frozenset[str]) -> None:
        begun = self.rig.clock.monotonic()
        for visit in block.visits:
            if any(run.identity in todo for stage in visit.stages for run in stage.runs):
                conduct_visit(self.rig, self.plan, visit, todo=todo, tell=self._tell)
        self.seconds_per_run.append((self.rig.clock.monotonic() - begun) / len(todo))
        left = len(self.plan.blocks) - block.number
        self._say(Event(kind=EventKind.BLOCK_FINISHED, text=str(block.number), done=len(self.plan.blocks) - left,
                        total=len(self.plan.blocks), seconds_left=self._seconds_left()))  # fmt: skip

    def _tell(self, record: RunRecord) -> None:
        self.done.add(record.identity)
        self.records.append(record)
        self._say(
            Event(
                kind=EventKind.RUN_FINISHED,
                run=record.identity,
                text=record.reasons[0].text if record.reasons else "",
                status=record.status,
                validity=record.validity,
                value=record.value("tps"),
                done=len(self.done),
                total=len(self.plan.runs),
                seconds_left=self._seconds_left(),
            )
        )
        self.failures = self.failures + 1 if record.status is RunStatus.FAILED else 0
        if self.failures >= _FAILURES_IN_A_ROW:
            raise ServerFailedError(
                f"{self.failures} runs in a row failed; the last reason: {record.reasons[0].text}",
                where=record.identity,
                remedy="mend the cause and start a new study (--study DIR): what failed is part of this one",
            )

    def _seconds_left(self) -> float:
        """At most: what is decided before the last block takes no further time."""
        left = (len(self.plan.runs) - len(self.done)) * self._run_seconds()
        if self.budget is not None:
            left = min(left, max(0.0, self.budget - self.spent - (self.rig.clock.monotonic() - self.begun)))
        return left

    def _say(self, event: Event) -> None:
        self.rig.events.emit(event)
