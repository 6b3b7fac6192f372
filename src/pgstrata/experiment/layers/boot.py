"""The kernel that a machine boots, words of its command line, and what a virtual machine consists of."""

import re
from typing import Final

from pgstrata.experiment.keys import WrongValueError
from pgstrata.experiment.layers.declaration import FactorKey, Layer, LayerKey, level_text, one_of, size
from pgstrata.experiment.needs import HostLine, Need, programs_needed
from pgstrata.experiment.values import TABLE, Scalar
from pgstrata.model.abilities import HostCase
from pgstrata.model.boot import NO_OPTIONS, grub_writes
from pgstrata.model.mounts import find_mount

_RELEASE: Final = re.compile(r"[0-9][A-Za-z0-9._+~-]*")
_MOST_CPUS: Final = 1024
_OF_GRUB: Final = frozenset({"grub-reboot", "grub2-reboot"})
_ALWAYS_ENOUGH: Final = frozenset({"bootctl", "kexec"})
_LEAST_MEMORY: Final = 256 * 1024**2
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]+(=[A-Za-z0-9_.,:/@+*%-]*)?")
# Words with which the machine would not come back as pgstrata knows it.
_OF_THE_MACHINE: Final = frozenset(
    {"root", "rootflags", "rootfstype", "init", "rdinit", "initrd", "ro", "rw", "single"}
)


def _read_kernel(value: Scalar) -> str:
    text = level_text(value)
    if isinstance(value, float):
        what = f"{text!r} is written as a number, in which 6.10 and 6.1 are the same"
        raise WrongValueError(what, f'write it in quotes: kernel = "{text}"')
    if not _RELEASE.fullmatch(text):
        raise WrongValueError(
            f"{text!r} is not a version of a kernel",
            'write it as uname -r does, or its beginning: "6.12", "6.1.0-44-amd64"',
        )
    return text


def _read_options(value: Scalar) -> str:
    words = level_text(value).split()
    if isinstance(value, bool | int | float):
        raise WrongValueError("the command line of a kernel is one text", 'write for example "mitigations=off"')
    if not words:
        raise WrongValueError("the command line is empty", f'write "{NO_OPTIONS}" for the usual command line')
    for word in words:
        if not _WORD.fullmatch(word):
            raise WrongValueError(
                f"{word!r} is not an option of a kernel's command line",
                'write for example "mitigations=off isolcpus=2-3"',
            )
        if word.partition("=")[0] in _OF_THE_MACHINE:
            raise WrongValueError(f"{word!r} could keep the machine from booting", "take it out")
    return " ".join(words)


def _way_to_boot_once() -> Need:
    """One of these programs is enough; of GRUB only where it can take its choice back."""

    def lack(case: HostCase) -> str:
        there = case.abilities.programs.keys()
        if there & _ALWAYS_ENOUGH:
            return ""
        if there & _OF_GRUB:
            mount = find_mount(case.abilities.files.get("/proc/self/mountinfo", ""), "/boot/grub")
            if mount is None or grub_writes(mount.kind, mount.source):
                return ""
            return f"needs the package {case.package('kexec')}: GRUB cannot reset its choice on {mount.kind}"
        return f"needs a boot loader that can boot an entry once, or the package {case.package('kexec')}"

    return Need(lack=lack, programs=(*sorted(_OF_GRUB), *sorted(_ALWAYS_ENOUGH)))


def _read_cpus(value: Scalar) -> str:
    if isinstance(value, bool | float) or not level_text(value).isdecimal():
        raise WrongValueError(f"{level_text(value)!r} is not a number of CPUs", "write for example vm.cpus = 4")
    if not 1 <= int(value) <= _MOST_CPUS:
        raise WrongValueError(f"{value} cannot be the number of CPUs", f"write 1 to {_MOST_CPUS}")
    return str(int(value))


BOOT: Final = Layer(
    factors={
        "kernel": FactorKey(
            meaning="Kernel that the machine boots: a version as in uname -r, or its beginning (then the newest of "
            "that series there). Each block boots each kernel once. On this machine `run` needs --reboot.",
            wrong='"linux"',
            wrong_levels='["6.1", "newest"]',
        ),
        "boot": FactorKey(
            kind=TABLE,
            meaning="The boot of the machine: options that are added to the kernel's command line.",
            wrong='{ options = "root=/dev/sdb1" }',
            wrong_levels='{ options = ["mitigations=off", "init=/bin/sh"] }',
        ),
        "vm": FactorKey(
            kind=TABLE,
            meaning="Memory, CPUs and caching of the data disk of a virtual machine with host = vm:IMAGE.",
            wrong='{ memory = "2 apples" }',
            wrong_levels='{ cpus = [2, "all"] }',
        ),
    },
    keys={
        "kernel": LayerKey(_read_kernel, 'a version as `uname -r` says it, or its beginning: `"6.12"`'),
        "boot.options": LayerKey(
            _read_options,
            'options that are added to the command line: `"mitigations=off"`; `"none"` adds none. Needs kexec, '
            "except in virtual machines",
        ),
        "vm.memory": LayerKey(
            size(_LEAST_MEMORY), 'memory of the virtual machine, at least `"256MB"`; default `"2GB"`'
        ),
        "vm.cpus": LayerKey(_read_cpus, "number of its CPUs; default 2"),
        "vm.cache": LayerKey(
            one_of("none", "directsync", "writethrough", "writeback", "unsafe"),
            "how the host caches its data disk, in QEMU's words; default `none`, which bypasses the host's page cache",
        ),
    },
    host=(
        HostLine(key="kernel", needs=(_way_to_boot_once(),)),
        HostLine(key="boot.options", needs=(programs_needed("kexec"),)),
        HostLine(key="vm.memory, vm.cpus, vm.cache", needs=(programs_needed("qemu-system-x86_64"),), root=False),
    ),
)
