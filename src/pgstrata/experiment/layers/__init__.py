"""The layers that an experiment file knows, one module each, and their keys.

What belongs here: spelling and ranges. What a host has of what is asked for, the layer itself finds out, whose class
stands under the same name in `pgstrata.layers.registry`.
"""

import re
from collections.abc import Mapping
from typing import Final

from pgstrata.experiment.keys import WrongValueError, suggest
from pgstrata.experiment.layers.boot import BOOT
from pgstrata.experiment.layers.build import BUILD
from pgstrata.experiment.layers.cpu import CPU
from pgstrata.experiment.layers.declaration import Layer, LayerKey
from pgstrata.experiment.layers.limits import LIMITS
from pgstrata.experiment.layers.memory import MEMORY
from pgstrata.experiment.layers.storage import STORAGE
from pgstrata.experiment.layers.sysctl import SYSCTL
from pgstrata.experiment.values import Scalar

LAYERS: Final[dict[str, Layer]] = {
    "boot": BOOT,
    "memory": MEMORY,
    "cpu": CPU,
    "limits": LIMITS,
    "storage": STORAGE,
    "sysctl": SYSCTL,
}
"""Every layer of the host by name, in the order of the reference."""

_SYSCTL: Final = re.compile(r"[a-z0-9_]+([./][A-Za-z0-9_:@-]+)+")


def layer_keys() -> Mapping[str, LayerKey]:
    """The keys of all layers, and of builds, which change nothing of the host."""
    return {key: found for layer in (BUILD, *LAYERS.values()) for key, found in layer.keys.items()}


def read_level(key: str, value: Scalar) -> str:
    """The normalised text of a level of `key`, such as "pages" or "cpu.quota".

    Raises:
        WrongValueError: there is no such key, or the value is none of it.
    """
    return find_layer_key(key).read(value)


def find_layer_key(key: str) -> LayerKey:
    """The declaration of a key of a layer; WrongValueError where its layer has no such key."""
    keys = layer_keys()
    table, _, name = key.partition(".")
    if table == "sysctl" and (not _SYSCTL.fullmatch(name) or ".." in name):
        raise WrongValueError(f"{name!r} cannot be the name of a sysctl", "write it as sysctl -a does: vm.swappiness")
    found = keys.get(key) or keys.get(f"{table}.*")
    if found is None:
        known = sorted(known for known in keys if known.startswith(f"{table}."))
        raise WrongValueError(f"the layer {table!r} has no key {name!r}", suggest(key, known))
    return found
