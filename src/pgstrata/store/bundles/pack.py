"""A study to a bundle: plan, experiment file, fingerprints and the evidence of its runs; what is derived stays out."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pgstrata.errors import BundleError, DiskFullError, StudyError
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
    """Changes what goes into a bundle: names of files and their contents, in the same way each time."""

    def path(self, path: str) -> str:
        """What a path below the study's folder becomes; empty where the file is left out."""

    def content(self, path: str, content: bytes) -> bytes:
        """What the content of the file at a path, as it was, becomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A file that goes into a bundle; `shared` says that other runs have it, too."""

    file: BundledFile
    content: bytes
    shared: bool = False


class BundledStudy:
    """The files of a study that belong into a bundle, in its order; runs that come later are left out.

    What was read of the head stays as it was read, so that it can be gone through several times.
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
        """The files of a run by their path below the study's folder, in the order of their names."""
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
    """Write the bundle of a study to a file that is not there yet; its manifest, as a value and as bytes.

    Args:
        study: what goes into it; it is read twice, first to be described and then to be written.
        target: the file.
        name: of the study, as those see it who unpack it.
        plan: identity of the plan in the bundle.
        version: of this pgstrata.
        sign: what signs the manifest.
        rewrite: what changes names and contents on the way.

    Raises:
        StudyError: the study changed meanwhile, or has files that no bundle may have.
        BundleError: there is something at the path of the bundle already.
        DiskFullError: there is no room for it.
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
    """Each file as it goes into the archive; what is shared comes once by its digest before the first that has it."""
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
    """What could not be unpacked must not be written."""
    try:
        check_name(manifest.study)
        check_files(manifest.files)
    except ValueError as error:
        raise StudyError(
            f"the study cannot be bundled: {error}",
            where=str(study.folder),
            remedy="remove from its folder what pgstrata has not put there",
        ) from error
    if manifest.size > sizes.BUNDLE_UNPACKED:
        raise StudyError(
            f"the study has {manifest.size / (1 << 30):.1f} GiB, and a bundle at most {sizes.BUNDLE_UNPACKED >> 30}",
            where=str(study.folder),
            remedy="send its folder as it is, such as with tar",
        )


def _changed(folder: Path, path: str) -> StudyError:
    return StudyError(
        "the study was changed while it was bundled",
        where=str(folder / path),
        remedy="start the same command again when nothing writes to it",
    )


@contextmanager
def _write_errors(target: Path) -> Iterator[None]:
    """Failures of the bundle's own file, which are not failures of the study."""
    try:
        yield
    except OSError as error:
        if files.is_full(error):
            raise DiskFullError(
                "there is no room for the bundle", where=str(target), remedy="give another place with -o"
            ) from error
        if error.errno == errno.EEXIST:
            raise BundleError(
                "there is something here already", where=str(target), remedy="remove it, or give another name with -o"
            ) from error
        raise BundleError(
            f"the bundle cannot be written: {error.strerror}", where=str(target), remedy="give another place with -o"
        ) from error
