"""The layers of a host as they are done, each under the name of its declaration in `experiment.layers`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.experiment.layers import LAYERS
from pgstrata.layers.cpu import CpuLayer
from pgstrata.layers.limits import LimitsLayer
from pgstrata.layers.memory import MemoryLayer
from pgstrata.layers.privileged import (
    Ground,
    cpu_changes,
    limits_changes,
    memory_changes,
    storage_changes,
    sysctl_changes,
)
from pgstrata.layers.storage.layer import StorageLayer
from pgstrata.layers.sysctl import SysctlLayer
from pgstrata.model.changes import Change
from pgstrata.model.experiment import Environment
from pgstrata.ports.host import Host
from pgstrata.ports.layer import HostLayer


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSite:
    """What a layer is made for.

    `host` acts as the user that servers run as, and `key`, safe in paths, names what belongs to the study there.
    `environments` are all of the host, because a group of one of them concerns the others; where their data lie, the
    layer of `storage` says.
    """

    host: Host
    key: str
    environments: Sequence[Environment]
    storage: StorageLayer


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerEntry:
    """A layer: how it is made, and what it changes as root, with sample values, by the lines of `doctor`."""

    make: Callable[[LayerSite], HostLayer]
    changes: Callable[[Ground], Iterator[tuple[str, Change]]]


HOST_LAYERS: Final[dict[str, LayerEntry]] = {
    "sysctl": LayerEntry(make=lambda site: SysctlLayer(site.host), changes=sysctl_changes),
    "storage": LayerEntry(make=lambda site: site.storage, changes=storage_changes),
    "memory": LayerEntry(make=lambda site: MemoryLayer(site.host), changes=memory_changes),
    "limits": LayerEntry(
        make=lambda site: LimitsLayer(site.host, site.key, site.storage.folder_of, site.environments),
        changes=limits_changes,
    ),
    "cpu": LayerEntry(
        make=lambda site: CpuLayer(site.host, site.key, environments=site.environments), changes=cpu_changes
    ),
}
"""Every layer, the lowest first."""


def make_host_layers(
    host: Host, key: str, environments: Sequence[Environment], *, data: str, storage: str
) -> tuple[HostLayer, ...]:
    """The layers of a host, the lowest first; the folders are as of `StorageLayer`."""
    layer = StorageLayer(host, key, data=data, storage=storage)
    site = LayerSite(host=host, key=key, environments=environments, storage=layer)
    return tuple(entry.make(site) for entry in HOST_LAYERS.values())


def privileged_changes(ground: Ground) -> Iterator[tuple[str, Change]]:
    """Every kind of change that is made as root, by its line of `doctor` and in that order."""
    for name in LAYERS:
        yield from HOST_LAYERS[name].changes(ground)
