"""Copies of installations that the server's user cannot enter, such as those below root's home.

A copy is named by what is in it, so that a rebuilt server is copied again and an unchanged one is not. Root reads an
installation as the user who could replace it, and follows no links: what that user may not read is not shown to all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.errors import DiskFullError, HostNotFitError
from pgstrata.servers.shelf import DISK_REMEDY, Shelf
from pgstrata.system import files
from pgstrata.system.trees import copy_tree, digest_tree
from pgstrata.system.users import acting_as
from pgstrata.system.ways import find_reader

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
            HostNotFitError: the installation cannot be read, or several users could replace it; the cache cannot be
                written.
        """
        source, reader = Path(prefix), find_reader(prefix)
        try:
            with acting_as(reader):
                if not any((source / name).is_file() for name in _CATALOGUES):
                    return None
            name = f"prefix-{digest_tree(source, reader=reader, only=_PARTS)[:16]}" + (
                f"-{reader.uid}" if reader else ""
            )
        except OSError as error:
            raise self._explain(error, prefix) from error

        def fill(_scratch: Path, partial: Path) -> None:
            self.note(f"copying {prefix}, which the server's user cannot enter")
            try:
                copy_tree(source, partial, reader=reader, only=_PARTS, for_all=True)
            except OSError as error:
                raise self._explain(error, prefix) from error

        shelf = Shelf(cache=self.cache, note=self.note)
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
