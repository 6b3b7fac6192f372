"""PostgreSQL's source, as a folder or a tarball: what it is, what is in it, a copy to build in.

The user's own folder is only read.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.errors import HostNotFitError, UsageError, find_disk_full
from pgstrata.ports.host import Command, Host
from pgstrata.servers.shelf import digest_of

_UNPACKERS: Final = {".tar.gz": "gzip", ".tgz": "gzip", ".tar.bz2": "bzip2", ".tar.xz": "xz"}
_CONFIGURED: Final = ("config.status", "GNUmakefile", "src/Makefile.global", "src/include/pg_config.h")
_NOT_SOURCE: Final = (".git",)
_PARSER: Final = "src/backend/parser/gram.c"
_UNPACK_TIMEOUT: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source tree or tarball at a path.

    Args:
        path: absolute.
    """

    path: str

    @property
    def _unpacker(self) -> str | None:
        return next((program for ending, program in _UNPACKERS.items() if self.path.endswith(ending)), None)

    def require(self) -> None:
        """Refuse what is no source of PostgreSQL.

        Raises:
            UsageError: nothing is there, or something else; or it was configured in place.
        """
        path, where = Path(self.path), f"build:{self.path}"
        if path.is_file() and self._unpacker:
            return
        if not path.is_dir():
            what = (
                "this is neither a folder nor a .tar.gz, .tar.bz2 or .tar.xz" if path.exists() else "there is nothing"
            )
            raise UsageError(
                what, where=where, remedy="name the folder that holds PostgreSQL's configure, or a tarball"
            )
        if not (path / "configure").is_file():
            raise UsageError("there is no configure in it", where=where, remedy="name the top folder of the source")
        found = next((name for name in _CONFIGURED if (path / name).exists()), None)
        if found:
            raise UsageError(
                f"the tree was configured in place: {found} is there, and what was compiled may be as well",
                where=where,
                remedy="run make distclean in it, or name a clean copy, such as one made by git worktree add",
            )

    def programs(self) -> tuple[str, ...]:
        """Programs that building it takes, besides the compiler."""
        if Path(self.path).is_file():
            return ("make", "perl", "tar", self._unpacker or "gzip")
        # Tarballs hold what bison and flex make, up to 16.
        generated = (Path(self.path) / _PARSER).is_file()
        return ("make", "perl") if generated else ("make", "perl", "bison", "flex")

    def digest(self) -> str:
        """SHA-256 of the tarball; of a folder over names, kinds and contents of its files, without git's own.

        Raises:
            UsageError: a file cannot be read.
        """
        try:
            return digest_of(Path(self.path)) if Path(self.path).is_file() else self._digest_of_tree()
        except OSError as error:
            raise self._unreadable(error) from error

    def _copy_tree(self, target: Path) -> None:
        try:
            shutil.copytree(self.path, target, symlinks=True, ignore=shutil.ignore_patterns(*_NOT_SOURCE))
        except shutil.Error as error:
            # It gathers the errors of all files into one that has no number of its own.
            if find_disk_full(str(error)):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
            raise self._unreadable(error) from error

    def _digest_of_tree(self) -> str:
        path, digest = Path(self.path), hashlib.sha256()
        for file in _files(path):
            facts = file.readlink() if file.is_symlink() else f"{os.access(file, os.X_OK)} {digest_of(file)}"
            digest.update(f"{file.relative_to(path)}\0{facts}\0".encode())
        return digest.hexdigest()

    def _unreadable(self, error: OSError) -> UsageError:
        return UsageError(
            f"the source cannot be read: {error.strerror or error}",
            where=str(error.filename or self.path),
            remedy="make all of it readable, and take out what is no file, folder or link",
        )

    def copy(self, host: Host, target: Path) -> None:
        """A copy at `target`; times are kept, because make compares them.

        Raises:
            UsageError: the source cannot be read, or the tarball holds no PostgreSQL.
            OSError: the copy cannot be written.
        """
        if Path(self.path).is_dir():
            self._copy_tree(target)
            return
        target.mkdir()
        argv = ("tar", "-x", "-f", self.path, "-C", str(target), "--strip-components=1", "--no-same-owner")
        done = host.run(Command(argv=argv, environment={"LC_ALL": "C"}), timeout=_UNPACK_TIMEOUT, check=False)
        if done.code != 0 or not (target / "configure").is_file():
            lines = tuple(done.stderr.decode("utf-8", "replace").splitlines()[-3:])
            raise UsageError(
                "the tarball holds no source of PostgreSQL that could be unpacked", where=f"build:{self.path}",
                details=lines, remedy="name a tarball with one folder in it that holds configure",
            )  # fmt: skip


def require_generated(tree: Path, missing: tuple[str, ...]) -> None:
    """Refuse a tree without what bison and flex make, where they are missing; both come with one package each.

    Raises:
        HostNotFitError: they are needed.
    """
    if missing and not (tree / _PARSER).is_file():
        packages = " ".join(missing)
        raise HostNotFitError(
            f"building this source takes {' and '.join(missing)}, missing on this machine",
            remedy=f"apt-get install {packages} (Debian, Ubuntu), dnf install {packages} (Fedora, RHEL)",
        )


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NOT_SOURCE)
        links = [name for name in folders if Path(parent, name).is_symlink()]
        found = (Path(parent, name) for name in sorted([*names, *links]))
        yield from (path for path in found if path.is_symlink() or path.is_file())
