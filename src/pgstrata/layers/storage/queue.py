"""I/O scheduler and read-ahead of the device below the data: set through the ledger, and seen again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pgstrata.errors import HostNotFitError, LevelNotTakenError
from pgstrata.layers.storage.making import change_host
from pgstrata.layers.storage.stack import DeviceStack
from pgstrata.ports.ledger import Ledger
from pgstrata.system.storage import read_ahead_change, scheduler_change

SCHEDULER: Final = "storage.scheduler"
READ_AHEAD: Final = "storage.read_ahead"


def tune(layers: Mapping[str, str], stack: DeviceStack | None, folder: str, ledger: Ledger, where: str) -> None:
    """Set what is asked for; HostNotFitError where there is no such thing, LevelNotTakenError where it did not take."""
    if stack is None or not stack.devices:
        kind = stack.mount.type if stack else "nothing that can be seen"
        raise HostNotFitError(
            f"the data lie on {kind}, which has no block device",
            where=folder,
            remedy="set PGSTRATA_DATA to a folder on a disk, or add filesystem",
        )
    if scheduler := layers.get(SCHEDULER):
        _set_schedulers(stack, scheduler, ledger, where)
    if READ_AHEAD in layers:
        _set_read_ahead(stack, int(layers[READ_AHEAD]), ledger, where)


def _set_schedulers(stack: DeviceStack, scheduler: str, ledger: Ledger, where: str) -> None:
    if not stack.scheduled:
        raise HostNotFitError(
            f"no device below has a choice of schedulers: {stack.render()}",
            where=where,
            remedy="take storage.scheduler out",
        )
    for device in stack.scheduled:
        if scheduler not in device.schedulers:
            raise HostNotFitError(
                f"{device.disk} has no scheduler {scheduler}, it has {', '.join(device.schedulers)}",
                where=where,
                remedy="choose one of these, or load its module (such as modprobe bfq)",
            )
        state = change_host(ledger, scheduler_change(device.disk, device.scheduler_file, scheduler), where)
        seen = state.partition("\n")[0]
        if seen != scheduler:
            raise LevelNotTakenError(
                f"scheduler {scheduler} was asked for, {device.disk} has {seen}",
                where=where,
                remedy="choose one that this device takes",
            )


def _set_read_ahead(stack: DeviceStack, size: int, ledger: Ledger, where: str) -> None:
    """Of the uppermost device only: it is the mounted one whose read-ahead counts."""
    device, kilobytes = stack.devices[0], size // 1024
    seen = change_host(ledger, read_ahead_change(device.disk, device.read_ahead_file, kilobytes), where)
    if seen != str(kilobytes) or size % 1024:
        raise LevelNotTakenError(
            f"a read-ahead of {size} bytes was asked for, {device.disk} has {seen} kB",
            where=where,
            remedy="give a multiple of the page size, such as 128kB, or 0 for none",
        )


def assert_queue(layers: Mapping[str, str], stack: DeviceStack, where: str) -> None:
    """LevelNotTakenError where a level is not what was asked for."""
    seen = {SCHEDULER: scheduler_of(stack), READ_AHEAD: read_ahead_of(stack)}
    for key, value in seen.items():
        if layers.get(key, value) != value:
            raise LevelNotTakenError(
                f"{key} = {layers[key]} was asked for, it is {value or 'not there'}",
                where=where,
                remedy="somebody else changed it: keep this host to pgstrata",
            )


def scheduler_of(stack: DeviceStack) -> str:
    """The schedulers in use, of all disks that have a choice."""
    return ", ".join(sorted({device.scheduler for device in stack.scheduled}))


def read_ahead_of(stack: DeviceStack) -> str:
    """Bytes as text, empty where there is no device."""
    size = stack.devices[0].read_ahead if stack.devices else None
    return "" if size is None else str(size)
