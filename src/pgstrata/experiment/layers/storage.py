"""File systems for parts of a server, the devices below them, I/O scheduler and read-ahead."""

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from pgstrata.experiment.keys import WrongValueError, suggest
from pgstrata.experiment.layers.declaration import (
    FactorKey,
    Layer,
    LayerKey,
    Together,
    level_text,
    one_of,
    read_options,
    read_word,
    size,
)
from pgstrata.experiment.needs import (
    DEVICE_LISTED,
    SCHEDULERS_NEEDED,
    HostLine,
    file_system_line,
    listed_devices,
    programs_needed,
    schedulers,
)
from pgstrata.experiment.values import TABLE, Scalar
from pgstrata.model.storage import WORDS

_DEVICE: Final = re.compile(r"/dev/[A-Za-z0-9_][A-Za-z0-9_.:+@/-]*")
_FILE_SYSTEMS: Final = ("ext4", "xfs", "btrfs")


def _read_device(value: Scalar) -> str:
    text = level_text(value)
    if not _DEVICE.fullmatch(text) or "/." in text:
        raise WrongValueError(f"{text!r} is not the path of a device", 'write for example "/dev/nvme1n1"')
    return text


def _read_place(value: Scalar) -> str:
    text = level_text(value)
    if text.startswith("/"):
        return _read_device(value)
    if text.lower() not in WORDS:
        device = 'or the path of a device that may be overwritten, such as "/dev/nvme1n1"'
        raise WrongValueError(f"{text!r} is not storage of its own", f"{suggest(text.lower(), WORDS)}; {device}")
    return text.lower()


_key: Final[Callable[..., LayerKey]] = partial(LayerKey, together=Together.FOR_ONE)

STORAGE: Final = Layer(
    factors={
        "filesystem": FactorKey(
            meaning="File system of the data, made anew on a loop device wherever the data are cloned anew: "
            "ext4, xfs, btrfs.",
            wrong='"zfs"',
            wrong_levels='["ext4", "zfs"]',
        ),
        "storage": FactorKey(
            kind=TABLE,
            meaning="Of the data's storage: mkfs, mount (options), size, device (on the list), scheduler, read_ahead. "
            "Of WAL and installation: wal, installation (same, loop, memory, a device on the list).",
            wrong='{ size = "1kB" }',
            wrong_levels='{ readahead = ["8kB"] }',
        ),
    },
    keys={
        "filesystem": _key(
            one_of(*_FILE_SYSTEMS),
            '`"ext4"`, `"xfs"`, `"btrfs"`: made anew for each run, on a loop device with direct I/O',
        ),
        "storage.mkfs": _key(read_options, "options of mkfs, as one text; for every file system that is made"),
        "storage.mount": _key(read_options, 'mount options, such as `"noatime"`; the same'),
        "storage.size": _key(size(64 * 1024**2), "size of the data's file system; else what the data and the WAL need"),
        "storage.device": _key(
            _read_device, "a block device that `/etc/pgstrata/devices` allows, instead of a loop device"
        ),
        "storage.scheduler": _key(read_word, "I/O scheduler of the device on which the data lie"),
        "storage.read_ahead": _key(size(0), "a size: read-ahead of that device"),
        "storage.wal": _key(
            _read_place,
            '`"same"` (with the data), `"loop"` (an image of its own), `"memory"`, or a device that '
            "`/etc/pgstrata/devices` allows: where the WAL lies",
        ),
        "storage.installation": _key(
            _read_place,
            '`"same"` (where it is), `"loop"`, `"memory"` or such a device: from where a copy of the server is started',
        ),
    },
    host=(
        *(file_system_line(kind) for kind in _FILE_SYSTEMS),
        HostLine(key="storage.device", needs=(DEVICE_LISTED,), note=listed_devices),
        HostLine(key="storage.scheduler", needs=(SCHEDULERS_NEEDED,), note=lambda case: ", ".join(schedulers(case))),
        HostLine(key="storage.read_ahead"),
        HostLine(
            key="storage.wal, storage.installation",
            needs=(programs_needed("mount"),),
            note=lambda _: "in memory, or on what is said above",
        ),
    ),
)
