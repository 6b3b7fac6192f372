"""The layers of a host, brought up beneath a server before it starts; the ledger takes them down again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from pgstrata.conduct.arm import Arm
from pgstrata.conduct.rig import Rig, Supply, to_the_end
from pgstrata.model.launch import Launch, Needs
from pgstrata.plan.load import clone_bytes
from pgstrata.ports.server import Dataset

# Only this layer asks the server how much memory it will want in one piece; to find out takes a start of its binary.
_ASKS_FOR_MEMORY: Final = "pages"


@contextmanager
def layers_undone(rig: Rig) -> Iterator[None]:
    """Whatever is changed on the host within is undone at the end, also of a failure; HostNotFitError if it cannot."""
    mark = rig.ledger.mark()
    try:
        yield
    finally:
        to_the_end(partial(rig.ledger.undo_to, mark))


def prepare_layers(rig: Rig, arm: Arm, supply: Supply, dataset: Dataset) -> Launch:
    """Change the host for an environment, the lowest layer first; what they add to the start.

    Raises:
        LevelNotTakenError: a level was accepted and is not there; the run fails with that reason.
        HostNotFitError: the host cannot do it.
    """
    environment = arm.environment
    concerned = [layer for layer in rig.host_layers if layer.concerns(environment)]
    if not concerned:
        return Launch()
    needs = Needs()
    if _ASKS_FOR_MEMORY in environment.layers:
        needs = supply.control.needs(environment, supply.build, dataset)
    needs = replace(needs, data=clone_bytes(environment, dataset.bytes))
    launch = Launch()
    for layer in concerned:
        launch = launch.beneath(layer.prepare(environment, needs, rig.ledger))
    return launch
