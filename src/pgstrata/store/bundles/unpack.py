"""Unpacks a bundle: checks and unpacks it into a temporary folder, which is renamed when everything is in order."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pgstrata.errors import BundleError, DiskFullError, PgstrataError, StudyError
from pgstrata.model.bundle import BundledFile, Manifest
from pgstrata.store import evidence
from pgstrata.store.bundles.archive import ArchiveReader
from pgstrata.store.bundles.manifest import ALTERED
from pgstrata.store.failures import storage_errors
from pgstrata.store.study import load_plan_file
from pgstrata.system import files, reading

_READ_ONLY: Final = 0o444
_PLAIN: Final = 0o644
_SPARE: Final = 64 << 20
"""Bytes of the disk that must remain free; the catalogue needs some."""


@contextmanager
def open_bundle(path: Path) -> Iterator[ArchiveReader]:
    """Open a bundle and check its manifest; BundleError if it is not a bundle, or is damaged."""
    try:
        with reading.open_regular(path) as stream:
            yield ArchiveReader(stream, str(path))
    except PgstrataError:
        raise
    except FileNotFoundError:
        raise BundleError(
            "there is no such file", where=str(path), remedy="give the file that `pgstrata bundle` wrote"
        ) from None
    except IsADirectoryError:
        raise BundleError(
            "it is a folder, not a bundle", where=str(path), remedy=f"if it is a study: pgstrata show {path}"
        ) from None
    except OSError as error:
        raise BundleError(
            f"the bundle cannot be read: {error.strerror}", where=str(path), remedy="check its owner and permissions"
        ) from error


def unpack_bundle(bundle: ArchiveReader, target: Path, finish: Callable[[Path], None]) -> None:
    """Unpack the study of a bundle into a new folder; nothing is left behind if the bundle is damaged.

    Args:
        bundle: an opened bundle of which no files have been read yet.
        target: path of the new folder.
        finish: called with the temporary folder when all files have been checked, before the folder is renamed; it
            makes the catalogue.

    Raises:
        BundleError: a file does not match the manifest, or the archive has other files.
        StudyError: the path exists already, or the unpacked files are no study.
        DiskFullError: the disk has too little room.
    """
    target = target.absolute()
    require_free(target)
    aside = target.with_name(f".pgstrata-{os.urandom(8).hex()}.unbundling")
    with storage_errors(target):
        files.make_folders(target.parent)
        _require_room(target.parent, bundle.manifest)
        files.make_folder(aside)
    try:
        _unpack(bundle, aside)
        _require_study(bundle.manifest, aside)
        finish(aside)
        require_free(target)
        with storage_errors(target):
            files.rename(aside, target)
    except BaseException:
        files.remove_rest(aside)
        raise


def require_free(target: Path) -> None:
    """StudyError if the path of the new folder exists already."""
    with storage_errors(target):
        there = target.exists() or target.is_symlink()
    if there:
        raise StudyError(
            "this path exists already", where=str(target), remedy="name a folder that does not exist yet with -o"
        )


def _require_room(folder: Path, manifest: Manifest) -> None:
    figures = os.statvfs(folder)
    free = figures.f_bavail * figures.f_frsize
    if manifest.size + _SPARE > free:
        raise DiskFullError(
            f"the unpacked study takes {manifest.size >> 20:,} MiB and the disk has {free >> 20:,} MiB free",
            where=str(folder),
            remedy="free some space, or name a folder on another file system with -o",
        )


def _unpack(bundle: ArchiveReader, folder: Path) -> None:
    """Write every file after its content has been compared with the manifest."""
    shared: dict[str, BundledFile] = {}
    with storage_errors(folder):
        for file, content in bundle.files():
            path = folder / file.path
            if content is None:
                source = shared.get(file.sha256)
                if source is None or source.size != file.size:
                    raise _altered(file)
                files.link_or_copy(folder / source.path, path)
                continue
            if hashlib.sha256(content).hexdigest() != file.sha256:
                raise _altered(file)
            in_shared = file.path.startswith(f"{evidence.SHARED}/")
            if in_shared:
                shared[file.sha256] = file
            files.write_new(path, content, mode=_READ_ONLY if in_shared else _PLAIN)


def _altered(file: BundledFile) -> BundleError:
    return BundleError(
        "the bundle is damaged or was altered: this file does not match its manifest", where=file.path, remedy=ALTERED
    )


def _require_study(manifest: Manifest, folder: Path) -> None:
    plan = load_plan_file(folder).plan.identity
    runs = len(evidence.list_runs(folder))
    if (plan, runs) != (manifest.plan, manifest.runs):
        raise BundleError(
            f"the manifest says {manifest.runs} runs of plan {manifest.plan}, but the bundle has {runs} of plan {plan}",
            where=manifest.study,
            remedy=ALTERED,
        )
