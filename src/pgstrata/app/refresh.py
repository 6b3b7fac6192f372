"""The noise floor refreshed by a long experiment: a study of its own beside the experiment's, block by block."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pgstrata import __version__
from pgstrata.app.host_floors import CONDITIONS, harvest_floors, keep_floors, observe_rig
from pgstrata.app.places import capacity_here
from pgstrata.app.study_hosts import StudyHosts
from pgstrata.app.wiring import make_derive, make_rig
from pgstrata.conduct.loop import Conduct, Ending
from pgstrata.conduct.preflight import SAMPLING
from pgstrata.errors import InterruptedByUserError, PgstrataError
from pgstrata.model.plan import Plan
from pgstrata.model.runs import Validity
from pgstrata.plan.refresh import blocks_before, plan_refresh
from pgstrata.ports.events import Event, EventKind, Events
from pgstrata.store.evidence import list_runs
from pgstrata.store.study import NOISE, StudyStore
from pgstrata.workloads import builtin_workloads

_TOLD: Final = frozenset({EventKind.NOTE, EventKind.WARNING})
_LIVING: Final = frozenset({EventKind.STEP, EventKind.PROGRESS, EventKind.BUILDING})


@dataclass(slots=True, kw_only=True)
class Refresher:
    """Called between the blocks of an experiment: measures the blocks of the floor that are due, and keeps the floor.

    They use the experiment's own lock, ledger and scratch folders, because they come between its blocks, and its
    sampling of logs, because runs that log more are another design. What fails here is told and ends nothing: the
    experiment does not need it.
    """

    plan: Plan
    hosts: StudyHosts
    store: StudyStore
    events: Events
    _short: bool = field(default=False, init=False)

    def __call__(self, block: int, left: float | None) -> None:
        """Measure what is due before that block of the experiment, in at most so many seconds."""
        refresh = self.plan.refresh
        due = min(blocks_before(block), refresh.blocks) if refresh is not None else 0
        if not due or refresh is None:
            return
        try:
            twice = plan_refresh(self.plan, refresh.blocks, builtin_workloads(), capacity_here())
            missing = {run.identity for one in twice.blocks[:due] for run in one.runs} - set(list_runs(self._folder))
            if missing:
                self._refresh(twice, due, left)
        except InterruptedByUserError:
            raise
        except PgstrataError as error:
            self._tell(EventKind.WARNING, f"the noise floor was not refreshed: {error.where}: {error.what}")

    @property
    def _folder(self) -> Path:
        return self.store.folder / NOISE

    def _refresh(self, twice: Plan, due: int, left: float | None) -> None:
        ending = self._measure(twice, due, left)
        if ending is Ending.BUDGET:
            if not self._short:
                self._tell(EventKind.NOTE, "the budget leaves no time to refresh the noise floor")
            self._short = True
            return
        source = f"{self.store.folder.name}/{NOISE}"
        harvest = harvest_floors(self._folder, builtin_workloads(), least=1, source=source)
        if harvest.records:
            keep_floors(harvest.records)
            blocks = max(len(record.differences) for record in harvest.records)
            self._tell(
                EventKind.NOTE,
                f"the noise floor was refreshed for later studies: {blocks} of at most {len(twice.blocks)} differences "
                f"of the baseline from itself, in {self._folder}",
            )
        else:
            self._tell(EventKind.WARNING, f"the noise floor was not refreshed: {harvest.lack}")

    def _measure(self, twice: Plan, due: int, left: float | None) -> Ending:
        aside = _Aside(self.events)
        derive = make_derive(twice.experiment.allow)
        with StudyStore.open_or_create(self._folder, twice, __version__, derive=derive) as store:
            if store.fingerprint(CONDITIONS) is None:
                store.keep_fingerprint(CONDITIONS, observe_rig(twice.experiment))
            if (sampling := self.store.fingerprint(SAMPLING)) is not None:
                store.keep_fingerprint(SAMPLING, sampling)
            machine = self.hosts.machine
            begun = machine.clock.monotonic()
            rig = make_rig(twice, machine, store, aside, str(self.store.folder), self.hosts)
            return Conduct(
                rig=rig,
                plan=replace(twice, blocks=twice.blocks[:due]),
                budget=left,
                stop_early=False,
                begun=begun,
            ).carry_out()

    def _tell(self, kind: EventKind, text: str) -> None:
        self.events.emit(Event(kind=kind, text=text))


class _Aside(Events):
    """Of these blocks only what lives and what went wrong is told: they are no part of what is counted."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def emit(self, event: Event) -> None:
        named = replace(event, run=f"{NOISE}/{event.run}") if event.run else event
        if event.kind in _LIVING | _TOLD:
            self._events.emit(replace(named, seconds_left=None))
        elif event.kind is EventKind.RUN_FINISHED and event.validity != Validity.VALID:
            self._events.emit(Event(kind=EventKind.NOTE, text=f"{named.run}: {event.validity}: {event.text}"))
