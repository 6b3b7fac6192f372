"""Pure: which file systems an environment asks for, one for each part of its server that is to lie on its own.

Levels of storage become commands here. What of the keys would mean nothing, and options that reach beyond the file
system that pgstrata makes, are refused; whether this host can make them, it is asked later.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from secrets import token_hex
from typing import Final

from pgstrata.errors import LevelNotTakenError, UsageError
from pgstrata.experiment.conflicts import meaningless
from pgstrata.experiment.layers import LAYERS
from pgstrata.model.experiment import Environment
from pgstrata.model.storage import Medium, Role, device_of, medium_of
from pgstrata.plan.load import image_bytes
from pgstrata.units import render_bytes

MB: Final = 1024**2
# Options that name another device or file, or that are pgstrata's own.
_FOREIGN: Final = re.compile(r"/|\b(?:device|logdev|rtdev|dev|name|file|journal_dev|UUID|LABEL)=")
_MOUNT_REFUSED: Final = frozenset({
    "bind", "rbind", "move", "remount", "loop", "ro", "noauto", "user", "users", "owner", "group", "private", "shared",
    "slave", "unbindable", "suid", "dev", "defaults",
})  # fmt: skip
# Flags of the mount itself that the kernel always shows; others may be shown in other words, or not at all.
_SHOWN: Final = frozenset(
    {"noatime", "nodiratime", "relatime", "sync", "dirsync", "lazytime", "nodev", "nosuid", "noexec"}
)


class FileSystem(StrEnum):
    """File systems that can be made."""

    EXT4 = "ext4"
    XFS = "xfs"
    BTRFS = "btrfs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """How a file system is made: its package, options that are always given, the smallest that it agrees to.

    `valued` are the letters of options that take a value, from the sources (e2fsprogs 1.47, xfsprogs 6.1, btrfs-progs
    6.2): all words are told apart before root's mkfs sees them.

    Nothing is left to be done after the mount (lazy initialisation would be measured), and no blocks are discarded.
    mkfs.ext4 would choose blocks of 1 kB on less than 512 MB, unlike any server. The last of two options counts.
    """

    package: str
    options: tuple[str, ...]
    least: int
    valued: str


MAKERS: Final[Mapping[FileSystem, Maker]] = {
    FileSystem.EXT4: Maker(
        package="e2fsprogs", options=("-q", "-F", "-b", "4096"), least=64 * MB, valued="CEGIJLMNORTUbdegilmorstz"
    ),
    FileSystem.XFS: Maker(package="xfsprogs", options=("-q", "-f", "-K"), least=300 * MB, valued="Lbcdilmnprs"),
    FileSystem.BTRFS: Maker(package="btrfs-progs", options=("-q", "-f", "-K"), least=128 * MB, valued="ALORUbdlmnrs"),
}
# A second -F lets mkfs.ext4 write on a device that is in use, -z writes a file; -L is what pgstrata knows its own by.
_LETTERS_REFUSED: Final[Mapping[str, str]] = {
    "F": "-F would let mkfs write on a device that is in use",
    "L": "the label is pgstrata's own mark",
    "z": "-z would write a file",
}
_DASHES: Final = 2
_EXT4_EXTENDED: Final = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"


def mkfs_words(kind: FileSystem, options: str, label: str) -> tuple[str, ...]:
    """The command without the device; UsageError for options that name other devices, files or labels.

    mkfs.ext4 takes the last -E only, so that the user's is joined with what is always given.
    """
    try:
        asked = shlex.split(options)
    except ValueError as error:
        raise _refused("storage.mkfs", options, f"cannot be split into words: {error}") from error
    for word in asked:
        if _FOREIGN.search(word):
            raise _refused("storage.mkfs", options, f"{word!r} would name another device or file")
    given = list(_take_options(kind, options, asked))
    extended = [value for option, value in given if option == "-E"] if kind is FileSystem.EXT4 else []
    if kind is FileSystem.EXT4:
        given = [("-E", ",".join([_EXT4_EXTENDED, *extended])), *(pair for pair in given if pair[0] != "-E")]
    words = (word for pair in given for word in pair if word)
    return (f"mkfs.{kind}", *MAKERS[kind].options, "-L", label, *words)


def _take_options(kind: FileSystem, options: str, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each option with its value, empty where it has none, as getopt(3) of the program takes them."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name = word.partition("=")[0]
        if len(name) > _DASHES and "--label".startswith(name):
            raise _refused("storage.mkfs", options, "the label is pgstrata's own mark")
        if not word.startswith("-") or not word.strip("-"):
            raise _refused("storage.mkfs", options, f"{word!r} is not an option: write the value of a long one with =")
        if word.startswith("--"):
            yield word, ""
            continue
        for place, letter in enumerate(word[1:], start=2):
            if reason := _LETTERS_REFUSED.get(letter):
                raise _refused("storage.mkfs", options, reason)
            if letter not in MAKERS[kind].valued:
                yield f"-{letter}", ""
                continue
            value = word[place:] or (rest.pop(0) if rest else "")
            if not value:
                raise _refused("storage.mkfs", options, f"-{letter} lacks its value")
            yield f"-{letter}", value
            break


def mount_options(options: str, *, image: bool = True) -> tuple[str, ...]:
    """Mount options one by one; UsageError for those that mean more than a file system of pgstrata's own.

    On an image nothing is discarded, asked or not (btrfs does it by itself from Linux 6.2): it would make holes, and
    the next write would have to allocate blocks anew. Switching discards off at the loop device would be surer, but
    Linux 6.18 does not let them be switched on again. The servers' user writes there: setuid bits and device nodes have
    no effect.
    """
    words = tuple(word.strip() for word in options.split(",") if word.strip())
    for word in words:
        if image and word.partition("=")[0] == "discard":
            raise _refused("storage.mount", options, f"{word!r} would make holes in an image file")
        if word in _MOUNT_REFUSED or _FOREIGN.search(word) or word.lower().startswith("x-"):
            raise _refused("storage.mount", options, f"{word!r} is not for this mount")
    # of two options that exclude each other, the last one counts
    return (*(("nodiscard",) if image else ()), *words, "nosuid", "nodev")


def check_mount_options(asked: Sequence[str], seen: Sequence[str], *, where: str) -> None:
    """LevelNotTakenError where an option is seen to be different; what the kernel does not show cannot be judged."""
    values = dict(option.partition("=")[::2] for option in seen)
    for option in asked:
        name, _, value = option.partition("=")
        missing = option in _SHOWN and option not in values
        # btrfs shows compress=zstd as compress=zstd:3
        other = bool(value) and name in values and value not in {values[name], values[name].partition(":")[0]}
        if missing or other or (name.startswith("no") and name[2:] in values):
            raise LevelNotTakenError(
                f"the mount option {option} was asked for, the mount has {','.join(seen)}",
                where=where,
                remedy="write it as the mount shows it, or choose one that this kernel takes",
            )


def image_size(kind: FileSystem, asked: str, needed: int) -> int:
    """Bytes of the image, whole MB: what was asked for, else what is needed, the same for all file systems.

    Args:
        kind: the file system; each has a smallest size.
        asked: `storage.size`, bytes as text, empty if it was not given.
        needed: bytes of the clone and of what a run writes; 0 if unknown.

    Raises:
        UsageError: the size that was asked for is too small for the file system itself.
    """
    size = image_bytes(asked, needed)
    if size < MAKERS[kind].least:
        raise UsageError(
            f"{kind} needs at least {render_bytes(MAKERS[kind].least)}, {render_bytes(size)} were asked for",
            where="storage.size",
            remedy="give a larger size, or leave storage.size out: it then follows the data",
        )
    return size


def file_system_label(key: str) -> str:
    """The mark of what pgstrata made, `key` being different each time; xfs allows twelve characters (mkfs.xfs(8))."""
    return f"pgstrata-{key[:3]}"


def _refused(key: str, options: str, why: str) -> UsageError:
    return UsageError(
        f"{key} = {options!r}: {why}", where=key, remedy="leave it out: only the file system itself is made"
    )


PREFIX: Final = "storage."
_KEYS: Final = frozenset(key for key in LAYERS["storage"].keys if key.startswith(PREFIX))
_TOOLS: Final[Mapping[str, str]] = {
    "losetup": "mount", "mount": "mount", "umount": "mount", "findmnt": "util-linux", "blkid": "util-linux",
    "wipefs": "util-linux", "fallocate": "util-linux",
}  # fmt: skip
_USUAL: Final = FileSystem.EXT4
MEMORY_FILE_SYSTEM: Final = "tmpfs"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSite:
    """A file system to be made for one part of a server.

    `kind` is what the kernel calls it; `words` make it (mkfs, without the device), with `label` as pgstrata's mark;
    `size` are its bytes, 0 on a device, which has its own.
    """

    role: Role
    medium: Medium
    kind: str
    options: tuple[str, ...]
    size: int
    device: str = ""
    label: str = ""
    words: tuple[str, ...] = ()

    @property
    def packages(self) -> Mapping[str, str]:
        """The packages of the programs that make it, by program."""
        if self.medium is Medium.MEMORY:
            return {name: package for name, package in _TOOLS.items() if name in {"mount", "umount", "findmnt"}}
        return {**_TOOLS, f"mkfs.{self.kind}": MAKERS[FileSystem(self.kind)].package}


def refuse_meaningless(environment: Environment) -> None:
    """UsageError where a key is not known, or has nothing to work on."""
    layers, where = environment.layers, f"environment {environment.name}"
    unknown = sorted(key for key in layers if key.startswith(PREFIX) and key not in _KEYS)
    if unknown:
        raise UsageError(
            f"{unknown[0]} is not known to this version", where=where, remedy=f"known are {', '.join(sorted(_KEYS))}"
        )
    for _, what, remedy in meaningless(environment):
        raise UsageError(what, where=where, remedy=remedy)


def find_sites(environment: Environment, needed: Mapping[Role, int]) -> tuple[StorageSite, ...]:
    """All file systems that an environment asks for, with `needed` bytes in each; UsageError for bad options."""
    media = ((role, medium_of(environment, role)) for role in Role)
    return tuple(
        _site(environment, role, medium, needed.get(role, 0)) for role, medium in media if medium is not Medium.SAME
    )


def _site(environment: Environment, role: Role, medium: Medium, needed: int) -> StorageSite:
    layers = environment.layers
    size = layers.get("storage.size", "") if role is Role.DATA else ""
    kind = FileSystem(layers.get("filesystem", _USUAL))
    if medium is Medium.MEMORY:
        size_of = image_size(kind, "", needed)
        return StorageSite(role=role, medium=medium, kind=MEMORY_FILE_SYSTEM, size=size_of,
                    options=(f"size={size_of}", "mode=711", "nosuid", "nodev"))  # fmt: skip
    label = file_system_label(token_hex(2))
    image = medium is Medium.LOOP
    return StorageSite(
        role=role, medium=medium, kind=kind, label=label, words=mkfs_words(kind, layers.get("storage.mkfs", ""), label),
        options=mount_options(layers.get("storage.mount", ""), image=image),
        size=image_size(kind, size, needed) if image else 0, device=device_of(environment, role),
    )  # fmt: skip
