"""File systems for parts of a server, made through a host's ledger: on an image, on a device of a list, in memory.

A device is used if it stands in a file that the user wrote on that host, is in use by nobody, and is either empty or
carries a file system that pgstrata made. The last two are looked at by the same script that makes the file system, as
root, right before it does (`system.storage.device_change`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import PurePosixPath
from typing import Final, NoReturn

from pgstrata.errors import DiskFullError, HostNotFitError, LevelNotTakenError, PgstrataError, find_disk_full
from pgstrata.layers.storage.sites import StorageSite
from pgstrata.layers.storage.stack import WALK, Observed, check_script, parse_observed
from pgstrata.model.changes import Change, ShellScript
from pgstrata.model.storage import Medium, Role
from pgstrata.ports.host import Command, Host
from pgstrata.ports.layer import Ledger
from pgstrata.system.storage import (
    PLAIN,
    Place,
    device_change,
    folder_change,
    image_change,
    loop_change,
    making_seconds,
    mkfs_change,
    mount_change,
)
from pgstrata.system.trust import require_root_keeps
from pgstrata.units import render_bytes

DEVICES: Final = "/etc/pgstrata/devices"
"""The list: one path a line, such as /dev/disk/by-id/…; lines that begin with # are comments."""


def device_script(asked: str, devices: str = DEVICES) -> ShellScript:
    """Prints what a device is, and the real paths of those that are on the list."""
    text = (
        PLAIN
        + WALK
        + (
            'real=$(readlink -f -- "$1")\n'
            'printf "== check\\ndevice=%s\\n" "$real"\n'
            '[ -b "$real" ] || echo kind=none\n'
            'file=/sys/class/block/${real##*/}/size; [ ! -r "$file" ] || printf "sectors=%s\\n" "$(cat "$file")"\n'
            'if [ -r "$2" ]; then\n'
            'while read -r path rest || [ -n "$path" ]; do\n'
            'case $path in /dev/*) printf "allowed=%s\\n" "$(readlink -f -- "$path")" ;; esac\n'
            'done <"$2"\n'
            "fi\n"
            'device "${real##*/}" 0 0\n'
        )
    )
    return ShellScript(text=text, arguments=(asked, devices))


def accept_device(seen: Observed, asked: str, devices: str, *, where: str) -> str:
    """The real path of a device; HostNotFitError where it is none, or is not on the list."""
    real = seen.facts["device"]
    if "kind" in seen.facts:
        raise HostNotFitError(
            f"{asked} is not a block device", where=where, remedy="see lsblk for those that there are"
        )
    if real not in seen.allowed:
        raise HostNotFitError(
            f"{asked} is not on the list of devices that pgstrata may overwrite",
            where=where,
            remedy=f"if nothing on it is needed, write its path on a line of its own into {devices}",
        )
    return real


# What is left of the disk: other programs write too, and the file system below keeps records of its own.
_SPARE: Final = 64 * 1024**2
_SECTOR: Final = 512
_KB: Final = 1024
_SPACE: Final = (
    "free space, give a smaller storage.size (or max_wal_size, for the WAL), or set PGSTRATA_STORAGE to a folder on a "
    "larger file system"
)
_STORAGE: Final = (
    "set PGSTRATA_STORAGE to a folder on the disk that is to be measured, to which root alone can write, as to all "
    "folders above it, and which everybody can enter"
)
_KEPT: Final = "give the file and the folders above it to root, and let nobody else write there (chown, chmod go-w)"
_RIGHTS: Final = (
    "pgstrata must be root here, or be allowed to use sudo, and needs loop devices. In a container both may be missing"
)


