"""The loop over a plan: preflight, then block after block until done, out of budget, or interrupted."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

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
    BUDGET = "budget"


@dataclass(slots=True, kw_only=True)
class Conduct:
    """One pass over a plan. `spent` are seconds of the budget that earlier passes used."""

    rig: Rig
    plan: Plan
    budget: float | None
    spent: float = 0.0
    done: set[str] = field(default_factory=set)
    durations: list[float] = field(default_factory=list)
    failures: int = 0
    begun: float = 0.0

    def carry_out(self) -> Ending:
        """Do what is missing; ServerFailedError where nothing works, otherwise how it ended."""
        self.begun = self.rig.clock.monotonic()
        self.done = set(self.rig.store.committed())
        missing = [run for run in self.plan.runs if run.identity not in self.done]
        if not missing:
            return Ending.COMPLETE
        self._say(Event(kind=EventKind.STUDY_STARTED, done=len(self.done), total=len(self.plan.runs)))
        if not self._affordable():
            return Ending.BUDGET
        preflight(self.rig, self.plan, missing)
        for block in self.plan.blocks:
            if all(run.identity in self.done for run in block.runs):
                continue
            if not self._affordable():
                return Ending.BUDGET
            self._conduct_block(block)
        return Ending.COMPLETE

    # ------------------------------------------------------------------------------------------- blocks

    def _affordable(self) -> bool:
        """Whether a whole further block fits into what is left of the budget."""
        if self.budget is None:
            return True
        used = self.spent + self.rig.clock.monotonic() - self.begun
        return used + self._block_seconds() <= self.budget

    def _block_seconds(self) -> float:
        return statistics.median(self.durations) if self.durations else self.plan.forecast.seconds_per_block

    def _conduct_block(self, block: Block) -> None:
        begun = self.rig.clock.monotonic()
        whole = not any(run.identity in self.done for run in block.runs)
        for visit in block.visits:
            if any(run.identity not in self.done for stage in visit.stages for run in stage.runs):
                conduct_visit(self.rig, self.plan, visit, done=frozenset(self.done), tell=self._tell)
        if whole:
            self.durations.append(self.rig.clock.monotonic() - begun)
        left = sum(1 for other in self.plan.blocks if any(run.identity not in self.done for run in other.runs))
        self._say(Event(kind=EventKind.BLOCK_FINISHED, text=str(block.number), done=len(self.plan.blocks) - left,
                        total=len(self.plan.blocks), seconds_left=self._seconds_left()))  # fmt: skip

    def _tell(self, record: RunRecord) -> None:
        self.done.add(record.identity)
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
        share = 1 - len(self.done) / len(self.plan.runs)
        left = share * len(self.plan.blocks) * self._block_seconds()
        if self.budget is not None:
            left = min(left, max(0.0, self.budget - self.spent - (self.rig.clock.monotonic() - self.begun)))
        return left

    def _say(self, event: Event) -> None:
        self.rig.events.emit(event)
