"""Writes the bundle of a study: plan, experiment file, fingerprints and evidence of runs, but no derived data."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pgstrata.errors import BundleError, StudyError
from pgstrata.model import sizes
from pgstrata.model.bundle import FORMAT, BundledFile, Manifest
from pgstrata.store import evidence
from pgstrata.store.bundles.archive import ArchiveWriter
from pgstrata.store.bundles.manifest import check_files, check_name, render_manifest
from pgstrata.store.failures import storage_errors
from pgstrata.store.serialise import render_fingerprint
from pgstrata.store.study import EXPERIMENT_FILE, PLAN_FILE, load_plan_file
from pgstrata.system import files, reading
from pgstrata.system.ways import as_owner_inside

Sign = Callable[[bytes], bytes]
"""Makes the signature of a manifest."""


class Rewrite(Protocol):
    """Changes paths and contents of the files of a bundle, in the same way each time."""

    def path(self, path: str) -> str:
        """The changed path of a file, relative to the study's folder; empty if the file is left out."""

    def content(self, path: str, content: bytes) -> bytes:
        """The changed content of a file, which had this path and content in the study."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A file for the bundle; `shared` says that several runs have it."""

    file: BundledFile
    content: bytes
    shared: bool = False


class BundledStudy:
    """The files of a study that belong into a bundle, in the bundle's order; runs that are added later are left out.

    Files other than evidence are read once and kept, so that the files can be read several times with the same content.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        load_plan_file(self.folder)
        self.runs = evidence.list_runs(self.folder)
        self.head = dict(self._read_head())
        self._shared = _list_shared(self.folder)

    def _read_head(self) -> Iterator[tuple[str, bytes]]:
        with storage_errors(self.folder):
            yield PLAN_FILE, reading.read_regular(self.folder / PLAN_FILE, most=sizes.PLAN_FILE)
            with suppress(FileNotFoundError):
                yield EXPERIMENT_FILE, reading.read_regular(self.folder / EXPERIMENT_FILE, most=sizes.EXPERIMENT_FILE)
        for name, fingerprint in sorted(evidence.load_fingerprint_files(self.folder).items()):
            yield f"{evidence.FINGERPRINTS}/{name}.json", render_fingerprint(fingerprint)

    def evidence(self, identity: str) -> Mapping[str, bytes]:
        """The files of a run by their path relative to the study's folder, sorted by name."""
        found = evidence.load_evidence(self.folder, identity)
        return {f"{evidence.EVIDENCE}/{identity}/{name}": found[name] for name in sorted(found)}

    def files(self) -> Iterator[tuple[str, bytes, bool]]:
        """Path, content, and whether several runs share the content: head first, then run by run."""
        for path, content in self.head.items():
            yield path, content, False
        for identity in self.runs:
            for path, content in self.evidence(identity).items():
                yield path, content, hashlib.sha256(content).hexdigest() in self._shared


@as_owner_inside
def _list_shared(folder: Path) -> frozenset[str]:
    with storage_errors(folder):
        try:
            return frozenset(os.listdir(folder / evidence.SHARED))  # noqa: PTH208 - names, not paths
        except FileNotFoundError:
            return frozenset()


def write_bundle(
    study: BundledStudy,
    target: Path,
    *,
    name: str,
    plan: str,
    version: str,
    sign: Sign | None = None,
    rewrite: Rewrite | None = None,
) -> tuple[Manifest, bytes]:
    """Write the bundle of a study to a new file; return its manifest, as a value and as bytes.

    Args:
        study: the study; its files are read twice, first for the manifest and then to be written.
        target: path of the new file.
        name: name of the study in the bundle.
        plan: identity of the plan in the bundle.
        version: version of this pgstrata.
        sign: signs the manifest.
        rewrite: changes paths and contents.

    Raises:
        StudyError: the study changed meanwhile, or has files that no bundle may have.
        BundleError: the path of the bundle exists already.
        DiskFullError: the disk is full.
    """
    described = tuple(part.file for part in _parts(study, rewrite))
    manifest = Manifest(
        format=FORMAT,
        study=name,
        plan=plan,
        runs=len(study.runs),
        version=version,
        anonymous=rewrite is not None,
        files=described,
    )
    _require_sound(study, manifest)
    sealed = render_manifest(manifest)
    signature = sign(sealed) if sign else b""
    with _write_errors(target), files.writing_new(target) as stream:
        writer = ArchiveWriter(stream, sealed, signature)
        for expected, part in zip(described, _parts(study, rewrite), strict=True):
            if part.file != expected:
                raise _changed(study.folder, expected.path)
            if part.shared:
                writer.add_shared(part.file)
            else:
                writer.add(part.file.path, part.content)
        writer.close()
    return manifest, sealed


def _parts(study: BundledStudy, rewrite: Rewrite | None) -> Iterator[_Part]:
    """Each file in the order of the archive; a shared one comes first under its digest, before the run that has it."""
    written: set[str] = set()
    for path, original, shared in study.files():
        name = rewrite.path(path) if rewrite else path
        if not name:
            continue
        content = rewrite.content(path, original) if rewrite else original
        digest = hashlib.sha256(content).hexdigest()
        if shared and digest not in written:
            written.add(digest)
            yield _Part(file=_file(f"{evidence.SHARED}/{digest}", content, digest), content=content)
        yield _Part(file=_file(name, content, digest), content=content, shared=shared)


def _file(path: str, content: bytes, digest: str) -> BundledFile:
    return BundledFile(path=path, size=len(content), sha256=digest)


def _require_sound(study: BundledStudy, manifest: Manifest) -> None:
    """StudyError if `unbundle` would refuse the bundle."""
    try:
        check_name(manifest.study)
        check_files(manifest.files)
    except ValueError as error:
        raise StudyError(
            f"the study cannot be bundled: {error}",
            where=str(study.folder),
            remedy="remove files from its folder that pgstrata has not written",
        ) from error
    if manifest.size > sizes.BUNDLE_UNPACKED:
        raise StudyError(
            f"the study has {manifest.size / (1 << 30):.1f} GiB, and a bundle can have at most "
            f"{sizes.BUNDLE_UNPACKED >> 30} GiB",
            where=str(study.folder),
            remedy="send its folder instead, for example with tar",
        )


def _changed(folder: Path, path: str) -> StudyError:
    return StudyError(
        "the study was changed while it was bundled",
        where=str(folder / path),
        remedy="start the same command again when no other command writes to the study",
    )


@contextmanager
def _write_errors(target: Path) -> Iterator[None]:
    """Turn errors of the bundle's file into errors of the bundle, not of the study."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EEXIST:
            raise BundleError(
                "this path exists already", where=str(target), remedy="remove it, or give another name with -o"
            ) from error
        raise files.write_error(
            "the bundle cannot be written", error, where=target, remedy="name another place with -o", kind=BundleError
        ) from error
