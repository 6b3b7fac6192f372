"""The layer `storage`: a file system of its own for the clone; scheduler and read-ahead of its device.

It is made on a loop device with direct I/O, or on a block device that the user put on a list (`storage_device`).

Where no file system is asked for, scheduler and read-ahead are those of the device on which the data lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from secrets import token_hex
from typing import Final, NoReturn

from pgstrata.errors import (
    DiskFullError,
    HostNotFitError,
    LevelNotTakenError,
    PgstrataError,
    UsageError,
    find_disk_full,
)
from pgstrata.layers.storage_changes import (
    Place,
    data_change,
    folder_change,
    image_change,
    loop_change,
    making_seconds,
    mkfs_change,
    mount_change,
    read_ahead_change,
    scheduler_change,
)
from pgstrata.layers.storage_device import DEVICES, accept_device, device_change, device_script
from pgstrata.layers.storage_options import (
    MAKERS,
    FileSystem,
    check_mount_options,
    file_system_label,
    image_size,
    mkfs_words,
    mount_options,
)
from pgstrata.layers.storage_stack import Observed, Stack, check_script, observe_script, parse_observed
from pgstrata.model.changes import Change, Script
from pgstrata.model.experiment import Environment
from pgstrata.model.launch import Launch, Needs
from pgstrata.ports.host import Command, Host
from pgstrata.ports.ledger import Ledger
from pgstrata.ports.server import RunningServer, Sql
from pgstrata.units import render_bytes

_PREFIX: Final = "storage."
_OF_A_FILE_SYSTEM: Final = ("storage.mkfs", "storage.mount", "storage.size", "storage.device")
_KEYS: Final = frozenset({*_OF_A_FILE_SYSTEM, "storage.scheduler", "storage.read_ahead"})
_TOOLS: Final[Mapping[str, str]] = {
    "losetup": "mount", "mount": "mount", "umount": "mount", "findmnt": "util-linux", "blkid": "util-linux",
    "wipefs": "util-linux", "fallocate": "util-linux",
}  # fmt: skip
# What is left of the disk: other programs write too, and the file system below keeps records of its own.
_SPARE: Final = 64 * 1024**2
_SECTOR: Final = 512
_SPACE: Final = "free space, give a smaller storage.size, or set PGSTRATA_DATA to a folder on a larger file system"
_RIGHTS: Final = (
    "pgstrata must be root here, or may use sudo, and needs loop devices: in a container both may be missing"
)


class StorageLayer:
    """Implements `ports.HostLayer`.

    Args:
        host: acts as the user that servers run as, to whom the folder of a clone is given.
        key: a short name of the study, safe in paths.
        folder: where images are made: an existing folder, on the file system whose disk is to be measured.
        devices: file on the host that lists the block devices that may be overwritten.
    """

    name = "storage"

    def __init__(self, host: Host, key: str, folder: str, devices: str = DEVICES) -> None:
        self._host = host
        self._devices = devices
        self._real: dict[str, str] = {}
        self._key = key
        self._folder = folder
        self._numbers = count(1)
        self._data: dict[str, str] = {}

    def concerns(self, environment: Environment) -> bool:
        """Whether the environment asks for a file system, or for a level of the storage."""
        return any(key == "filesystem" or key.startswith(_PREFIX) for key in environment.layers)

    def prepare(self, environment: Environment, needs: Needs, ledger: Ledger) -> Launch:
        """Make the file system that is asked for, then set scheduler and read-ahead of the data's device.

        `needs.data` are the bytes that the file system must hold; `storage.size` overrules it.

        Raises:
            UsageError: options that reach beyond the file system.
            HostNotFitError: a program, the right or the space is missing, or something is there already.
            LevelNotTakenError: a level was accepted and is not there.
        """
        layers = environment.layers
        self._refuse(environment)
        data = ""
        if "filesystem" in layers:
            data = self._make(environment, needs.data, ledger).data
        self._data[environment.name] = data
        if "storage.scheduler" in layers or "storage.read_ahead" in layers:
            self._tune(environment, data or self._folder, ledger)
        return Launch(data=data)

    def folder_of(self, environment: Environment) -> str:
        """Where the clone of an environment lies, once this layer is prepared for it."""
        return self._data.get(environment.name) or self._folder

    def _refuse(self, environment: Environment) -> None:
        layers = environment.layers
        where = f"environment {environment.name}"
        unknown = sorted(key for key in layers if key.startswith(_PREFIX) and key not in _KEYS)
        if unknown:
            raise UsageError(f"{unknown[0]} is not known to this version", where=where,
                             remedy=f"known are {', '.join(sorted(_KEYS))}")  # fmt: skip
        if "filesystem" not in layers and (lost := [key for key in _OF_A_FILE_SYSTEM if key in layers]):
            raise UsageError(f"{lost[0]} means nothing without a file system", where=where,
                             remedy='add filesystem = "ext4", "xfs" or "btrfs"')  # fmt: skip
        if "storage.size" in layers and "storage.device" in layers:
            raise UsageError("storage.size is that of an image file, a device has its own", where=where,
                             remedy="take storage.size or storage.device out")  # fmt: skip

    # --------------------------------------------------------------------------------- a file system of its own

    def _make(self, environment: Environment, needed: int, ledger: Ledger) -> Place:
        layers = environment.layers
        kind = FileSystem(layers["filesystem"])
        label = file_system_label(token_hex(2))
        words = mkfs_words(kind, layers.get("storage.mkfs", ""), label)
        asked = layers.get("storage.device", "")
        options = mount_options(layers.get("storage.mount", ""), image=not asked)
        size = 0 if asked else image_size(kind, layers.get("storage.size", ""), needed)
        name = f"pgstrata-{self._key}-{environment.name}-{next(self._numbers)}"
        place, stack = self._check(name, kind, size)
        where = f"environment {environment.name}"
        if asked:
            device, size = self._accept(asked, where)
            making = replace(device_change(place.base, device, label, words), timeout=making_seconds(size))
            _change(ledger, folder_change(place), where)
        else:
            _change(ledger, folder_change(place), where)
            _change(ledger, image_change(place, size), where)
            state = _change(ledger, loop_change(place, stack.logical_block if stack else 512), where)
            device = _loop_device(state, place)
            making = mkfs_change(place, device, kind, words, size)
        self._change_level(ledger, making, where)
        self._change_level(ledger, mount_change(place, device, kind, options), where)
        _change(ledger, data_change(place, self._host.user), where)
        return place

    def _accept(self, asked: str, where: str) -> tuple[str, int]:
        """Its real path, and its bytes."""
        seen = self._run(device_script(asked, self._devices))
        device = accept_device(seen, asked, self._devices, where=where)
        self._real[asked] = device.rpartition("/")[2]
        return device, int(seen.facts.get("sectors", "0")) * _SECTOR

    def _check(self, name: str, kind: FileSystem, size: int) -> tuple[Place, Stack | None]:
        """Where the file system will be, and what that lies on; HostNotFitError where it cannot be made.

        `size` is that of the image, 0 where there will be none.
        """
        packages = {**_TOOLS, f"mkfs.{kind}": MAKERS[kind].package}
        seen = self._run(check_script(self._folder, name, packages))
        if "folder" not in seen.facts:
            raise HostNotFitError("this is no folder that can be used", where=self._folder,
                                  remedy="set PGSTRATA_DATA to a folder of your own")  # fmt: skip
        if seen.missing:
            package = packages[seen.missing[0]]
            raise HostNotFitError(f"the program {seen.missing[0]} is missing", where=self._host.name,
                                  remedy=f"install the package {package} (apt-get install {package})")  # fmt: skip
        if "taken" in seen.facts:
            raise HostNotFitError(
                "this is there already: another pgstrata left it, or it is not pgstrata's", where=seen.facts["taken"],
                remedy="see `pgstrata host status` and `pgstrata host restore`; what they do not know, remove yourself",
            )  # fmt: skip
        if size and "loops" in seen.facts:
            raise HostNotFitError("this host has no loop devices (/dev/loop-control)", where=self._host.name,
                                  remedy="modprobe loop; in a container, give it the device")  # fmt: skip
        free = int(seen.facts["free"])
        if size and free < size + _SPARE:
            raise DiskFullError(
                f"an image of {render_bytes(size)} does not fit: {render_bytes(free)} are free", where=self._folder,
                remedy=_SPACE,
            )  # fmt: skip
        return Place(base=f"{seen.facts['folder']}/{name}"), seen.stack

    def _change_level(self, ledger: Ledger, change: Change, where: str) -> None:
        """A change that fails where the user's options, or this kernel, do not allow it."""
        try:
            ledger.change(change)
        except LevelNotTakenError as error:
            _raise_failed(error, change, where, "see what it says above: options that it takes, a kernel that has the "
                                                f"file system, and the right to mount; {_RIGHTS}")  # fmt: skip

    # ------------------------------------------------------------------------------------ scheduler, read-ahead

    def _tune(self, environment: Environment, folder: str, ledger: Ledger) -> None:
        layers, where = environment.layers, f"environment {environment.name}"
        stack = self._run(observe_script(folder, None)).stack
        if stack is None or not stack.devices:
            kind = stack.mount.type if stack else "nothing that can be seen"
            raise HostNotFitError(f"the data lie on {kind}, which has no block device", where=folder,
                                  remedy="set PGSTRATA_DATA to a folder on a disk, or add filesystem")  # fmt: skip
        if scheduler := layers.get("storage.scheduler"):
            _set_schedulers(stack, scheduler, ledger, where)
        if "storage.read_ahead" in layers:
            _set_read_ahead(stack, int(layers["storage.read_ahead"]), ledger, where)

    # -------------------------------------------------------------------------------------------------- observe

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:  # noqa: ARG002 - the Protocol's
        """What lies below the folder in which the server works, from file system to disks.

        A server that somebody else runs is not looked at: its folder may be on another machine.
        """
        if server.postmaster_pid is None:
            return {}
        where = f"environment {server.environment.name}"
        seen = self._run(observe_script(server.clone.location, server.postmaster_pid))
        inside, real = seen.facts["inside"], seen.facts["real"]
        if inside and inside != real:
            raise LevelNotTakenError(f"the server works in {inside}, its data should lie in {real}", where=where,
                                     remedy="this is a defect of pgstrata: please report it")  # fmt: skip
        if seen.stack is None:
            self._raise_missing(server, where)
            return {}
        layers = server.environment.layers
        assert_file_system(layers, seen.stack, self._real.get(layers.get("storage.device", "")), where)
        _assert_queue(layers, seen.stack, where)
        return _facts(seen.stack)

    def _raise_missing(self, server: RunningServer, where: str) -> None:
        if self.concerns(server.environment):
            raise LevelNotTakenError(f"the file system below {server.clone.location} cannot be seen", where=where,
                                     remedy="install the package util-linux, which has findmnt")  # fmt: skip

    def _run(self, script: Script) -> Observed:
        return parse_observed(self._host.run(Command(argv=script.argv)).text)