@dataclass(slots=True)
class Making:
    """Makes the file systems of one study.

    Args:
        host: acts as the user that servers run as, to whom the folder in each file system is given.
        key: a short name of the study, safe in paths.
        folder: where images and mount points are made; made if it is missing.
        devices: file on the host that lists the block devices that may be overwritten.

    `real` are the names of devices that were accepted, by what was asked for.
    """

    host: Host
    key: str
    folder: str
    devices: str
    real: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(init=False, default_factory=lambda: count(1))

    def make(self, environment: str, sites: Sequence[StorageSite], ledger: Ledger) -> Mapping[Role, Place]:
        """All file systems of an environment, each in a place of its own; nothing is made unless all can be.

        Raises:
            HostNotFitError: a program, the right or the space is missing, or something is there already.
            DiskFullError: images or memory do not suffice.
            LevelNotTakenError: a level was accepted and is not there.
        """
        if not sites:
            return {}
        where = f"environment {environment}"
        base = f"pgstrata-{self.key}-{environment}-{next(self._numbers)}"
        names = {site.role: base if site.role is Role.DATA else f"{base}-{site.role}" for site in sites}
        there = self._find_ground()
        seen = self._check(there, sites, tuple(names.values()))
        folder = seen.facts["folder"].rstrip("/") + self.folder.removeprefix(there.rstrip("/"))
        devices = {site.role: self._accept(site.device, where) for site in sites if site.medium is Medium.DEVICE}
        places: dict[Role, Place] = {}
        for site in sites:
            place = Place(base=f"{folder}/{names[site.role]}")
            change_host(ledger, folder_change(place), where)
            match site.medium:
                case Medium.LOOP:
                    source = _make_image(site, place, seen.stack.logical_block if seen.stack else 512, ledger, where)
                case Medium.DEVICE:
                    source = _make_on_device(site, place, devices[site.role], ledger, where)
                case Medium.MEMORY | Medium.SAME:
                    source = "pgstrata"
            _change_level(ledger, mount_change(place, source, site.kind, site.options, self.host.user), where)
            places[site.role] = place
        return places

    def _accept(self, asked: str, where: str) -> tuple[str, int]:
        """The real path of an accepted device, and its size in bytes."""
        if self.host.exists(self.devices):
            require_root_keeps(self.host, self.devices, remedy=_KEPT)
        seen = self._run(device_script(asked, self.devices))
        device = accept_device(seen, asked, self.devices, where=where)
        self.real[asked] = device.rpartition("/")[2]
        return device, int(seen.facts.get("sectors", "0")) * _SECTOR

    def _find_ground(self) -> str:
        """The folder, or the nearest that exists; HostNotFitError if not root alone writes there."""
        way = (PurePosixPath(self.folder), *PurePosixPath(self.folder).parents)
        there = next(str(folder) for folder in way if self.host.exists(str(folder)))
        require_root_keeps(self.host, there, remedy=_STORAGE)
        return there

    def _check(self, folder: str, sites: Iterable[StorageSite], names: Sequence[str]) -> Observed:
        """What is there where file systems are to be made; HostNotFitError where they cannot be."""
        packages = {name: package for site in sites for name, package in site.packages.items()}
        seen = self._run(check_script(folder, names, packages))
        if "folder" not in seen.facts:
            raise HostNotFitError(
                f"this is not a folder that {self.host.user}, the user that servers run as, can enter",
                where=folder,
                remedy=_STORAGE,
            )
        if seen.missing:
            package = packages[seen.missing[0]]
            raise HostNotFitError(
                f"the program {seen.missing[0]} is missing",
                where=self.host.name,
                remedy=f"install the package {package} (apt-get install {package})",
            )
        if "taken" in seen.facts:
            raise HostNotFitError(
                "this exists already: another pgstrata left it, or it is not pgstrata's",
                where=seen.facts["taken"],
                remedy="see `pgstrata host status` and `pgstrata host restore`; what they do not know, remove yourself",
            )
        self._check_room(sites, seen)
        return seen

    def _check_room(self, sites: Iterable[StorageSite], seen: Observed) -> None:
        sizes = [site.size for site in sites if site.medium is Medium.LOOP]
        if sizes and "loops" in seen.facts:
            raise HostNotFitError(
                "this host has no loop devices (/dev/loop-control)",
                where=self.host.name,
                remedy="modprobe loop; in a container, give it the device",
            )
        free = int(seen.facts["free"])
        if sizes and free < sum(sizes) + _SPARE:
            together = " and ".join(render_bytes(size) for size in sizes)
            raise DiskFullError(
                f"an image of {together} does not fit: {render_bytes(free)} are free", where=self.folder, remedy=_SPACE
            )
        kept = sum(site.size for site in sites if site.medium is Medium.MEMORY)
        memory = int(seen.facts.get("memory", "0")) * _KB
        if kept > memory:
            raise HostNotFitError(
                f"{render_bytes(kept)} in memory were asked for: {render_bytes(memory)} are available",
                where=self.host.name,
                remedy="set a smaller max_wal_size, or use a disk",
            )

    def _run(self, script: ShellScript) -> Observed:
        return parse_observed(self.host.run(Command(argv=script.argv)).text)


def _make_image(site: StorageSite, place: Place, block: int, ledger: Ledger, where: str) -> str:
    """An image with a file system in it; its loop device."""
    change_host(ledger, image_change(place, site.size), where)
    device = _loop_device(change_host(ledger, loop_change(place, block), where), place)
    _change_level(ledger, mkfs_change(place, device, site.kind, site.words, site.size), where)
    return device


def _make_on_device(site: StorageSite, place: Place, device: tuple[str, int], ledger: Ledger, where: str) -> str:
    """A file system on an accepted device, which is given with its bytes; its path."""
    path, size = device
    making = device_change(place.base, path, site.label, site.words)
    _change_level(ledger, replace(making, timeout=making_seconds(size)), where)
    return path


def _change_level(ledger: Ledger, change: Change, where: str) -> None:
    """A change that fails where the user's options, or this kernel, do not allow it."""
    try:
        ledger.change(change)
    except LevelNotTakenError as error:
        _raise_failed(error, change, where, "check its output above: its options, whether the kernel has the file "
                                            f"system, and the right to mount. {_RIGHTS}")  # fmt: skip


def change_host(ledger: Ledger, change: Change, where: str) -> str:
    """A change that every host with the right and the space can make; HostNotFitError, DiskFullError."""
    try:
        return ledger.change(change)
    except LevelNotTakenError as error:
        _raise_failed(error, change, where, _RIGHTS)


def _raise_failed(error: PgstrataError, change: Change, where: str, remedy: str) -> NoReturn:
    if full := find_disk_full("\n".join((error.what, *error.details))):
        raise DiskFullError(f"the disk is full: {full}", where=change.what, remedy=_SPACE) from error
    raise HostNotFitError(
        f"{change.what} cannot be made", where=where, details=(error.what, *error.details), remedy=remedy
    ) from error


def _loop_device(state: str, place: Place) -> str:
    """The path of the device of which the state is given; LevelNotTakenError where it is buffered."""
    device, _, flags = state.partition(" ")
    if not device.startswith("/dev/") or "\n" in state:
        raise LevelNotTakenError(
            f"the image has no loop device of its own: {state!r}", where=place.image, remedy="see losetup --list"
        )
    if flags != "dio=1":
        raise LevelNotTakenError(
            f"the loop device {device} has no direct I/O: the page cache of this host would be measured",
            where=place.image,
            remedy="set PGSTRATA_STORAGE to a folder on ext4, xfs or btrfs",
        )
    return device
