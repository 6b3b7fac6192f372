"""How a machine is to be booted: the kernel, and options of its command line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pgstrata.model.experiment import ControlKind, Environment, Experiment, HostKind, HostSpec
from pgstrata.units import render_bytes

KERNEL: Final = "kernel"
OPTIONS: Final = "boot.options"
NO_OPTIONS: Final = "none"
MEMORY: Final = "vm.memory"
CPUS: Final = "vm.cpus"
CACHE: Final = "vm.cache"
OF_MACHINES: Final = (MEMORY, CPUS, CACHE)
"""Keys that only virtual machines have."""
KEYS: Final = (KERNEL, OPTIONS, *OF_MACHINES)
"""The keys of `Environment.layers` that need a boot."""


_READ_ONLY_FOR_GRUB: Final = frozenset({"btrfs", "zfs", "bcachefs"})
_DEVICES_READ_ONLY_FOR_GRUB: Final = ("/dev/mapper/", "/dev/dm-", "/dev/md")

DEFAULT_MEMORY: Final = 2 * 1024**3
DEFAULT_CPUS: Final = 2
DEFAULT_CACHE: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """A boot as environments ask for it.

    `kernel` is a series such as 6.1 (the newest installed kernel of it) or a whole release; empty for the default
    kernel of the machine. `options` are added to its command line. Virtual machines also have `memory`
    in bytes, a number of `cpus`, and `cache`, how the host caches the data disk (QEMU's `cache`).
    """

    kernel: str = ""
    options: tuple[str, ...] = ()
    memory: int = DEFAULT_MEMORY
    cpus: int = DEFAULT_CPUS
    cache: str = DEFAULT_CACHE

    @property
    def text(self) -> str:
        """The boot in words, for messages."""
        return " ".join((self.kernel or "its default kernel", *self.options))

    @property
    def hardware(self) -> str:
        """What a virtual machine consists of, in words."""
        cpus = "1 CPU" if self.cpus == 1 else f"{self.cpus} CPUs"
        return f"{render_bytes(self.memory)}, {cpus}, cache {self.cache}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootGroup:
    """The boot that environments of one block share; `again`: that of the control `reboot`, which boots once more."""

    host: HostSpec
    boot: Boot
    again: bool = False


def grub_writes(kind: str, source: str) -> bool:
    """Whether GRUB can change its environment at the boot, and so take back the choice of an entry.

    It cannot on file systems with checksums, LVM, RAID and encrypted disks (the GRUB manual, "The GRUB environment
    block"). An entry chosen there would be started at each power cycle.

    Args:
        kind: of the file system with /boot/grub, as in /proc/mounts; empty if not known.
        source: its device.
    """
    return kind not in _READ_ONLY_FOR_GRUB and not source.startswith(_DEVICES_READ_ONLY_FOR_GRUB)


def is_of_series(release: str, asked: str) -> bool:
    """Whether a release is the one that was asked for, or of that series: 6.1.0-44 is of 6.1, and 6.12 is not.

    Every release is of the empty series.
    """
    return release.startswith(asked) and not (asked[-1:].isdigit() and release[len(asked) : len(asked) + 1].isdigit())


def release_key(release: str) -> tuple[tuple[int, int | str], ...]:
    """Orders releases as versions: 3.10 after 3.9, and 6.1.0-rc1 before 6.1.0."""
    parts = re.findall(r"\d+|[a-z]+", release.lower())
    key = ((2, int(part)) if part.isdecimal() else (0 if part == "rc" else 1, part) for part in parts)
    return (*key, (1, ""))


def find_release(releases: Iterable[str], asked: str) -> str:
    """The release that was asked for, or the newest of that series; empty where there is none."""
    fitting = [each for each in releases if is_of_series(each, asked)]
    return asked if asked in fitting else max(fitting, key=release_key, default="")


def boot_of(environment: Environment) -> Boot:
    """The boot that an environment asks for."""
    layers = environment.layers
    words = layers.get(OPTIONS, NO_OPTIONS)
    return Boot(
        kernel=layers.get(KERNEL, ""),
        options=() if words == NO_OPTIONS else tuple(words.split()),
        memory=int(layers.get(MEMORY, DEFAULT_MEMORY)),
        cpus=int(layers.get(CPUS, DEFAULT_CPUS)),
        cache=layers.get(CACHE, DEFAULT_CACHE),
    )


def asks_for_boot(environment: Environment) -> bool:
    """Whether an environment has a key that needs a boot."""
    return any(key in environment.layers for key in KEYS)


def booted_hosts(environments: Iterable[Environment]) -> frozenset[HostSpec]:
    """The machines that are booted for each visit: virtual machines, and those for which an environment asks for it."""
    return frozenset(
        each.host
        for each in environments
        if each.host.kind is HostKind.VM or asks_for_boot(each) or each.control is ControlKind.REBOOT
    )


def steady_host(experiment: Experiment) -> HostSpec | None:
    """The machine of all servers, if it is one and is not booted for each visit; only then it has one noise floor."""
    host = experiment.only_host
    return None if host is None or host in booted_hosts(experiment.environments) else host


def boots_of(environments: Iterable[Environment]) -> tuple[BootGroup, ...]:
    """The boots of each block of these environments, each once."""
    every = tuple(environments)
    booted = booted_hosts(every)
    return tuple(dict.fromkeys(group_of(each) for each in every if each.host in booted))


def group_of(environment: Environment) -> BootGroup:
    """The boot of an environment of a booted machine, which others of its block may share."""
    again = environment.control is ControlKind.REBOOT
    return BootGroup(host=environment.host, boot=boot_of(environment), again=again)