def _change(ledger: Ledger, change: Change, where: str) -> str:
    """A change that every host with the right and the space can make."""
    try:
        return ledger.change(change)
    except LevelNotTakenError as error:
        _raise_failed(error, change, where, _RIGHTS)


def _raise_failed(error: PgstrataError, change: Change, where: str, remedy: str) -> NoReturn:
    if full := find_disk_full("\n".join((error.what, *error.details))):
        raise DiskFullError(
            f"the disk is full: {full}", where=change.what,
            remedy=_SPACE,
        ) from error  # fmt: skip
    raise HostNotFitError(
        f"{change.what} cannot be made", where=where, details=(error.what, *error.details), remedy=remedy
    ) from error


def _loop_device(state: str, place: Place) -> str:
    """The path of the device of which the state is given; LevelNotTakenError where it is buffered."""
    device, _, flags = state.partition(" ")
    if not device.startswith("/dev/") or "\n" in state:
        raise LevelNotTakenError(f"the image has no loop device of its own: {state!r}", where=place.image,
                                 remedy="see losetup --list")  # fmt: skip
    if flags != "dio=1":
        raise LevelNotTakenError(
            f"the loop device {device} has no direct I/O: the page cache of this host would be measured",
            where=place.image, remedy="set PGSTRATA_DATA to a folder on ext4, xfs or btrfs",
        )  # fmt: skip
    return device


