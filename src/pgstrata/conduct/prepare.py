"""The layers of a host, brought up beneath a server before it starts; the ledger takes them down again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from pgstrata.conduct.arm import ActiveArm
from pgstrata.conduct.rig import Rig, to_the_end
from pgstrata.conduct.targets import targets_entered
from pgstrata.model.experiment import Environment
from pgstrata.model.launch import Launch, Needs
from pgstrata.plan.load import clone_bytes, own_image, wal_apart_bytes
from pgstrata.ports.server import Dataset
from pgstrata.ports.target import Supply

# Only this layer asks the server how much memory it will want in one piece; to find out takes a start of its binary.
_ASKS_FOR_MEMORY: Final = "pages"


@contextmanager
def layers_undone(rig: Rig, environments: Iterable[Environment]) -> Iterator[None]:
    """Whatever is changed within on the hosts of these environments is undone at the end, also of a failure.

    HostNotFitError if it cannot be.
    """
    ledgers = [rig.server_hosts[spec].ledger for spec in dict.fromkeys(each.host for each in environments)]
    with ExitStack() as undoing:
        for ledger in ledgers:
            undoing.callback(to_the_end, partial(ledger.undo_to, ledger.mark()))
        yield


def prepare_layers(rig: Rig, arm: ActiveArm, supply: Supply, dataset: Dataset) -> Launch:
    """Change the host for an environment, the lowest layer first; what they add to the start.

    Raises:
        LevelNotTakenError: a level was accepted and is not there; the run fails with that reason.
        HostNotFitError: the host cannot do it.
    """
    environment = arm.environment
    home = rig.server_host(environment)
    concerned = [layer for layer in home.layers if layer.concerns(environment)]
    if not concerned:
        return Launch()
    needs = Needs()
    if _ASKS_FOR_MEMORY in environment.layers:
        needs = supply.control.needs(environment, supply.build, dataset)
    needs = replace(
        needs, data=_file_system_bytes(rig, arm, dataset), wal=wal_apart_bytes(arm.environments), build=supply.build
    )
    launch = Launch()
    for layer in concerned:
        launch = launch.beneath(layer.prepare(environment, needs, home.ledger))
    return launch


def _file_system_bytes(rig: Rig, arm: ActiveArm, dataset: Dataset) -> int:
    """What a file system of its own must hold: as much for all environments that have one.

    The journal of ext4 and the allocation groups of xfs follow the size: environments would differ in more than what
    was asked for.
    """
    sizes = [clone_bytes(arm.environment, dataset.bytes)]
    if own_image(arm.environment):
        for other in filter(own_image, arm.environments):
            with targets_entered(rig, [other]):
                supply = rig.supply(other)
                sizes.append(clone_bytes(other, supply.datasets.ensure(other, supply.build, arm.cell).bytes))
    return max(sizes)
