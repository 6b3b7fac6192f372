"""The layers of a host as they are done, each under the name of its declaration in `experiment.layers`.

With each stands what it changes with the privilege of root, with sample values; nothing of that is carried out. Who
lets pgstrata use sudo can read beforehand what it would be used for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.experiment.layers import LAYERS
from pgstrata.layers.boot import BootLayer
from pgstrata.layers.cgroups import Controller
from pgstrata.layers.cpu import CpuLayer
from pgstrata.layers.frequency import FOLDER, governor_change, turbo_change
from pgstrata.layers.huge_pages import Pool, asked_of, transparent_change
from pgstrata.layers.limits import LimitsLayer
from pgstrata.layers.memory import MemoryLayer
from pgstrata.layers.storage.layer import StorageLayer
from pgstrata.layers.storage.sites import FileSystem, file_system_label, mkfs_words, mount_options
from pgstrata.layers.sysctl import SysctlLayer, sysctl_change
from pgstrata.model.changes import Change
from pgstrata.model.experiment import Environment
from pgstrata.ports.host import Host
from pgstrata.ports.layer import HostLayer
from pgstrata.system.boots import BootWay, NextBoot, boot_change
from pgstrata.system.groups import base_change, group_change
from pgstrata.system.storage import (
    Place,
    device_change,
    folder_change,
    image_change,
    loop_change,
    mkfs_change,
    mount_change,
    read_ahead_change,
    scheduler_change,
)

_SIZE: Final = 1 << 30
_UNIFIED: Final = 2
_QUEUE: Final = "/sys/block/DISK/queue"
_PROGRAM: Final = re.compile(
    r"(?<![\w./$-])(bootctl|chattr|chmod|chown|dd|fallocate|grub2?-editenv|grub2?-reboot|kexec|losetup|mkdir|mkfs\.\w+|mount|mv|reboot|rm|rmdir|"
    r"sync|systemctl|truncate|umount|wipefs)"
    r"(?![\w.=/-])"
)
_WRITES: Final = re.compile(r"(?:echo|printf|cat)\b[^\n;|&]*[^2&]>\"?[$/f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where it would be done: the folder of file systems, the servers' user, and the version of control groups."""

    storage: str
    user: str
    cgroup: int


def boot_changes(_: Ground) -> Iterator[tuple[str, Change]]:
    """Another kernel for one boot, by the loader or by kexec."""
    for way in (BootWay.GRUB, BootWay.SYSTEMD):
        yield "kernel", boot_change(NextBoot(release="RELEASE", way=way, entry="ENTRY"))
    yield (
        "boot.options",
        boot_change(NextBoot(release="RELEASE", way=BootWay.KEXEC, options=("WORD",), image="IMAGE", line="LINE")),
    )


def memory_changes(_: Ground) -> Iterator[tuple[str, Change]]:
    """Pages that are reserved, and transparent huge pages."""
    for title, size in (("2MB", 2 << 20), ("1GB", 1 << 30)):
        yield f"pages={title}", Pool(page=size, total=0, free=0, promised=0).change(1)
    yield "thp", transparent_change(asked_of("always"))


def sysctl_changes(_: Ground) -> Iterator[tuple[str, Change]]:
    """Parameters of the kernel."""
    yield "sysctl.*", sysctl_change("vm.swappiness", "1")


def cpu_changes(ground: Ground) -> Iterator[tuple[str, Change]]:
    """A group with a quota, and the frequency."""
    yield from _group(ground, "cpu.quota", Controller.CPU, ("cpu.cfs_quota_us", "cpu.max"), "MICROSECONDS")
    yield "cpu.governor", governor_change("GOVERNOR")
    for path in (f"{FOLDER}/intel_pstate/no_turbo", f"{FOLDER}/cpufreq/boost"):
        yield "cpu.turbo", turbo_change(path, "1")


def limits_changes(ground: Ground) -> Iterator[tuple[str, Change]]:
    """Groups with limits; version 1 has none for writes."""
    files = ("memory.limit_in_bytes", "memory.max")
    yield from _group(ground, "limits.memory", Controller.MEMORY, files, "BYTES")
    files = ("blkio.throttle.read_bps_device", "io.max")
    yield from _group(ground, "limits.read_*", Controller.IO, files, "DEVICE BYTES")
    if ground.cgroup == _UNIFIED:
        yield from _group(ground, "limits.write_*", Controller.IO, files, "DEVICE BYTES")


def _group(
    ground: Ground, key: str, controller: Controller, files: tuple[str, str], value: str
) -> Iterator[tuple[str, Change]]:
    """A group with a value in one of two files, by the version of control groups."""
    top = f"/sys/fs/cgroup/{controller.old_name}"
    if ground.cgroup == _UNIFIED:
        top = "/sys/fs/cgroup/pgstrata-KEY"
        yield key, base_change(top, ground.user, (controller.value,), ("PID",), (controller.value, "GROUP"))
    name = files[ground.cgroup - 1]
    yield key, group_change(f"{top}/pgstrata-KEY-ENVIRONMENT", ground.user, ((name, value),))


