"""Folders, files and their owners on this machine: the one module that makes, changes or removes them; `reading` reads.

Root does it as whoever could replace the path (`ways.as_owner`).

A given mode of a folder is set regardless of the umask; that of a file is reduced by it, except in `write_beside`.
`PRIVATE` files and folders are for their owner only: whatever comes from a live server, see SECURITY.md.
Failures raise OSError, except that `remove_tree` refuses the root folder with HostFileError.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import IO, Final

from pgstrata.errors import DiskFullError, HostFileError, PgstrataError
from pgstrata.system.users import UserIds
from pgstrata.system.ways import as_owner, as_owner_inside, as_owner_of

_NO_LINKS: Final = {errno.EPERM, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags for a file that is not there yet."""
PRIVATE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
_FOR_ALL: Final = 0o755
_NULL: Final = os.makedev(1, 3)
"""The number of /dev/null."""
_DRAFT: Final = re.compile(r"\.pgstrata-[0-9a-f]{16}")


def is_full(error: OSError) -> bool:
    """Whether a file system was full."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


def write_error(
    what: str, error: OSError, *, where: Path | str, remedy: str, kind: type[PgstrataError] = PgstrataError
) -> PgstrataError:
    """The error to raise where something could not be written: a DiskFullError if a file system was full, else `kind`.

    `what` is what a message begins with, such as "the report cannot be written".
    """
    text = f"{what}: {error.strerror or error}"
    if is_full(error):
        return DiskFullError(text, where=str(where), remedy=f"free some space, or {remedy}")
    return kind(text, where=str(where), remedy=remedy)


# ----------------------------------------------------------------------------------------------------- folders


@as_owner
def make_folder(path: Path, *, mode: int | None = None, owner: UserIds | None = None) -> None:
    """Make a folder, private until `mode` is set, then give it to `owner`; FileExistsError if it exists.

    PermissionError if another user has replaced it meanwhile.
    """
    path.mkdir(mode=0o777 if mode is None else 0o700)
    if mode is None and owner is None:
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "another user has replaced this folder", str(path))
        if mode is not None:
            os.fchmod(descriptor, mode)
        if owner is not None:
            os.fchown(descriptor, owner.uid, owner.gid)
    finally:
        os.close(descriptor)


def make_folders(path: Path, *, mode: int | None = None) -> None:
    """A folder with what is missing above it; nothing happens to those that are there."""
    missing = takewhile(lambda folder: not folder.exists(), (path, *path.parents))
    for folder in reversed(list(missing)):
        with suppress(FileExistsError):
            make_folder(folder, mode=mode)
    if not path.is_dir():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def ensure_folder(path: Path, *, mode: int, owner: UserIds | None, parents: int) -> os.stat_result | None:
    """Make a folder, and missing ones above it; None if made, else the status of what exists (links not followed)."""
    make_folders(path.parent, mode=parents)
    try:
        make_folder(path, mode=mode, owner=owner)
    except FileExistsError:
        return path.lstat()
    return None


@as_owner
def remove_tree(path: Path) -> None:
    """Remove a file, a link or a folder with all in it; nothing happens if it is not there."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    if path.resolve() == Path("/"):
        raise HostFileError("refused to remove the root folder", where=str(path))
    with _as_error(path):
        shutil.rmtree(path)


@as_owner
def remove_rest(path: Path) -> None:
    """Remove what can be removed of a folder that nobody needs any more."""
    with suppress(OSError), _as_error(path):
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _as_error(path: Path) -> Iterator[None]:
    """Until Python 3.13 a folder is removed by a function that calls itself for each folder in it."""
    try:
        yield
    except RecursionError:
        what = "there are too many folders in each other: remove them with rm -r"
        raise OSError(errno.ELOOP, what, str(path)) from None


@as_owner
def rename(source: Path, target: Path) -> None:
    """Rename within a file system; an existing file is replaced, a folder is not."""
    if target.is_dir() and not target.is_symlink():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    source.replace(target)


@as_owner_of
def open_folder(folder: Path) -> None:
    """Let everybody enter a folder."""
    folder.chmod(_FOR_ALL)


# ------------------------------------------------------------------------------------------------------- files


