"""The layer `storage`: file systems for data, WAL and installation; scheduler and read-ahead of the data's device.

One is made on a loop device with direct I/O, on a block device that the user put on a list (`storage.device`), or in
memory. Where no file system is asked for the data, scheduler and read-ahead are those of the device on which they lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pgstrata.errors import HostNotFitError, LevelNotTakenError
from pgstrata.layers.storage.installation import assert_installation, install, installed_bytes
from pgstrata.layers.storage.making import DEVICES, Making, change_host
from pgstrata.layers.storage.sites import PREFIX, StorageSite, check_mount_options, find_sites, refuse_meaningless
from pgstrata.layers.storage.stack import (
    DeviceStack,
    Observed,
    observe_script,
    observe_server_script,
    parse_observed,
    parse_roles,
)
from pgstrata.model.experiment import Environment
from pgstrata.model.launch import Launch, Needs
from pgstrata.model.storage import Medium, Role, medium_of
from pgstrata.ports.host import Command, Host
from pgstrata.ports.layer import Ledger
from pgstrata.ports.server import RunningServer, Sql
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
    """Set the read-ahead of the uppermost device, which is the mounted one: only its read-ahead counts."""
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
                remedy="something else changed it: let only pgstrata change this host",
            )


def scheduler_of(stack: DeviceStack) -> str:
    """The schedulers in use, of all disks that have a choice."""
    return ", ".join(sorted({device.scheduler for device in stack.scheduled}))


def read_ahead_of(stack: DeviceStack) -> str:
    """Bytes as text, empty where there is no device."""
    size = stack.devices[0].read_ahead if stack.devices else None
    return "" if size is None else str(size)


_SUBJECTS: Final[Mapping[Role, str]] = {
    Role.DATA: "the data lie",
    Role.WAL: "the WAL lies",
    Role.INSTALLATION: "the installation lies",
}


class StorageLayer:
    """Implements `ports.HostLayer`.

    Args:
        host: acts as the user that servers run as, to whom the folder of a clone is given.
        key: a short name of the study, safe in paths.
        data: where data lie unless a file system is asked for; an existing folder.
        storage: where file systems are made, on the disk that is to be measured; made when it is needed.
        devices: file on the host that lists the block devices that may be overwritten.
    """

    name = "storage"

    def __init__(self, host: Host, key: str, *, data: str, storage: str, devices: str = DEVICES) -> None:
        self._host = host
        self._making = Making(host, key, storage, devices)
        self._folder = data
        self._data: dict[str, str] = {}
        self._former: dict[str, str] = {}

    def concerns(self, environment: Environment) -> bool:
        """Whether the environment asks for a file system, or for a level of the storage."""
        return any(key == "filesystem" or key.startswith(PREFIX) for key in environment.layers)

    def prepare(self, environment: Environment, needs: Needs, ledger: Ledger) -> Launch:
        """Make the file systems that are asked for, then set scheduler and read-ahead of the data's device.

        `needs.data` are the bytes that the data's must hold, which `storage.size` overrules, `needs.wal` those of the
        WAL's; `needs.build` is copied into that of the installation.

        Raises:
            UsageError: options that reach beyond the file system.
            HostNotFitError: a program, the right or the space is missing, or something is there already; a copy of the
                installation does not start.
            LevelNotTakenError: a level was accepted and is not there.
        """
        layers, where = environment.layers, f"environment {environment.name}"
        refuse_meaningless(environment)
        sites = find_sites(environment, self._needed(environment, needs))
        places = self._making.make(environment.name, sites, ledger)
        folders = {role: place.data for role, place in places.items()}
        data = folders.get(Role.DATA, "")
        self._data[environment.name], prefix = data, ""
        if SCHEDULER in layers or READ_AHEAD in layers:
            lies = data or self._folder
            stack = parse_observed(self._run(observe_script(lies).argv)).stack
            tune(layers, stack, lies, ledger, where)
        if Role.INSTALLATION in places and needs.build is not None:
            prefix = install(self._host, needs.build, places[Role.INSTALLATION], where)
            self._former[environment.name] = needs.build.prefix
        return Launch(data=data, wal=folders.get(Role.WAL, ""), prefix=prefix)

    def _needed(self, environment: Environment, needs: Needs) -> Mapping[Role, int]:
        needed = {Role.DATA: needs.data, Role.WAL: needs.wal}
        if needs.build is not None and medium_of(environment, Role.INSTALLATION) is not Medium.SAME:
            needed[Role.INSTALLATION] = installed_bytes(self._host, needs.build, f"environment {environment.name}")
        return needed

    def folder_of(self, environment: Environment) -> str:
        """Where the clone of an environment lies, once this layer is prepared for it."""
        return self._data.get(environment.name) or self._folder

    # -------------------------------------------------------------------------------------------------- observe

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:
        """What lies below the folder in which the server works, its WAL and its program, from file system to disks.

        A server that somebody else runs is not looked at: its folder may be on another machine.
        """
        if server.postmaster_pid is None:
            return {}
        environment = server.environment
        where = f"environment {environment.name}"
        former = self._former.get(environment.name, "") if server.launch.prefix else ""
        script = observe_server_script(
            server.clone.location, server.clone.wal, server.build.program("postgres"), former, server.postmaster_pid
        )
        seen = parse_roles(self._run(script.argv))
        _assert_data_folder(seen[Role.DATA], where)
        stacks = {role: found.stack for role, found in seen.items() if found.stack is not None}
        self._assert_seen(environment, stacks, where)
        if Role.DATA not in stacks:
            return {}
        for site in find_sites(environment, {}):
            assert_file_system(site, stacks[site.role], self._making.real.get(site.device, ""), where)
        assert_queue(environment.layers, stacks[Role.DATA], where)
        _assert_wal(environment, seen, where)
        if f"{PREFIX}{Role.INSTALLATION}" in environment.layers:
            assert_installation(server, former, seen[Role.INSTALLATION], sql, where)
        return _facts(seen, stacks)

    def _assert_seen(self, environment: Environment, stacks: Iterable[Role], where: str) -> None:
        if self.concerns(environment) and (lost := set(Role) - set(stacks)):
            raise LevelNotTakenError(
                f"what {_SUBJECTS[min(lost)]} on cannot be seen",
                where=where,
                remedy="install the package util-linux, which has findmnt",
            )

    def _run(self, argv: tuple[str, ...]) -> str:
        return self._host.run(Command(argv=argv)).text


def _assert_data_folder(seen: Observed, where: str) -> None:
    inside, real = seen.facts["inside"], seen.facts["real"]
    if inside and inside != real:
        raise LevelNotTakenError(
            f"the server works in {inside}, its data should lie in {real}",
            where=where,
            remedy="this is a defect of pgstrata: please report it",
        )


def _assert_wal(environment: Environment, seen: Mapping[Role, Observed], where: str) -> None:
    """The WAL is in the folder that was made for it, or with the data where nothing else was asked for."""
    if f"{PREFIX}{Role.WAL}" not in environment.layers:
        return
    inside, folder = seen[Role.WAL].facts["inside"], seen[Role.WAL].facts["real"] or seen[Role.DATA].facts["real"]
    if not inside.startswith(f"{folder}/"):
        raise LevelNotTakenError(
            f"the server writes its WAL in {inside}, it should be in {folder}",
            where=where,
            remedy="this is a defect of pgstrata: please report it",
        )


def assert_file_system(site: StorageSite, stack: DeviceStack, device: str, where: str) -> None:
    """LevelNotTakenError where a part lies elsewhere; `device` is the name of the device that was asked for, if any."""
    top = stack.devices[0] if stack.devices else None
    match site.medium:
        case Medium.DEVICE:
            right, asked = top is not None and top.name == device, f"{site.kind} on {device}"
        case Medium.LOOP:
            right = top is not None and top.facts.get("loop/dio") == "1"
            asked = f"{site.kind} on a loop device with direct I/O"
        case Medium.MEMORY | Medium.SAME:
            right, asked = True, site.kind
    if stack.mount.type != site.kind or not right:
        raise LevelNotTakenError(
            f"{asked} was asked for, {_SUBJECTS[site.role]} on {stack.render()}",
            where=where,
            remedy="see `pgstrata host status`: was the mount changed, or the image moved?",
        )
    if site.medium is not Medium.MEMORY:
        check_mount_options(site.options, stack.mount.options, where=where)


def _facts(seen: Mapping[Role, Observed], stacks: Mapping[Role, DeviceStack]) -> Mapping[str, str]:
    """Facts of each part by its name, those of the data without one; of a WAL with the data only that it is there."""
    data = stacks[Role.DATA]
    together = seen[Role.WAL].facts["inside"].startswith(f"{seen[Role.DATA].facts['real']}/")
    facts = {
        **_stack_facts(data, PREFIX),
        "storage.scheduler": scheduler_of(data),
        "storage.read_ahead": read_ahead_of(data),
        "storage.wal": "with the data" if together else "apart",
    }
    for role in (Role.INSTALLATION,) if together else (Role.WAL, Role.INSTALLATION):
        if role in stacks:
            facts |= _stack_facts(stacks[role], f"{PREFIX}{role}.")
    return {name: value for name, value in facts.items() if value}


def _stack_facts(stack: DeviceStack, prefix: str) -> Mapping[str, str]:
    return {
        f"{prefix}filesystem": stack.mount.type,
        f"{prefix}mount_options": ",".join(stack.mount.lasting_options),
        f"{prefix}device": stack.devices[0].render(names=False) if stack.devices else stack.mount.source,
        f"{prefix}stack": stack.render(names=False),
    }
