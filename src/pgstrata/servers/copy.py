"""Copies of installations that the server's user cannot enter, such as those below root's home.

A copy is named by what is in it, so that a rebuilt server is copied again and an unchanged one is not. Root reads an
installation as the user who could replace it, and follows no links: what that user may not read is not shown to all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pgstrata.errors import DiskFullError, HostNotFitError
from pgstrata.servers.shelf import DISK_REMEDY, ServerSite
from pgstrata.system import files
from pgstrata.system.trees import copy_tree, digest_tree
from pgstrata.system.users import acting_as
from pgstrata.system.ways import find_reader

_PARTS: Final = ("bin", "lib", "lib64", "share")
_CATALOGUES: Final = ("share/postgres.bki", "share/postgresql/postgres.bki", "share/pgsql/postgres.bki")


def copy_installation(site: ServerSite, prefix: str) -> str | None:
    """Copy an installation on the coordinator into the cache.

    Returns:
        The prefix of the copy, or None if the installation is not all in one folder and so cannot be moved.

    Raises:
        DiskFullError: no room.
        HostNotFitError: the installation cannot be read, or several users could replace it; the cache cannot be
            written.
    """
    source, reader = Path(prefix), find_reader(prefix)
    with _reading(site, prefix):
        with acting_as(reader):
            if not any((source / name).is_file() for name in _CATALOGUES):
                return None
        digest = digest_tree(source, reader=reader, only=_PARTS)
    name = f"prefix-{digest[:16]}" + (f"-{reader.uid}" if reader else "")

    def fill(_scratch: Path, partial: Path) -> None:
        site.note(f"copying {prefix}, which the server's user cannot enter")
        with _reading(site, prefix):
            copy_tree(source, partial, reader=reader, only=_PARTS, for_all=True)

    site.shelf.bring(name, fill)
    return str(site.shelf.folder(name))


@contextmanager
def _reading(site: ServerSite, prefix: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if files.is_full(error):
            what = "the file system of the cache is full"
            raise DiskFullError(what, where=site.cache, remedy=DISK_REMEDY) from error
        raise HostNotFitError(
            f"the installation cannot be copied to where the server's user may enter: {error.strerror or error}",
            where=str(error.filename or prefix),
            remedy="install it where everybody may enter",
        ) from error
