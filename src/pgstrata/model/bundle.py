"""A bundle, which is a study as one portable file, and its manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "manifest.json.sig"
NAMESPACE: Final = "pgstrata"
"""The namespace of signatures (`ssh-keygen -Y sign -n`): a signature made for another purpose is not accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledFile:
    """A file of a study: its path relative to the study's folder, with `/`, its size in bytes, its SHA-256."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The contents of a bundle. `files` are in the order of the archive; `anonymous` says that names were replaced.

    `study` is the name of the study, `plan` the identity of its plan, `runs` the number of runs, `version` the version
    of the pgstrata that wrote the bundle.
    """

    format: int
    study: str
    plan: str
    runs: int
    version: str
    anonymous: bool
    files: tuple[BundledFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files, as they will be unpacked."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """The signer of a bundle: `key` as ssh-keygen names it; `principal` is its owner, empty if no list was given."""

    key: str
    principal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """What was replaced in an anonymous bundle: `numbers` of different names by kind, and files that were left out.

    `kept` are names that were not replaced everywhere, because they are too ordinary.
    """

    numbers: tuple[tuple[str, int], ...]
    left_out: tuple[str, ...]
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundled:
    """A bundle that was written: its path, size in bytes, the SHA-256 of its manifest, and its signer."""

    path: str
    size: int
    manifest: Manifest
    digest: str
    signer: Signer | None = None
    replaced: Replaced | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbundled:
    """A bundle that was checked and unpacked: its folder, and its signer (None if it is not signed)."""

    folder: str
    manifest: Manifest
    digest: str
    signer: Signer | None = None
