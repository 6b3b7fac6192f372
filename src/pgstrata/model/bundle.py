"""A bundle: a study as one portable file, and what its manifest says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "manifest.json.sig"
NAMESPACE: Final = "pgstrata"
"""That of signatures (`ssh-keygen -Y sign -n`), so that none made for something else is taken for one of a bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledFile:
    """A file of a study: its path below the study's folder, with `/`, its bytes and the SHA-256 of its content."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a bundle holds. `files` are in the order of the archive; `anonymous` says that names were replaced.

    `study` is the name of the study, `plan` the identity of its plan, `runs` their number, `version` the pgstrata that
    wrote the bundle.
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
    """Whose key signed a bundle: `key` as ssh-keygen names it; `principal` is empty where no list says whose it is."""

    key: str
    principal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """What was replaced in an anonymous bundle: how many different things, by kind; and files that were left out.

    `kept` are names too ordinary to be replaced wherever they stand.
    """

    numbers: tuple[tuple[str, int], ...]
    left_out: tuple[str, ...]
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundled:
    """A bundle that was written: where, its size in bytes, the SHA-256 of its manifest, and the key that signed it."""

    path: str
    size: int
    manifest: Manifest
    digest: str
    signer: Signer | None = None
    replaced: Replaced | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbundled:
    """A bundle that was checked and unpacked: into which folder, and by which key it is signed (None: by none)."""

    folder: str
    manifest: Manifest
    digest: str
    signer: Signer | None = None
