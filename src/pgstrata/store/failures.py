"""Errors of a file system and of SQLite, and what they mean for a study."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgstrata.errors import DiskFullError, PgstrataError, StudyError
from pgstrata.system.files import is_full

_REFUSED = {errno.EROFS, errno.EACCES, errno.EPERM}
_ALMOST_FULL = 64 * 1024
_KEPT = "everything that was committed is kept: free some space and start the same command again"

_NO_PATH = {errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENAMETOOLONG}
"""What is wrong with a path; the disk has nothing to do with it."""
_BROKEN = "check the disk (dmesg), then start the same command again: everything that was committed is kept"


@contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Turn errors of the file system and of SQLite into errors that a user can act on."""
    try:
        yield
    except PgstrataError:
        raise
    except OSError as error:
        raise _explain_os_error(error, folder) from error
    except sqlite3.Error as error:
        raise _explain_sqlite_error(error, folder) from error
    except RecursionError:
        raise StudyError(
            "folders are nested too deeply", where=str(folder), remedy="remove from the study what is not part of it"
        ) from None


@contextmanager
def catalogue_errors(folder: Path) -> Iterator[None]:
    """As `storage_errors`, where the catalogue is read: whatever cannot be understood there is damage."""
    with storage_errors(folder):
        try:
            yield
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
            raise damaged_catalogue(folder, str(error)) from error


def _explain_os_error(error: OSError, folder: Path) -> PgstrataError:
    where = str(error.filename or folder)
    if is_full(error):
        return _disk_full(folder)
    if error.errno in _REFUSED and error.strerror and error.strerror != os.strerror(error.errno):
        # not the kernel has refused it but `system`, with a reason of its own; perhaps nothing was to be written
        remedy = "let one user alone write there (chmod go-w), or keep the study in another folder"
        return StudyError(error.strerror, where=where, remedy=remedy)
    if error.errno in _REFUSED and _is_closed(where):
        return StudyError("the study cannot be read", where=where, remedy=f"check owner and permissions of {folder}")
    if error.errno in _REFUSED:
        return _read_only(folder, where)
    if error.errno in _NO_PATH and not _is_folder(folder):
        return StudyError(
            f"there is no folder at this path, and none can be made: {error.strerror}",
            where=where,
            remedy="check each part of the path, and where links in it lead, or choose another folder for the study",
        )
    return StudyError(error.strerror or str(error), where=where, remedy=_BROKEN)


def _explain_sqlite_error(error: sqlite3.Error, folder: Path) -> PgstrataError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    where = str(folder / "catalogue.sqlite")
    if is_disk_full(error, folder):
        return _disk_full(folder)
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StudyError(
            "the catalogue is locked by another program",
            where=where,
            remedy="close whatever has it open (a database browser?) and start the same command again; "
            "what was measured is kept as evidence and enters the catalogue then",
        )
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
        return _read_only(folder, where)
    if is_damage(error):
        return damaged_catalogue(folder, str(error))
    return StudyError(f"the catalogue failed: {error}", where=where, remedy=_BROKEN)


def damaged_catalogue(folder: Path, why: str) -> StudyError:
    """The error for a catalogue that cannot be read."""
    return StudyError(
        f"the catalogue is damaged ({why})",
        where=str(folder / "catalogue.sqlite"),
        remedy=f"rebuild it from the evidence: pgstrata reparse {folder}",
    )


def is_damage(error: sqlite3.Error) -> bool:
    """Whether a database is broken, rather than busy, full or out of reach."""
    if isinstance(error, sqlite3.OperationalError) and str(error).startswith(("no such table", "no such column")):
        return True
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def is_disk_full(error: sqlite3.Error, folder: Path) -> bool:
    """Whether a database in that folder found no room."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return True
    return code in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN} and _is_full(folder)


def _disk_full(folder: Path) -> DiskFullError:
    return DiskFullError("the file system of the study is full", where=str(folder), remedy=_KEPT)


def _read_only(folder: Path, where: str) -> StudyError:
    return StudyError(
        "the study cannot be written",
        where=where,
        remedy=f"check owner and permissions of {folder}, or copy the study to a place that can be written",
    )


def _is_closed(path: str) -> bool:
    """Whether this user may not even read what is there."""
    try:
        os.lstat(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return not os.access(path, os.R_OK)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _is_full(folder: Path) -> bool:
    try:
        status = os.statvfs(folder)
    except OSError:
        return False
    return status.f_bavail * status.f_frsize < _ALMOST_FULL
