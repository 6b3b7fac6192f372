"""Pure: the command that runs a virtual machine, and what its console says of how the boot went."""

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
"""Of the guest, and from where it is reached, in the network that QEMU makes for it alone (qemu(1), -netdev user)."""
PROOF: Final = "pgstrata.proof"
"""A word of the command line with which a guest only says that it runs, and ends."""
PROVED: Final = "pgstrata: this guest runs"
WORDS: Final = ("console=ttyS0", "net.ifnames=0", "quiet", "loglevel=4")
_PANIC: Final = re.compile(r"Kernel panic - not syncing|pgstrata: cannot start")
_CACHES: Final = ("none", "writeback", "writethrough", "directsync", "unsafe")
_MIB: Final = 1 << 20
_SSH: Final = 22
_LEAST_MEMORY: Final = 128 * _MIB


class Acceleration(StrEnum):
    """How the CPU of a guest is made: by hardware, or by emulation, whose speed says nothing of any other machine."""

    KVM = "kvm"
    EMULATION = "tcg"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of this machine that a guest is started with.

    `port`: where its sshd is reached on 127.0.0.1. Each of `ports` leads from there to the same port of the guest.
    """

    kernel: str
    initrd: str
    root: str = ""
    data: str = ""
    console: str
    port: int = 0
    ports: tuple[int, ...] = ()


def compose(boot: Boot, files: Files, acceleration: Acceleration) -> tuple[str, ...]:
    """The command of one boot; without a root it is the proof that a guest runs at all.

    The root file system is only read: each boot begins alike. What is written to it is forgotten.

    Raises:
        HostNotFitError: no machine can be had with this memory or cache.
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
        raise HostNotFitError(f"QEMU knows no cache {boot.cache!r}", where="vm.cache", remedy=remedy)
    if boot.memory < _LEAST_MEMORY or boot.cpus < 1:
        what = "a virtual machine cannot start with so little"
        raise HostNotFitError(what, where="vm.memory, vm.cpus", remedy="give it 128 MB and one CPU at least")


def find_panic(console: str) -> bool:
    """Whether a console shows that the guest will not come up."""
    return _PANIC.search(console) is not None


def last_lines(console: str, most: int = 8) -> tuple[str, ...]:
    """The last lines of a console that say anything."""
    return tuple(line.rstrip() for line in console.splitlines() if line.strip())[-most:]
