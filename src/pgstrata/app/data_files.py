"""Files of the user's data on this machine: their size, kind and digest, in little memory however large they are.

Digests of large files are kept in the cache, by device, inode, size and times. A plan that is only shown does not
wait for them.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from pgstrata.app.places import expand_home
from pgstrata.model import sizes
from pgstrata.model.own_data import DataFile, DumpForm
from pgstrata.system.files import write_atomically
from pgstrata.system.reading import open_regular, read_regular

_AT_ONCE: Final = 64 << 20
"""Bytes that are read for each plan: a tenth of a second."""
_MOST_KEPT: Final = 1000
_CHUNK: Final = 1 << 20
_CUSTOM: Final = b"PGDMP"
_TAR_AT: Final = 257
_TAR: Final = b"ustar"
_CONTENTS: Final = "toc.dat"


class DataFiles:
    """Looks at files that an experiment file in `folder` names.

    Args:
        folder: of the experiment file.
        cache: a file of digests; it is written where its folder exists.
        sure: whether large files are read; otherwise those without a known digest have none.
    """

    def __init__(self, folder: Path, cache: Path, *, sure: bool) -> None:
        self._folder = folder.absolute()
        self._cache = cache
        self._sure = sure

    def __call__(self, name: str) -> DataFile:
        """OSError; ValueError for a name that cannot stand in a command, UsageError for an unknown home folder."""
        if any(character in name for character in "\n\r\0"):
            raise ValueError(name)
        path = Path(os.path.normpath(self._folder / expand_home(name)))
        if path.is_dir():
            return self._look_at_folder(name, path)
        with open_regular(path) as stream:
            status = os.fstat(stream.fileno())
            form = _form_of(stream)
            digest = self._digest(stream, status)
        return DataFile(name=name, path=str(path), digest=digest, bytes=status.st_size, stamp=_stamp(status), form=form)

    def _look_at_folder(self, name: str, path: Path) -> DataFile:
        if not (path / _CONTENTS).is_file():
            raise IsADirectoryError(errno.EISDIR, f"a folder without {_CONTENTS}", str(path))
        whole, size, known = hashlib.sha256(), 0, True
        for file in sorted(path.iterdir()):
            with open_regular(file) as stream:
                status = os.fstat(stream.fileno())
                digest = self._digest(stream, status)
            whole.update(f"{file.name}\0{digest}\0".encode("utf-8", "surrogateescape"))
            size, known = size + status.st_size, known and bool(digest)
        stamp = _stamp((path / _CONTENTS).stat())
        return DataFile(
            name=name,
            path=str(path),
            digest=whole.hexdigest() if known else "",
            bytes=size,
            stamp=stamp,
            form=DumpForm.DIRECTORY,
        )

    def _digest(self, stream: BinaryIO, status: os.stat_result) -> str:
        if status.st_size <= _AT_ONCE:
            return _read(stream)
        key = f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
        known = self._known()
        if key not in known and self._sure:
            known[key] = _read(stream)
            self._keep(known)
        return known.get(key, "")

    def _known(self) -> dict[str, str]:
        with suppress(OSError, ValueError):
            found = json.loads(read_regular(self._cache, most=sizes.MARKER))
            if isinstance(found, dict):
                return {str(key): str(value) for key, value in found.items()}
        return {}

    def _keep(self, known: dict[str, str]) -> None:
        latest = dict(list(known.items())[-_MOST_KEPT:])
        with suppress(OSError):  # the next time takes longer
            if self._cache.parent.is_dir():
                write_atomically(self._cache, json.dumps(latest).encode())


def _read(stream: BinaryIO) -> str:
    stream.seek(0)
    digest = hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _stamp(status: os.stat_result) -> str:
    """As `stat -c %d:%i:%s:%Y` prints it."""
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{int(status.st_mtime)}"


def _form_of(stream: BinaryIO) -> DumpForm:
    head = stream.read(_TAR_AT + len(_TAR))
    if head.startswith(_CUSTOM):
        return DumpForm.CUSTOM
    if head[_TAR_AT:] == _TAR and head.startswith(_CONTENTS.encode()):
        return DumpForm.TAR
    return DumpForm.NONE
