"""Pure: which file systems an environment asks for, one for each part of its server that is to lie on its own.

What of the keys would mean nothing is refused here; whether this host can make them, it is asked later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Final

from pgstrata.errors import UsageError
from pgstrata.experiment.conflicts import meaningless
from pgstrata.experiment.layers import LAYERS
from pgstrata.layers.storage.options import MAKERS, FileSystem, file_system_label, image_size, mkfs_words, mount_options
from pgstrata.model.experiment import Environment
from pgstrata.model.storage import Medium, Role, device_of, medium_of

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
