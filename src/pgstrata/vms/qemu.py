"""Pure: the command that runs a virtual machine, and signs of a failed boot on its console."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pgstrata.errors import HostNotFitError
from pgstrata.model.boot import Boot

PROGRAM: Final = "qemu-system-x86_64"
ADDRESS: Final = "10.0.2.15"
GATEWAY: Final = "10.0.2.2"
"""Addresses of the guest, and of this machine as the guest sees it, in QEMU's own network (qemu(1), -netdev user)."""
PROOF: Final = "pgstrata.proof"
"""A word of the command line that makes a guest print `PROVED` and power off."""
PROVED: Final = "pgstrata: this guest runs"
WORDS: Final = ("console=ttyS0", "net.ifnames=0", "quiet", "loglevel=4")
_PANIC: Final = re.compile(r"(?:Kernel panic - not syncing|pgstrata: cannot start).*")
_CACHES: Final = ("none", "writeback", "writethrough", "directsync", "unsafe")
_MIB: Final = 1 << 20
_SSH: Final = 22
_LEAST_MEMORY: Final = 128 * _MIB


class Acceleration(StrEnum):
    """How the CPU of a guest is provided: by hardware, or by emulation, whose speed tells nothing of other machines."""

    KVM = "kvm"
    EMULATION = "tcg"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of this machine with which a guest is started, and ports of 127.0.0.1 that lead to the guest.

    `port` leads to its sshd. Each of `ports` leads to the same port of the guest.
    """

    kernel: str
    initrd: str
    root: str = ""
    data: str = ""
    console: str
    port: int = 0
    ports: tuple[int, ...] = ()


def compose(boot: Boot, files: Files, acceleration: Acceleration) -> tuple[str, ...]:
    """The command of one boot; without a root file system, the command of a test guest that only shows that it runs.

    The image of the root file system is not changed: what a guest writes to it is discarded when the guest stops.

    Raises:
        HostNotFitError: a machine cannot have this memory, number of CPUs or cache.
    """
    _require(boot)
    words = (*WORDS, *boot.options) if files.root else (*WORDS, PROOF)
    cpu = "host" if acceleration is Acceleration.KVM else "max"
    command = (
        PROGRAM, "-machine", f"q35,accel={acceleration}", "-cpu", cpu, "-smp", str(boot.cpus),
        "-m", f"{boot.memory // _MIB}M", "-nodefaults", "-no-user-config", "-display", "none",
        "-chardev", f"file,id=console,path={_comma(files.console)}", "-serial", "chardev:console",
        "-kernel", files.kernel, "-initrd", files.initrd, "-append", " ".join(words),
    )  # fmt: skip
    if not files.root:
        return (*command, "-no-reboot")
    forwards = map(_forward, ((files.port, _SSH), *((port, port) for port in files.ports)))
    return (
        *command,
        "-drive", f"file={_comma(files.root)},if=virtio,format=raw,snapshot=on",
        "-drive", f"file={_comma(files.data)},if=virtio,format=raw,cache={boot.cache}",
        "-netdev", ",".join(("user,id=net,restrict=on", *forwards)),
        "-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci",
    )  # fmt: skip


def _forward(pair: tuple[int, int]) -> str:
    here, there = pair
    return f"hostfwd=tcp:127.0.0.1:{here}-{ADDRESS}:{there}"


def _comma(path: str) -> str:
    """A path within an option of QEMU's, where a comma separates."""
    return path.replace(",", ",,")


def _require(boot: Boot) -> None:
    if boot.cache not in _CACHES:
        remedy = f"use one of {', '.join(_CACHES)}"
        raise HostNotFitError(f"QEMU has no cache mode {boot.cache!r}", where="vm.cache", remedy=remedy)
    if boot.memory < _LEAST_MEMORY or boot.cpus < 1:
        what = "a virtual machine cannot start with so little memory, or without a CPU"
        raise HostNotFitError(what, where="vm.memory, vm.cpus", remedy="give it at least 128 MB and one CPU")


def find_panic(console: str) -> str:
    """The line of a console that shows that the guest will not come up, or is no longer up; empty where none does."""
    found = _PANIC.search(console)
    return found[0].strip() if found else ""


def last_lines(console: str, most: int = 8) -> tuple[str, ...]:
    """The last lines of a console that are not blank."""
    return tuple(line.rstrip() for line in console.splitlines() if line.strip())[-most:]
