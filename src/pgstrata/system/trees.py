"""Trees of files on this machine, read as one user and written as another: links are copied, and never followed.

Each folder is opened inside the one above it, so that whoever changes the tree meanwhile leads nobody out of it.
Failures raise OSError.
"""

from __future__ import annotations

import errno
import hashlib
import os
import posixpath
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import Final

from pgstrata.system.files import NEW_FILE
from pgstrata.system.users import UserIds, acting_as

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DEEPEST: Final = 100
_MOST_BYTES: Final = 16 << 30
_CHUNK: Final = 1 << 20
_ANY_EXECUTE: Final = 0o111
_FOR_ALL: Final = 0o755


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What is in a tree: `path` within it, `link` where a link leads, `folder` a descriptor of the folder it is in."""

    tree: Path
    path: PurePosixPath
    facts: os.stat_result
    link: str
    folder: int

    @property
    def whole(self) -> str:
        return str(self.tree / self.path)

    @property
    def executable(self) -> bool:
        return bool(self.facts.st_mode & _ANY_EXECUTE)


def digest_tree(
    tree: Path, *, reader: UserIds | None = None, only: Collection[str] = (), ignore: Collection[str] = ()
) -> str:
    """SHA-256 over names, links, contents and which files are programs; arguments and limits as of `copy_tree`."""
    digest, left = hashlib.sha256(), _MOST_BYTES
    for found in _visit(tree, reader, only, ignore):
        if found.link:
            digest.update(f"{found.path}\0{found.link}\0".encode("utf-8", "surrogateescape"))
        elif stat.S_ISREG(found.facts.st_mode):
            content = hashlib.sha256()
            for chunk in _read(found, reader, left):
                content.update(chunk)
                left -= len(chunk)
            digest.update(
                f"{found.path}\0{found.executable} {content.hexdigest()}\0".encode("utf-8", "surrogateescape")
            )
    return digest.hexdigest()


def copy_tree(
    source: Path,
    target: Path,
    *,
    reader: UserIds | None = None,
    writer: UserIds | None = None,
    only: Collection[str] = (),
    ignore: Collection[str] = (),
    for_all: bool = False,
) -> None:
    """Copy a folder with the times of its files. Links that lead out of it lead to the same place afterwards.

    Args:
        source: the folder.
        target: made, or there and empty.
        reader: the user as whom the source is read; this process's own if None, as for the next.
        writer: the user as whom the copy is written, whose it will be.
        only: names at the top of the source that are copied, all if there are none.
        ignore: names that are left out, wherever they are.
        for_all: everybody may read the copy and run the programs in it.
    """
    with acting_as(writer):
        target.mkdir(exist_ok=True)
    left = _MOST_BYTES
    for found in _visit(source, reader, only, ignore):
        path = target / found.path
        if found.link:
            with acting_as(writer):
                path.symlink_to(found.link)
        elif stat.S_ISDIR(found.facts.st_mode):
            with acting_as(writer):
                path.mkdir(mode=0o700)
                path.chmod(_FOR_ALL if for_all else found.facts.st_mode & 0o777 | 0o700)
        else:
            left -= _copy_file(_read(found, reader, left), path, found, writer, for_all=for_all)


def _copy_file(chunks: Iterable[bytes], path: Path, found: _Found, writer: UserIds | None, *, for_all: bool) -> int:
    mode = (_FOR_ALL if found.executable else 0o644) if for_all else found.facts.st_mode & 0o777
    with acting_as(writer):
        descriptor = os.open(path, NEW_FILE, 0o600)
    size = 0
    with os.fdopen(descriptor, "wb") as copy:
        for chunk in chunks:
            size += len(chunk)
            copy.write(chunk)
        copy.flush()
        os.fchmod(descriptor, mode)
        os.utime(descriptor, ns=(found.facts.st_atime_ns, found.facts.st_mtime_ns))
    return size


def _visit(tree: Path, reader: UserIds | None, only: Collection[str], ignore: Collection[str]) -> Iterator[_Found]:
    """Everything in a tree, each folder before what is in it, by name."""
    with acting_as(reader):
        top = os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield from _descend(tree, top, PurePosixPath(), reader, only, ignore)
    finally:
        os.close(top)


def _descend(
    tree: Path,
    folder: int,
    inner: PurePosixPath,
    reader: UserIds | None,
    only: Collection[str],
    ignore: Collection[str],
) -> Iterator[_Found]:
    if len(inner.parts) > _DEEPEST:
        raise OSError(errno.ELOOP, f"there are more than {_DEEPEST} folders in each other", str(tree / inner))
    with _named(str(tree / inner)), acting_as(reader):
        names = sorted(name for name in os.listdir(folder) if name not in ignore and (not only or name in only))
        every = [_look_at(tree, folder, inner / name) for name in names]
    for found in every:
        yield found
        if not stat.S_ISDIR(found.facts.st_mode):
            continue
        with _named(found.whole), acting_as(reader):
            below = os.open(found.path.name, _FOLDER, dir_fd=folder)
        try:
            yield from _descend(tree, below, found.path, reader, (), ignore)
        finally:
            os.close(below)


def _look_at(tree: Path, folder: int, path: PurePosixPath) -> _Found:
    facts, link = os.stat(path.name, dir_fd=folder, follow_symlinks=False), ""
    if stat.S_ISLNK(facts.st_mode):
        link = os.readlink(path.name, dir_fd=folder)
        if posixpath.normpath(path.parent / link).startswith("../"):
            link = posixpath.normpath(tree / path.parent / link)
    elif not stat.S_ISREG(facts.st_mode) and not stat.S_ISDIR(facts.st_mode):
        raise OSError(errno.EINVAL, "it is not a file, folder or link", str(tree / path))
    return _Found(tree=tree, path=path, facts=facts, link=link, folder=folder)


def _read(found: _Found, reader: UserIds | None, most: int) -> Iterator[bytes]:
    """The content of a file; OSError if the tree then has more than it may have, told before it is read if possible."""
    with _named(found.whole), acting_as(reader):
        descriptor = os.open(found.path.name, _FILE, dir_fd=found.folder)
    with FileIO(descriptor) as file:
        facts, size = os.fstat(descriptor), 0
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it is not a file any more", found.whole)
        while facts.st_size <= most and (chunk := file.read(_CHUNK)):
            size += len(chunk)
            if size > most:
                break
            yield chunk
        if max(facts.st_size, size) > most:
            raise OSError(errno.EFBIG, f"the folder holds more than {_MOST_BYTES >> 30} GiB", found.whole)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Errors name the whole path instead of a descriptor, or of a name within its folder."""
    try:
        yield
    except OSError as error:
        if "/" not in str(error.filename):
            error.filename = path
        raise