def storage_changes(ground: Ground) -> Iterator[tuple[str, Change]]:
    """File systems on loop devices, on devices and in memory, and the queue of a disk."""
    place = Place(base=f"{ground.storage}/pgstrata-KEY-ENVIRONMENT-1")
    label = file_system_label("0000")
    for kind in FileSystem:
        words = mkfs_words(kind, "", label)
        for change in (
            folder_change(place),
            image_change(place, _SIZE),
            loop_change(place, 512),
            mkfs_change(place, "/dev/LOOP", kind, words, _SIZE),
            mount_change(place, "/dev/LOOP", kind, mount_options("", image=True), ground.user),
        ):
            yield f"filesystem={kind}", change
    kind = FileSystem.EXT4
    for change in (
        folder_change(place),
        device_change(place.base, "/dev/DEVICE", label, mkfs_words(kind, "", label)),
        mount_change(place, "/dev/DEVICE", kind, mount_options("", image=False), ground.user),
    ):
        yield "storage.device", change
    # beside what filesystem and storage.device are made of
    for change in (
        folder_change(place),
        mount_change(place, "tmpfs", "tmpfs", ("size=BYTES",), ground.user),
    ):
        yield "storage.wal, storage.installation", change
    yield "storage.scheduler", scheduler_change("DISK", f"{_QUEUE}/scheduler", "SCHEDULER")
    yield "storage.read_ahead", read_ahead_change("DISK", f"{_QUEUE}/read_ahead_kb", 128)


def files_of(change: Change) -> tuple[str, ...]:
    """Files of the kernel that it writes, where its name does not say so already."""
    return tuple(
        word for word in change.do.arguments if word.startswith(("/sys/", "/proc/")) and word not in change.what
    )


def programs_of(change: Change) -> tuple[str, ...]:
    """The programs by which it is made and undone, as `programs_in`."""
    makers = (word for word in change.do.arguments if word.startswith("mkfs."))
    return programs_in("\n".join((change.do.text, change.undo.text, *makers)))


def programs_in(text: str) -> tuple[str, ...]:
    """The programs by which the text of a script changes something, sorted; `write` where it writes a file itself."""
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return tuple(sorted({*_PROGRAM.findall(code), *(("write",) if _WRITES.search(code) else ())}))


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSite:
    """What a layer is made for.

    `host` acts as the user that servers run as, and `key`, safe in paths, names what belongs to the study there.
    `environments` are all of the host, because a group of one of them concerns the others; where their data lie, the
    layer of `storage` says. `clients` gives the machines from which an environment is loaded.
    """

    host: Host
    key: str
    environments: Sequence[Environment]
    storage: StorageLayer
    clients: Callable[[Environment], Sequence[Host]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerEntry:
    """A layer: how it is made, and what it changes as root, with sample values, by the lines of `doctor`."""

    make: Callable[[LayerSite], HostLayer]
    changes: Callable[[Ground], Iterator[tuple[str, Change]]]


HOST_LAYERS: Final[dict[str, LayerEntry]] = {
    "boot": LayerEntry(make=lambda site: BootLayer(site.host), changes=boot_changes),
    "sysctl": LayerEntry(make=lambda site: SysctlLayer(site.host), changes=sysctl_changes),
    "storage": LayerEntry(make=lambda site: site.storage, changes=storage_changes),
    "memory": LayerEntry(make=lambda site: MemoryLayer(site.host), changes=memory_changes),
    "limits": LayerEntry(
        make=lambda site: LimitsLayer(site.host, site.key, site.storage.folder_of, site.environments),
        changes=limits_changes,
    ),
    "cpu": LayerEntry(
        make=lambda site: CpuLayer(site.host, site.key, environments=site.environments, clients=site.clients),
        changes=cpu_changes,
    ),
}
"""Every layer, the lowest first."""


def make_host_layers(
    host: Host, key: str, environments: Sequence[Environment], *, data: str, storage: str,
    clients: Callable[[Environment], Sequence[Host]] | None = None,
) -> tuple[HostLayer, ...]:  # fmt: skip
    """The layers of a host, the lowest first; folders as of `StorageLayer`, `clients` as of `LayerSite`."""
    layer = StorageLayer(host, key, data=data, storage=storage)
    site = LayerSite(host=host, key=key, environments=environments, storage=layer, clients=clients)
    return tuple(entry.make(site) for entry in HOST_LAYERS.values())


def privileged_changes(ground: Ground) -> Iterator[tuple[str, Change]]:
    """Every kind of change that is made as root, by its line of `doctor` and in that order."""
    for name in LAYERS:
        yield from HOST_LAYERS[name].changes(ground)