def write_new(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file that is not there yet, its folder made first; durable only after `sync_file` or `sync_tree`."""
    make_folders(path.parent)
    create(path, content, mode=mode)


@as_owner
def create(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write a file that is not there yet, in a folder that is; FileExistsError."""
    with os.fdopen(os.open(path, NEW_FILE, mode), "wb") as stream:
        stream.write(content)


def write_atomically(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Create or replace a file durably: after a crash it has either the old content or the new one.

    A kill may leave a draft (`is_draft`) with an unpredictable name in the same folder.
    """
    make_folders(path.parent)
    _write_atomically(path, content, mode=mode)


@as_owner
def _write_atomically(path: Path, content: bytes, *, mode: int) -> None:
    with _replacing(path) as beside:
        create(beside, content, mode=mode)
        sync_file(beside)
    sync_file(path.parent)


@as_owner
def write_beside(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Create or replace a file so that a reader sees the old one or the new one; not durable.

    A kill may leave a draft, as of `write_atomically`.
    """
    # who opens it before its mode is set could read what is written later
    begin = 0o666 if mode is None else mode & PRIVATE
    with _replacing(path) as beside, os.fdopen(os.open(beside, NEW_FILE, begin), "wb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        file.write(content)


@contextmanager
def writing_new(path: Path, *, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A stream into a new file, which appears complete when the block ends; nothing is left if the block fails.

    FileExistsError where there is something at the path already. A kill may leave a draft, as of `write_atomically`.
    """
    beside = _draft_of(path)
    with os.fdopen(_open_new(beside, mode), "wb") as stream:
        try:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            _publish(beside, path)
        finally:
            remove_file(beside)


@as_owner
def _open_new(path: Path, mode: int) -> int:
    return os.open(path, NEW_FILE, mode)


@as_owner
def _publish(source: Path, target: Path) -> None:
    """Give a file a name that must be free; by a rename if the file system has no hard links."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if target.exists() or target.is_symlink():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        source.replace(target)


def _draft_of(path: Path) -> Path:
    return path.with_name(f".pgstrata-{os.urandom(8).hex()}")


def is_draft(path: Path) -> bool:
    """Whether the file is an unfinished draft of `write_atomically` or `write_beside`."""
    return _DRAFT.fullmatch(path.name) is not None


@as_owner_inside
def remove_drafts(folder: Path, *, older: float = 0.0) -> None:
    """Remove drafts left by a kill, if the folder is there; give `older`, in seconds, if others may write to it."""
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            if is_draft(path) and time.time() - path.lstat().st_mtime >= older:
                remove_file(path)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A draft's path with an unpredictable name; the file written there takes the place of `path`, or is removed."""
    beside = _draft_of(path)
    try:
        yield beside
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def append(path: Path, content: bytes) -> None:
    """Write at the end of a file, which is made if it is not there."""
    with os.fdopen(open_appending(path, mode=0o666), "ab") as file:
        file.write(content)


@as_owner
def open_appending(path: Path, *, mode: int = 0o600) -> int:
    """A descriptor that writes at the end of a file, which is made with this mode if it is not there.

    What is there must be /dev/null or a regular file. As root, it must be root's and have no other name (hard link).
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        descriptor = os.open(path, flags | os.O_NONBLOCK)
    facts = os.fstat(descriptor)
    others = os.geteuid() == 0 and (facts.st_uid != 0 or facts.st_nlink != 1)
    if others or not (stat.S_ISREG(facts.st_mode) or facts.st_rdev == _NULL):
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "it is not an ordinary file of this user's alone", str(path))
    os.set_blocking(descriptor, True)
    return descriptor


def save_for_all(stream: IO[bytes], path: Path, *, executable: bool) -> None:
    """Write what comes from a stream to a file that is not there yet; everybody may read it and enter its folders."""
    make_folders(path.parent, mode=_FOR_ALL)
    _save(stream, path, mode=_FOR_ALL if executable else 0o644)


@as_owner
def _save(stream: IO[bytes], path: Path, *, mode: int) -> None:
    descriptor = os.open(path, NEW_FILE, mode)
    with os.fdopen(descriptor, "wb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)
        os.fchmod(descriptor, mode)


def make_private(descriptor: int) -> None:
    """Let nobody but its owner open a file anew."""
    os.fchmod(descriptor, 0o600)


def make_link(path: Path, target: str) -> None:
    """A symbolic link in a folder that everybody may enter."""
    make_folders(path.parent, mode=_FOR_ALL)
    _make_link(path, target)


@as_owner
def _make_link(path: Path, target: str) -> None:
    path.symlink_to(target)


@as_owner_of
def open_file(file: Path) -> None:
    """Let everybody read a file."""
    file.chmod(0o644)


@as_owner
def copy_file(source: Path, target: Path) -> None:
    """Copy the content of a file to a file that is not there yet; neither path may be a link."""
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(reading, "rb") as content, os.fdopen(os.open(target, NEW_FILE, 0o666), "wb") as file:
        shutil.copyfileobj(content, file, 1 << 20)


def link_or_copy(source: Path, target: Path) -> None:
    """A second name for a file; a copy where the file system knows no links or has no more of them."""
    make_folders(target.parent)
    _link_or_copy(source, target)


@as_owner
def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        copy_file(source, target)


@as_owner
def remove_file(path: Path) -> None:
    """Remove a file or a link; nothing happens if it is not there."""
    path.unlink(missing_ok=True)


@as_owner_of
def sync_file(path: Path) -> None:
    """Force a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@as_owner_inside
def sync_tree(folder: Path) -> None:
    """Force all files in a folder, and the folders themselves, to disk."""
    for parent, _, names in os.walk(folder):
        for name in names:
            sync_file(Path(parent, name))
        sync_file(Path(parent))