def _set_schedulers(stack: Stack, scheduler: str, ledger: Ledger, where: str) -> None:
    if not stack.scheduled:
        raise HostNotFitError(f"no device below has a choice of schedulers: {stack.render()}", where=where,
                              remedy="take storage.scheduler out")  # fmt: skip
    for device in stack.scheduled:
        if scheduler not in device.schedulers:
            raise HostNotFitError(
                f"{device.disk} has no scheduler {scheduler}, it has {', '.join(device.schedulers)}", where=where,
                remedy="choose one of these, or load its module (such as modprobe bfq)",
            )  # fmt: skip
        state = _change(ledger, scheduler_change(device.disk, device.scheduler_file, scheduler), where)
        seen = state.partition("\n")[0]
        if seen != scheduler:
            raise LevelNotTakenError(f"scheduler {scheduler} was asked for, {device.disk} has {seen}", where=where,
                                     remedy="choose one that this device takes")  # fmt: skip


def _set_read_ahead(stack: Stack, size: int, ledger: Ledger, where: str) -> None:
    """Of the uppermost device only: it is the mounted one whose read-ahead counts."""
    device, kilobytes = stack.devices[0], size // 1024
    seen = _change(ledger, read_ahead_change(device.disk, device.read_ahead_file, kilobytes), where)
    if seen != str(kilobytes) or size % 1024:
        raise LevelNotTakenError(
            f"a read-ahead of {size} bytes was asked for, {device.disk} has {seen} kB", where=where,
            remedy="give a multiple of the page size, such as 128kB, or 0 for none",
        )  # fmt: skip


