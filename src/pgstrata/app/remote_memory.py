"""The memory of other machines, asked where settings follow from it; nothing is made or changed there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pgstrata.app.places import observe_memory
from pgstrata.errors import HostLostError, HostNotFitError
from pgstrata.experiment.defaults import complete_experiment, hosts_to_ask
from pgstrata.model.experiment import Experiment, HostSpec
from pgstrata.model.plan import HostCapacity
from pgstrata.model.workload import Workload

_GIVE: Final = "or give shared_buffers and effective_cache_size in the file"


def complete_by_hosts(
    experiment: Experiment, capacity: HostCapacity, workloads: Mapping[str, Workload], *, sure: bool = True
) -> tuple[Experiment, HostCapacity]:
    """The experiment with a value for each setting that nobody gave, by the memory of all machines with servers.

    Also the capacity with the memory of those that were asked; where no setting hangs on it nobody is.

    Args:
        experiment: as parsed.
        capacity: this machine.
        workloads: those that exist, by name.
        sure: another machine has to be there; otherwise one that is not is left out, with a note that says so.

    Raises:
        HostNotFitError, HostLostError: another machine cannot be asked.
    """
    memories: dict[HostSpec, int] = {}
    notes: list[str] = []
    for spec in hosts_to_ask(experiment):
        try:
            memories[spec] = _ask(spec)
        except (HostLostError, HostNotFitError) as error:
            if sure:
                error.remedy = "; ".join(filter(None, (error.remedy, _GIVE)))
                raise
            notes.append(
                f"{spec.text} cannot be asked how much memory it has ({error.what}): what follows from memory may be "
                f"something else when it is there; {_GIVE}"
            )
    noted = replace(experiment, notes=(*experiment.notes, *notes))
    known = replace(capacity, elsewhere=memories)
    return complete_experiment(noted, known, workloads), known


def _ask(spec: HostSpec) -> int:
    from pgstrata.app.site import open_site  # noqa: PLC0415 - most plans need no other machine

    with open_site(spec.destination) as site:
        return observe_memory(site.transport)
