"""Copies of installations that the server's user cannot enter, such as those below root's home.

A copy is named by what is in it, so that a rebuilt server is copied again and an unchanged one is not.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.errors import DiskFullError, HostNotFitError
from pgstrata.servers.shelf import DISK_REMEDY, Shelf
from pgstrata.system import files

_PARTS: Final = ("bin", "lib", "lib64", "share")
_CATALOGUES: Final = ("share/postgres.bki", "share/postgresql/postgres.bki", "share/pgsql/postgres.bki")


@dataclass(frozen=True, slots=True, kw_only=True)
class Copier:
    """Copies installations on the coordinator into the cache.

    Args:
        cache: folder on the coordinator.
        note: is told what takes a while.
    """

    cache: str
    note: Callable[[str], None]

    def copy(self, prefix: str) -> str | None:
        """The prefix of the copy, or None if the installation is not all in one folder and so cannot be moved.

        Raises:
            DiskFullError: no room.
            HostNotFitError: the installation cannot be read, or the cache not be written.
        """
        source = Path(prefix)
        if not any((source / name).is_file() for name in _CATALOGUES):
            return None
        try:
            name = f"prefix-{_digest(source)}"
        except OSError as error:
            raise self._explain(error, prefix) from error

        def fill(_scratch: Path, partial: Path) -> None:
            self.note(f"copying {prefix}, which the server's user cannot enter")
            try:
                for part in _PARTS:
                    if (source / part).is_dir():
                        files.copy_tree_for_all(source / part, partial / part)
            except OSError as error:
                raise self._explain(error, prefix) from error

        shelf = Shelf(cache=self.cache)
        shelf.bring(name, fill)
        return str(shelf.folder(name))

    def _explain(self, error: OSError, prefix: str) -> DiskFullError | HostNotFitError:
        if files.is_full(error):
            return DiskFullError(
                "the file system of the cache is full",
                where=self.cache,
                remedy=DISK_REMEDY,
            )
        return HostNotFitError(
            f"the installation cannot be copied to where the server's user may enter: {error.strerror or error}",
            where=str(error.filename or prefix),
            remedy="install it where everybody may enter",
        )


def _files(source: Path) -> Iterator[Path]:
    for part in _PARTS:
        for folder, _, names in sorted(os.walk(source / part)):
            yield from (path for name in sorted(names) if (path := Path(folder, name)).is_file())


def _digest(source: Path) -> str:
    """Of the content of programs and libraries and the names and sizes of all else."""
    digest = hashlib.sha256()
    for path in _files(source):
        digest.update(f"{path.relative_to(source)}\0{path.stat().st_size}\0".encode())
        if path.relative_to(source).parts[0] != "share":
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