def assert_file_system(layers: Mapping[str, str], stack: Stack, device: str | None, where: str) -> None:
    """`device` is the name of the device that was asked for, None for a loop device."""
    if "filesystem" not in layers:
        return
    kind, top = layers["filesystem"], stack.devices[0] if stack.devices else None
    right = top is not None and (top.name == device if device else top.facts.get("loop/dio") == "1")
    if stack.mount.type != kind or not right:
        raise LevelNotTakenError(
            f"{kind} on {device or 'a loop device with direct I/O'} was asked for, the data lie on {stack.render()}",
            where=where,
            remedy="see `pgstrata host status`: was the mount changed, or the image moved?",
        )  # fmt: skip
    options = mount_options(layers.get("storage.mount", ""), image=not device)
    check_mount_options(options, stack.mount.options, where=where)


def _assert_queue(layers: Mapping[str, str], stack: Stack, where: str) -> None:
    seen = {"storage.scheduler": _scheduler(stack), "storage.read_ahead": _read_ahead(stack)}
    for key, value in seen.items():
        if layers.get(key, value) != value:
            raise LevelNotTakenError(f"{key} = {layers[key]} was asked for, it is {value or 'not there'}", where=where,
                                     remedy="somebody else changed it: keep this host to pgstrata")  # fmt: skip


def _scheduler(stack: Stack) -> str:
    return ", ".join(sorted({device.scheduler for device in stack.scheduled}))


def _read_ahead(stack: Stack) -> str:
    size = stack.devices[0].read_ahead if stack.devices else None
    return "" if size is None else str(size)


def _facts(stack: Stack) -> Mapping[str, str]:
    facts = {
        "storage.filesystem": stack.mount.type,
        "storage.mount_options": ",".join(stack.mount.lasting_options),
        "storage.device": stack.devices[0].render(names=False) if stack.devices else stack.mount.source,
        "storage.scheduler": _scheduler(stack),
        "storage.read_ahead": _read_ahead(stack),
        "storage.stack": stack.render(names=False),
    }
    return {name: value for name, value in facts.items() if value}
