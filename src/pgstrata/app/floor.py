"""`pgstrata floor`: two equal environments, measured at a fixed number of blocks, and what they differ by kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pgstrata.app.compose import compose_here
from pgstrata.app.host_floors import harvest_floors, keep_floors, with_floors
from pgstrata.app.places import capacity_here
from pgstrata.app.question import plan_text, read_experiment
from pgstrata.app.run import run_experiment
from pgstrata.conduct.loop import Ending
from pgstrata.drivers.registry import driver_capabilities
from pgstrata.errors import PlanRefusedError, StudyError, UsageError
from pgstrata.experiment.compose import Wishes
from pgstrata.model.boot import steady_host
from pgstrata.model.experiment import ControlKind
from pgstrata.model.floor import LEAST_DIFFERENCES, Floor
from pgstrata.model.plan import HORIZON, Plan
from pgstrata.plan import make_plan
from pgstrata.plan.floors import baseline_twice
from pgstrata.ports.events import Events
from pgstrata.ports.studies import StoredStudy, StudyRepository
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.workloads import builtin_workloads

FLOOR_BLOCKS: Final = LEAST_DIFFERENCES + 1
"""Blocks by default: one run may be invalid."""
_QUESTION: Final = "How much do two equal environments differ here?"
_WORKLOADS: Final = ("select-only", "simple-update")
_RUN: Final = "10s"
_SERVER: Final = "embedded"
# An interrupted measurement is taken up again; one of last week would mix two states of the host.
_GOES_ON: Final = timedelta(days=1)
_MOST_FOLDERS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorOutcome:
    """What came of it: the floors that plans will find now, of every metric, the plan's own first.

    `plan` has those of its own metric by cell, `folder` is where they are kept. `lack` says why there are none, or not
    of all cells; empty where all is well.
    """

    study: StoredStudy
    ending: Ending
    done: int
    plan: Plan
    floors: tuple[Floor, ...]
    folder: Path | None
    lack: str


def plan_floor(file: Path | None, wishes: Wishes, blocks: int | None, server: str | None = None) -> Plan:
    """The A/A plan of an experiment file, or of the cells that were named.

    Raises:
        UsageError: both were given, or too few or too many blocks.
        ExperimentError, PlanRefusedError: there is no plan.
    """
    blocks = FLOOR_BLOCKS if blocks is None else blocks
    if not LEAST_DIFFERENCES <= blocks <= HORIZON:
        raise UsageError(
            f"a noise floor cannot be made of {blocks} blocks",
            where="--blocks",
            remedy=f"each gives one difference: use {LEAST_DIFFERENCES} to {HORIZON}",
        )
    if file is None:
        return _plan_named(wishes, server or _SERVER, blocks)
    if server or wishes != Wishes():
        raise UsageError(
            "an experiment file says what is measured",
            where=str(file),
            remedy="leave out --workload, --scale, --clients, --run and --server, or the file",
        )
    return _plan_twice(file, blocks)


def _plan_named(wishes: Wishes, server: str, blocks: int) -> Plan:
    asked = replace(
        wishes,
        workloads=wishes.workloads or _WORKLOADS,
        run=wishes.run or _RUN,
        blocks=blocks,
        controls=(str(ControlKind.SAME),),
        question=_QUESTION,
    )
    level = server.replace(",", "\\,")
    composed = compose_here([f"server={level}"], asked)
    workloads = builtin_workloads()
    return plan_text(composed.text, "pgstrata floor", workloads, folder=Path.cwd(), conninfo=composed.conninfo)


def _plan_twice(file: Path, blocks: int) -> Plan:
    """The baseline of an experiment, twice, in its cells and in the designs that the experiment itself would use."""
    text = read_experiment(file)
    # no budget of the experiment's: an endless one leaves no notes
    workloads = builtin_workloads()
    asked = plan_text(text, str(file), workloads, folder=file.parent, budget=math.inf)
    if asked.experiment.only_host is None:
        names = " and ".join(host.text for host in asked.experiment.hosts)
        raise PlanRefusedError(
            f"a noise floor is of servers on one machine, and these are on {names}",
            where=str(file),
            remedy='write controls = ["same"] into the experiment: its report shows how equals differ there',
        )
    if steady_host(asked.experiment) is None:
        raise PlanRefusedError(
            "a noise floor holds for one boot, and this experiment boots its machine for each visit",
            where=str(file),
            remedy='write controls = ["reboot"] into the experiment: its report shows how much equal boots differ',
        )
    remark = f"The baseline of this experiment, twice (`pgstrata floor {file.name}`), in {blocks} blocks:"
    twice = baseline_twice(asked.experiment, blocks, question=_QUESTION, remark=remark)
    capable = driver_capabilities()
    return make_plan(twice, workloads, capacity_here(), drivers=capable, designs=asked.designs, say=say_reason)


def choose_study(studies: StudyRepository, plan: Plan, file: Path | None) -> StoredStudy:
    """floor-NAME-IDENTITY: what was interrupted today goes on, what is complete is followed by a new one."""
    name = f"floor-{file.stem}" if file else "floor"
    begun = (study for study in studies.find_begun(f"{name}-") if _goes_on(study, plan))
    if (found := next(begun, None)) is not None:
        return found
    stem = f"{name}-{plan.identity[:8]}"
    for number in range(1, _MOST_FOLDERS):
        study = studies.named(stem if number == 1 else f"{stem}-{number}")
        if not study.begun():
            return study
    raise UsageError(
        "there are a thousand studies of that name", where=str(studies.named(stem)), remedy="use --study DIR"
    )


def _goes_on(study: StoredStudy, plan: Plan) -> bool:
    try:
        there = study.head()
        begun = datetime.fromisoformat(there.created)
        fresh = datetime.now(UTC) - begun < _GOES_ON
    except (StudyError, ValueError, TypeError):
        return False
    return fresh and there.plan.identity == plan.identity and len(study.committed()) < len(plan.runs)


def measure_floor(plan: Plan, study: StoredStudy, events: Events, *, budget: float | None = None) -> FloorOutcome:
    """Measure every block, whatever the first ones say, and keep what came out.

    A sequential end would keep the studies in which the differences happened to be small.

    Raises:
        InterruptedByUserError: everything that was finished is kept.
        DiskFullError, HostNotFitError: the floor cannot be written.
    """
    outcome = run_experiment(plan, study, events, budget=budget, stop_early=False)
    workloads = builtin_workloads()
    harvest = harvest_floors(study, workloads)
    folder = keep_floors(harvest.records) if harvest.records else None
    known = with_floors(plan, workloads)
    metrics = dict.fromkeys((plan.experiment.metric, *(record.key.metric for record in harvest.records)))
    return FloorOutcome(
        study=study,
        ending=outcome.ending,
        done=outcome.done,
        plan=known,
        floors=_of_metrics(plan, tuple(metrics)) if folder else (),
        folder=folder,
        lack=harvest.lack,
    )


def _of_metrics(plan: Plan, metrics: Sequence[str]) -> tuple[Floor, ...]:
    workloads = builtin_workloads()
    plans = [replace(plan, experiment=replace(plan.experiment, metric=metric)) for metric in metrics]
    return tuple(floor for one in plans for floor in with_floors(one, workloads).floors.values())
