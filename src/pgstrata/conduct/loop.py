"""The loop over a plan: preflight, then block after block until done, out of budget, or interrupted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Final

from pgstrata.compare.progress import look_at
from pgstrata.conduct.cost import SPENT, Costs, UnmeasuredTime, own_seconds
from pgstrata.conduct.lanes import environments_by_lane, follow_lanes, machines_of
from pgstrata.conduct.losses import Losses
from pgstrata.conduct.preflight import preflight
from pgstrata.conduct.rig import Rig
from pgstrata.conduct.visit import conduct_visit
from pgstrata.errors import PgstrataError, ServerFailedError
from pgstrata.model.answer import Comparison, Verdict
from pgstrata.model.experiment import HostSpec
from pgstrata.model.metrics import SUSTAINED_RATE
from pgstrata.model.plan import Block, Plan, Visit
from pgstrata.model.reasons import Notice
from pgstrata.model.runs import RunRecord, RunStatus
from pgstrata.ports.events import Event, EventKind, Standing
from pgstrata.sources.ladders import LADDERS, cut_ladders

# So many failures in a row are no property of one environment any more.
_FAILURES_IN_A_ROW: Final = 6


class Ending(StrEnum):
    """Why the loop ended."""

    COMPLETE = "complete"
    DECIDED = "decided"
    BUDGET = "budget"
    REBOOT = "reboot"


@dataclass(slots=True, kw_only=True)
class Conduct:
    """One pass over a plan. `spent` are seconds of the budget that earlier passes used.

    The budget runs from `begun`, on the clock of the rig; None is when `carry_out` is called. Afterwards `preparing`
    are the seconds before the first block, and `block_seconds` what was expected of the block looked at last.
    What is decided is not measured any more, unless `stop_early` is False (a noise floor needs all its blocks).
    """

    rig: Rig
    plan: Plan
    budget: float | None
    spent: float = 0.0
    stop_early: bool = True
    done: set[str] = field(default_factory=set)
    records: list[RunRecord] = field(default_factory=list)
    failures: int = 0
    begun: float | None = None
    preparing: float = 0.0
    block_seconds: float = 0.0
    _since: float = 0.0
    _measured: float = 0.0
    _before: UnmeasuredTime = field(default_factory=UnmeasuredTime)
    _costs: Costs = field(init=False)
    _losses: Losses = field(init=False)

    def __post_init__(self) -> None:
        """Before the first run, costs are those of the plan."""
        self._costs = Costs(plan=self.plan, workloads=self.rig.workloads)
        self._losses = Losses(rig=self.rig, plan=self.plan)

    def carry_out(self) -> Ending:
        """Do what is missing; ServerFailedError where nothing works, otherwise how it ended."""
        self._since = self._now() if self.begun is None else self.begun
        self.done = set(self.rig.store.committed())
        self._end_ladders()
        if all(run.identity in self.done for run in self.plan.runs):
            return Ending.COMPLETE
        self.records = list(self.rig.store.records())
        self._before = UnmeasuredTime.of(self.rig.store.fingerprint(SPENT))
        self._costs.recall(self.records, self._before)
        self._costs.lanes = environments_by_lane(self.rig, self.plan)
        prepared = False
        for number in range(len(self.plan.blocks)):
            block = self.plan.blocks[number]
            todo = self._todo(block)
            if todo is None:
                return Ending.DECIDED
            if not todo:
                continue
            if not prepared:
                counting = Notice(code="runs_needed", how="at most" if self.stop_early else "all")
                text = self.rig.say_reason(counting)
                self._say(
                    Event(
                        kind=EventKind.STUDY_STARTED,
                        text=text,
                        done=len(self.done),
                        total=len(self.plan.runs),
                        budget_left=self._budget_left(),
                    )
                )
            if not self._affordable(block, todo):
                if not prepared and self.spent + self.block_seconds <= (self.budget or 0.0):
                    self.preparing = self._used()  # servers that were built first have left too little
                return Ending.BUDGET
            if not prepared:
                self._prepare(block, todo)
                prepared = True
                block = self.plan.blocks[number]
                todo &= {run.identity for run in block.runs}
                # what that took was not known before
                if not self._affordable(block, todo):
                    return Ending.BUDGET
            self._conduct_block(block, todo)
        return Ending.COMPLETE

    def _prepare(self, block: Block, todo: frozenset[str]) -> None:
        with self._spending():
            try:
                preflight(self.rig, self.plan, [run for run in block.runs if run.identity in todo], self._losses)
            finally:
                self.preparing = self._used()
        self._end_ladders()
        if count := max(self._costs.lanes.values(), default=0):
            self.rig.note(Notice(code="side_by_side", value=count + 1))

    def _end_ladders(self) -> None:
        """The plan goes on without the cells beyond the end of their ladder, once it is known."""
        self.plan, beyond = cut_ladders(self.plan, self.rig.store.fingerprint(LADDERS))
        if beyond:
            names = tuple(cell.identity for cell in beyond)
            self.rig.note(Notice(code="ladder_ends", names=names))

    @contextmanager
    def _spending(self) -> Iterator[None]:
        """What is spent within is kept, also where it fails or is interrupted."""
        try:
            yield
        except BaseException:
            # what went wrong is told, not that this could not be written either
            with suppress(PgstrataError):
                self._keep_spent()
            raise
        self._keep_spent()

    def _keep_spent(self) -> None:
        """What this pass took beside its finished runs, for the passes after it."""
        around = self._used() - self.preparing - self._measured
        beside = self._before.plus(self.preparing, around)
        self.rig.store.keep_fingerprint(SPENT, beside.keep())

    # ------------------------------------------------------------------------------------------- blocks

    def _todo(self, block: Block) -> frozenset[str] | None:
        """Runs of a block that are still to be made, by identity; None where all is decided.

        The blocks before are all that counts, so that a resumed block is finished as it was begun.
        """
        wanted = {run.identity for run in block.runs}
        if self.stop_early:
            look = look_at(self.plan, self.records, block.number)
            wanted = {run.identity for run in block.runs if (run.environment, run.cell) in look.pairs}
            if look.headlines and self.records:
                self._say(Event(kind=EventKind.STANDINGS, standings=tuple(map(_stand, look.headlines))))
            if not wanted:
                return None
        return frozenset(wanted - self.done)

    def _affordable(self, block: Block, todo: frozenset[str]) -> bool:
        """Whether these runs of a block, all that it lacks, fit into what is left of the budget."""
        self.block_seconds = self._costs.seconds([block], todo)
        return self.budget is None or self.spent + self._used() + self.block_seconds <= self.budget

    def _now(self) -> float:
        return self.rig.clock.monotonic()

    def _used(self) -> float:
        return self._now() - self._since

    def _conduct_block(self, block: Block, todo: frozenset[str]) -> None:
        with self._spending():
            visits = [
                visit
                for visit in block.visits
                if any(run.identity in todo for stage in visit.stages for run in stage.runs)
            ]
            while visits := self._conduct_all(visits, todo):
                self._losses.recover()
        left = len(self.plan.blocks) - block.number
        self._say(Event(kind=EventKind.BLOCK_FINISHED, text=str(block.number), done=len(self.plan.blocks) - left,
                        total=len(self.plan.blocks), seconds_left=self._seconds_left(),
                        budget_left=self._budget_left()))  # fmt: skip

    def _conduct_all(self, visits: Sequence[Visit], todo: frozenset[str]) -> list[Visit]:
        """Carry out visits, those on machines that share nothing side by side; those that are still to be made."""
        made: set[str] = set()

        def conduct(visit: Visit, within: Collection[HostSpec]) -> None:
            if self._conduct(visit, todo, within):
                made.add(visit.identity)

        follow_lanes(self.rig, self.plan, visits, partial(machines_of, self.plan), conduct)
        return [visit for visit in visits if visit.identity not in made]

    def _conduct(self, visit: Visit, todo: frozenset[str], within: Collection[HostSpec]) -> bool:
        """Carry out a visit; False where it is still to be made, because the connection to its host broke.

        `within` are the machines that it may use.
        """
        if self._losses.waits(visit):
            return False
        begun, told = self._now(), list[tuple[RunRecord, float]]()
        try:
            conduct_visit(self.rig, self.plan, visit, todo=todo - self.done, tell=partial(self._tell, told))
        except PgstrataError as error:
            if not self._losses.note(visit.identity, self._losses.hosts_of(visit), error, within):
                raise
            return False
        self._costs.learn(told, begun, self._now())
        return True

    def _tell(self, told: list[tuple[RunRecord, float]], record: RunRecord) -> None:
        self.done.add(record.identity)
        self.records.append(record)
        told.append((record, self._now()))
        self._measured += own_seconds(record)
        self._say(
            Event(
                kind=EventKind.RUN_FINISHED,
                run=record.identity,
                text=self.rig.say_reason(record.reasons[0]) if record.reasons else "",
                status=record.status,
                validity=record.validity,
                value=self._figure(record),
                done=len(self.done),
                total=len(self.plan.runs),
                seconds_left=self._seconds_left(),
                budget_left=self._budget_left(),
            )
        )
        self.failures = self.failures + 1 if record.status is RunStatus.FAILED else 0
        if self.failures >= _FAILURES_IN_A_ROW:
            raise ServerFailedError(
                f"{self.failures} runs in a row failed; the last reason: {self.rig.say_reason(record.reasons[0])}",
                where=record.identity,
                remedy="fix the cause, then start a new study (--study DIR): this one keeps the failed runs",
            )

    def _figure(self, record: RunRecord) -> float | None:
        """Throughput; of a search the rate that was found, because its throughput is that at full speed."""
        searched = self.plan.experiment.cell(record.cell).objective is not None
        return record.value(SUSTAINED_RATE.name) if searched else record.throughput()

    def _seconds_left(self) -> float:
        """At most: what is decided before the last block takes no further time."""
        left = self._costs.seconds(self.plan.blocks, {run.identity for run in self.plan.runs} - self.done)
        budget = self._budget_left()
        return left if budget is None else min(left, budget)

    def _budget_left(self) -> float | None:
        return None if self.budget is None else max(0.0, self.budget - self.spent - self._used())

    def _say(self, event: Event) -> None:
        self.rig.events.emit(event)


def _stand(comparison: Comparison) -> Standing:
    equal = comparison.equivalence_interval if comparison.verdict is Verdict.EQUIVALENT else None
    interval = equal or comparison.interval
    return Standing(
        environment=comparison.environment,
        verdict=comparison.verdict,
        blocks=comparison.decided_at or comparison.blocks,
        effect=comparison.effect,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        decided_at=comparison.decided_at or 0,
    )
