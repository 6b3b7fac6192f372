"""What a cell and an environment ask of a server: workload, bytes of data and of memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from pgstrata.errors import PlanRefusedError
from pgstrata.model.experiment import Cell, Environment
from pgstrata.model.storage import Medium, Role, medium_of
from pgstrata.model.workload import DataKind, Workload, own_kind
from pgstrata.units import parse_setting_bytes

MB: Final = 1024**2
EMPTY_CLUSTER: Final = 40 * MB
_DEFAULT_SHARED_BUFFERS: Final = 128 * MB
_BUFFER: Final = 8192
# What a server needs besides its buffers: processes, catalogues, sort memory of simple queries.
_MEMORY_AROUND_BUFFERS: Final = 128 * MB
DEFAULT_MAX_WAL: Final = 1024 * MB
# max_wal_size is a soft limit; rows that are updated leave dead ones behind; a file system keeps space for itself.
_WAL_OVERSHOOT: Final = 1.5
_GROWTH: Final = 1.5
_ROOM: Final = 256 * MB
_FILE_SYSTEM: Final = 1.1
# btrfs gives room away in large pieces, one kind of data each, so that a part of it stays out of reach.
_IMAGE_ROOM: Final = 1.1
_LEAST_IMAGE: Final = 512 * MB
_UNKNOWN_IMAGE: Final = 4096 * MB


def workload_of(cell: Cell, workloads: Mapping[str, Workload]) -> Workload:
    """The workload of a cell; scripts of the author's own run on the data of `custom`, or on the author's own.

    Raises:
        PlanRefusedError: there is no such workload.
    """
    name = "custom" if cell.scripts else cell.workload
    if name not in workloads:
        raise PlanRefusedError(f"there is no workload {name!r}", remedy=f"there are: {', '.join(sorted(workloads))}")
    found = workloads[name]
    return found if cell.data is None else replace(found, data=own_kind(cell.data))


def data_of(cell: Cell, workloads: Mapping[str, Workload]) -> DataKind:
    """The data of a cell, by its workload and its options."""
    return workload_of(cell, workloads).data_for(cell.options)


def data_key(cell: Cell, workloads: Mapping[str, Workload]) -> tuple[object, ...]:
    """Equal for cells that have the same dataset wherever they run in the same environment."""
    kind = data_of(cell, workloads)
    return (kind.name, kind.size(1), cell.scale, cell.options.get("setup_sql"), cell.checkout)


def data_bytes(cell: Cell, workloads: Mapping[str, Workload]) -> int:
    """About how large the data directory of a cell is."""
    return EMPTY_CLUSTER + data_of(cell, workloads).size(cell.scale)


def shared_buffers(environment: Environment) -> int:
    """Bytes of shared_buffers that an environment asks for."""
    return size_setting(environment, "shared_buffers", _DEFAULT_SHARED_BUFFERS, unit=_BUFFER)


def resident_bytes(environment: Environment, cell: Cell, workloads: Mapping[str, Workload]) -> int:
    """About how much memory a server that is up takes, page cache of its data included.

    Buffers that no data reaches are never touched, except as huge pages, which are taken whole.
    """
    buffers, data = shared_buffers(environment), data_bytes(cell, workloads)
    huge = environment.settings.get("huge_pages") == "on" or environment.layers.get("pages") in {"2MB", "1GB"}
    used = buffers if huge else min(buffers, data)
    return used + data + _MEMORY_AROUND_BUFFERS


def clone_bytes(environment: Environment, dataset: int) -> int:
    """Bytes that a file system of its own needs for the clone of such a dataset, and for what a run writes to it."""
    return round(dataset * _GROWTH * _FILE_SYSTEM) + wal_bytes(environment)


def wal_bytes(environment: Environment) -> int:
    """Bytes that a file system of its own needs for the WAL of a run."""
    wal = size_setting(environment, "max_wal_size", DEFAULT_MAX_WAL, unit=MB)
    return round((_WAL_OVERSHOOT * wal + _ROOM) * _FILE_SYSTEM)


def own_image(environment: Environment, role: Role = Role.DATA) -> bool:
    """Whether an image file is made for a part of it, with a file system in it."""
    return medium_of(environment, role) is Medium.LOOP


def wal_apart_bytes(environments: Iterable[Environment]) -> int:
    """What a file system for the WAL alone must hold: as much for all environments that have one, 0 without any."""
    return max((wal_bytes(one) for one in environments if medium_of(one, Role.WAL) is not Medium.SAME), default=0)


def image_bytes(asked: str, needed: int) -> int:
    """Bytes of an image file, whole MB.

    Args:
        asked: `storage.size`, bytes as text, empty if it was not given.
        needed: what its file system must hold (such as `clone_bytes`), 0 if unknown.
    """
    if asked:
        return int(asked) // MB * MB
    return -(-max(_LEAST_IMAGE, round((needed or _UNKNOWN_IMAGE) * _IMAGE_ROOM)) // MB) * MB


def size_setting(environment: Environment, setting: str, default: int, *, unit: int) -> int:
    """A size setting in bytes; numbers without a unit count in the setting's own unit."""
    try:
        return parse_setting_bytes(environment.settings.get(setting, ""), unit)
    except ValueError:
        return default
