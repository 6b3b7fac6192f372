"""The kernel that a machine boots, and words of its command line."""

import re
from typing import Final

from pgstrata.experiment.keys import WrongValueError
from pgstrata.experiment.layers.declaration import FactorKey, Layer, LayerKey, level_text
from pgstrata.experiment.needs import HostLine, Need, programs_needed
from pgstrata.experiment.values import TABLE, Scalar
from pgstrata.model.abilities import HostCase
from pgstrata.model.boot import NO_OPTIONS

_RELEASE: Final = re.compile(r"[0-9][A-Za-z0-9._+~-]*")
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]+(=[A-Za-z0-9_.,:/@+*%-]*)?")
# Words with which the machine would not come back as pgstrata knows it.
_OF_THE_MACHINE: Final = frozenset(
    {"root", "rootflags", "rootfstype", "init", "rdinit", "initrd", "ro", "rw", "single"}
)


def _read_kernel(value: Scalar) -> str:
    text = level_text(value)
    if isinstance(value, float):
        raise WrongValueError(f"{text!r} is a number, and 6.10 would be 6.1", f'write it in quotes: kernel = "{text}"')
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
        raise WrongValueError("there is no word in it", f'write "{NO_OPTIONS}" for the usual command line')
    for word in words:
        if not _WORD.fullmatch(word):
            raise WrongValueError(
                f"{word!r} is not a word of a kernel's command line", 'write for example "mitigations=off isolcpus=2-3"'
            )
        if word.partition("=")[0] in _OF_THE_MACHINE:
            raise WrongValueError(f"{word!r} decides whether the machine comes up at all", "take it out")
    return " ".join(words)


def _one_of(*programs: str) -> Need:
    """One of these programs is enough."""

    def lack(case: HostCase) -> str:
        there = any(name in case.abilities.programs for name in programs)
        return (
            "" if there else f"needs a boot loader that can boot an entry once, or the package {case.package('kexec')}"
        )

    return Need(lack=lack, programs=programs)


BOOT: Final = Layer(
    factors={
        "kernel": FactorKey(
            meaning="Kernel that a machine with host = ssh:DESTINATION boots: a version as in uname -r, or its "
            "beginning (the newest that is installed there). Each block boots each kernel once.",
            wrong='"linux"',
            wrong_levels='["6.1", "newest"]',
        ),
        "boot": FactorKey(
            kind=TABLE,
            meaning="The boot of a machine with host = ssh:DESTINATION: options, words of the kernel's command line.",
            wrong='{ options = "root=/dev/sdb1" }',
            wrong_levels='{ options = ["mitigations=off", "init=/bin/sh"] }',
        ),
    },
    keys={
        "kernel": LayerKey(_read_kernel, 'a version as `uname -r` says it, or its beginning: `"6.12"`'),
        "boot.options": LayerKey(
            _read_options,
            'words of the command line beside the usual ones: `"mitigations=off"`; they need kexec; `"none"`: no more',
        ),
    },
    host=(
        HostLine(key="kernel", needs=(_one_of("grub-reboot", "grub2-reboot", "bootctl", "kexec"),)),
        HostLine(key="boot.options", needs=(programs_needed("kexec"),)),
    ),
)
