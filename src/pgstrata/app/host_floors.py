"""The noise floors of a host: looked up for a plan, and kept from what a study's control has measured.

They are of servers on one machine, this one or another; of several there are none. They are kept on this one, which the
client is on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pgstrata import __version__
from pgstrata.app.places import find_machine_places
from pgstrata.collectors.hostfacts.conditions import observe_conditions
from pgstrata.errors import HostLostError, HostNotFitError
from pgstrata.hosts.local import LocalHost
from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.boot import steady_host
from pgstrata.model.experiment import ControlKind, Experiment, HostSpec, name_hosts
from pgstrata.model.floor import FLOOR_LIFETIME, LEAST_DIFFERENCES, Floor, FloorKey, FloorRecord
from pgstrata.model.metrics import COMPARED_SERIES
from pgstrata.model.plan import Plan
from pgstrata.model.server import Fingerprint
from pgstrata.model.workload import Workload
from pgstrata.plan.floors import floor_key, make_floor
from pgstrata.ports.studies import StoredStudy
from pgstrata.store.floors import FloorStore

CONDITIONS: Final = "conditions"
"""The fingerprint of a study that says what the host was like when it began."""
_OF_SERVERS: Final = frozenset({"storage", "scheduler"})
"""Conditions that do not matter where only the client is."""


def with_floors(plan: Plan, workloads: Mapping[str, Workload]) -> Plan:
    """The plan with what is known here of the noise of its cells, doubtful floors with their doubts.

    Nothing is measured and nothing written; files that cannot be read become notes, and so does another machine that
    cannot be asked. The host is only looked at where something is known of these cells.
    """
    if not has_one_rig(plan.experiment):
        return plan
    places = find_machine_places()
    store = FloorStore(places.state)
    keys = floor_keys(plan, workloads)
    found = {key.cell: store.load(key) for key in keys}
    notes = tuple(dict.fromkeys(note for one in found.values() for note in one.notes))
    floors: dict[str, Floor] = {}
    if any(one.records for one in found.values()):
        try:
            host, now = observe_rig(plan.experiment), datetime.now(UTC)
            made = {key.cell: make_floor(key, found[key.cell].records, host, now) for key in keys}
            floors = {cell: floor for cell, floor in made.items() if floor is not None}
        except (HostLostError, HostNotFitError) as error:
            where = name_hosts(plan.experiment.elsewhere)
            notes = (*notes, f"{where} cannot be asked ({error.what}): its noise floors are left out")
    experiment = replace(plan.experiment, notes=(*plan.experiment.notes, *notes)) if notes else plan.experiment
    return replace(plan, experiment=experiment, floors=floors)


def floor_keys(plan: Plan, workloads: Mapping[str, Workload]) -> tuple[FloorKey, ...]:
    """The keys of the primary metric's floors: of each cell, and of all together where there are several."""
    cells = [cell.identity for cell in plan.experiment.cells]
    together = [ALL_CELLS] if len(cells) > 1 else []
    return tuple(floor_key(plan, cell, plan.experiment.metric, workloads) for cell in (*cells, *together))


# -------------------------------------------------------------------------------------------------- keeping


@dataclass(frozen=True, slots=True, kw_only=True)
class Harvest:
    """The records that a study's control gives; `lack` says why there are none, or not of all cells."""

    records: tuple[FloorRecord, ...]
    lack: str = ""


def has_one_rig(experiment: Experiment) -> bool:
    """Whether everything is measured on the same machines, without booting them for visits."""
    return experiment.one_rig and steady_host(experiment) is not None


def has_control(plan: Plan) -> bool:
    """Whether a study of the plan can give a floor at all."""
    if plan.experiment.synthetic is not None or not has_one_rig(plan.experiment):
        return False
    enough = len(plan.blocks) >= LEAST_DIFFERENCES
    return enough and any(one.control is ControlKind.SAME for one in plan.experiment.environments)


def harvest_floors(study: StoredStudy, workloads: Mapping[str, Workload]) -> Harvest:
    """Noise-floor records of a study's control, one for each metric of a comparison with enough differences.

    A study whose host changed while it was measured gives none.

    Raises:
        HostLostError, HostNotFitError: the machine of its servers cannot be asked what it is like.
    """
    # numpy, for which commands that only plan do not wait
    from pgstrata.compare import SECONDARY_METRICS  # noqa: PLC0415
    from pgstrata.compare.noise.floors import control_differences  # noqa: PLC0415

    loaded = study.load(metrics=SECONDARY_METRICS, series=COMPARED_SERIES)
    plan = loaded.plan
    host = study.fingerprints().get(CONDITIONS)
    if host is None:
        return Harvest(records=(), lack="the study does not say what its host was like when it began")
    changed = host != observe_rig(plan.experiment)
    if changed or any(reason.code == "fingerprint_changed" for run in loaded.runs for reason in run.reasons):
        return Harvest(records=(), lack="the host changed while the study was measured")
    metrics = tuple(dict.fromkeys((plan.experiment.metric, *SECONDARY_METRICS)))
    found = control_differences(plan, loaded.runs, metrics)
    records = tuple(
        FloorRecord(
            key=floor_key(plan, one.cell, one.metric, workloads),
            host=host,
            measured=min((run.started for run in loaded.runs if run.started), default=loaded.created),
            differences=one.d,
            study=f"{loaded.created} {plan.identity} {study.identity}",
            source=loaded.name,
            version=__version__,
        )
        for one in found
        if len(one.d) >= LEAST_DIFFERENCES
    )
    primary = {one.cell: len(one.d) for one in found if one.metric == plan.experiment.metric}
    return Harvest(records=records, lack=_say_lack(plan, primary))


def _say_lack(plan: Plan, differences: Mapping[str, int]) -> str:
    few = {
        cell.identity: differences.get(cell.identity, 0)
        for cell in plan.experiment.cells
        if differences.get(cell.identity, 0) < LEAST_DIFFERENCES
    }
    counted = ", ".join(f"{number} in {cell}" for cell, number in few.items())
    return f"a noise floor needs {LEAST_DIFFERENCES} differences, and there are {counted}" if few else ""


def keep_floors(records: tuple[FloorRecord, ...]) -> Path:
    """Keep them; the folder they are in. DiskFullError, HostNotFitError where they cannot be written."""
    store = FloorStore(find_machine_places().state)
    oldest = datetime.now(UTC) - FLOOR_LIFETIME
    for record in records:
        store.keep(record, oldest=oldest)
    return store.folder


def observe_here() -> Fingerprint:
    """What floors of this host hang on, as it is now."""
    return observe_conditions(LocalHost(), find_machine_places().data)


def observe_rig(experiment: Experiment) -> Fingerprint:
    """The present conditions that noise floors depend on, of the machine of all servers and of those of clients.

    Raises:
        HostLostError, HostNotFitError: one of these machines cannot be asked.
    """
    host = experiment.hosts[0]
    facts = dict(_observe_conditions(host).facts)
    apart = [client for side in experiment.client_sides for client in side if client != host]
    for number, client in enumerate(apart, 1):
        name = "client" if number == 1 else f"client.{number}"
        found = _observe_conditions(client).facts
        facts.update({f"{name}.{fact}": value for fact, value in found.items() if fact not in _OF_SERVERS})
    return Fingerprint(facts=facts)


def _observe_conditions(spec: HostSpec) -> Fingerprint:
    if not spec.remote:
        return observe_here()
    from pgstrata.app.site import open_site  # noqa: PLC0415 - most plans need no other machine

    with open_site(spec.destination) as site:
        return observe_conditions(site.transport, site.places.data)
