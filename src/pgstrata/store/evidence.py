"""The evidence of runs as folders: written aside, made durable, and visible by one rename.

Fingerprints are files beside it, from which the catalogue takes them: fingerprints/host.json, .../environment/NAME.json
"""

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from pgstrata.errors import StudyError
from pgstrata.model import sizes
from pgstrata.model.server import Fingerprint
from pgstrata.ports.store import RunHeader
from pgstrata.store.failures import storage_errors
from pgstrata.store.serialise import parse_fingerprint, render_fingerprint, render_header
from pgstrata.system import files, reading
from pgstrata.system.ways import as_owner_inside

EVIDENCE = "evidence"
SHARED = "shared"
FINGERPRINTS = "fingerprints"
HEADER = "run.json"
_PARTIAL = ".partial"


def check_name(name: str) -> str:
    """A relative path that stays inside its folder and hides nothing; ValueError otherwise."""
    path = PurePosixPath(name)
    hidden = any(part.startswith(".") for part in path.parts)
    if not name or path.is_absolute() or hidden or "\0" in name or str(path) != name:
        raise ValueError(f"{name!r} is not a name for a file or folder of a study")
    return name


class PartialEvidence:
    """The evidence folder of one run in the making; implements ports.Evidence."""

    def __init__(self, study: Path, identity: str) -> None:
        self.identity = check_name(identity)
        self._study = study
        self._folder = study / EVIDENCE / _PARTIAL / identity
        with storage_errors(study):
            files.remove_tree(self._folder)
            files.make_folders(self._folder)

    def keep(self, name: str, content: bytes) -> None:
        """Keep a file verbatim."""
        target = self._folder / _check_free(name)
        with self._whole_or_gone():
            files.write_new(target, content)

    def keep_shared(self, name: str, content: bytes) -> None:
        """Keep a file that many runs have alike: stored once, linked into each run's folder."""
        target = self._folder / _check_free(name)
        shared = self._study / SHARED / hashlib.sha256(content).hexdigest()
        with self._whole_or_gone():
            if shared.exists():
                _refuse_changed(shared, content)
            else:
                # Read-only: a change through one name would change the evidence of every run that has it.
                files.write_atomically(shared, content, mode=0o444)
            files.remove_file(target)
            files.link_or_copy(shared, target)

    @contextmanager
    def _whole_or_gone(self) -> Iterator[None]:
        """After an error nothing of the run stays: on a full disk the rest would only be in the way."""
        with storage_errors(self._study):
            try:
                yield
            except OSError:
                with suppress(OSError):
                    files.remove_tree(self._folder)
                raise

    def publish(self, header: RunHeader) -> None:
        """Make it durable and visible: the rename is the moment from which the run is part of the study."""
        target = self._study / EVIDENCE / self.identity
        with self._whole_or_gone():
            files.write_new(self._folder / HEADER, render_header(header))
            files.sync_tree(self._folder)
            files.sync_file(self._study / SHARED)
            files.make_folders(target.parent)
            files.rename(self._folder, target)
            # New folders are entries of their parents, up to the root of the evidence.
            for parent in target.parents:
                files.sync_file(parent)
                if parent == self._study / EVIDENCE:
                    break


def _check_free(name: str) -> str:
    if name == HEADER:
        raise ValueError(f"{HEADER} is written by the store itself")
    return check_name(name)


@as_owner_inside
def clear_partial(study: Path) -> None:
    """Remove what interrupted attempts left."""
    files.remove_tree(study / EVIDENCE / _PARTIAL)
    fingerprints = (Path(folder) for folder, _, _ in os.walk(study / FINGERPRINTS))
    for folder in (study, study / SHARED, *fingerprints):
        files.remove_drafts(folder)


@as_owner_inside
def list_runs(study: Path) -> tuple[str, ...]:
    """Identities of all runs whose evidence is complete, sorted."""
    root = study / EVIDENCE
    found = []
    with storage_errors(study):
        for parent, folders, names in os.walk(root):
            if HEADER in names:
                found.append(Path(parent).relative_to(root).as_posix())
                folders.clear()
            else:
                folders[:] = [name for name in folders if not name.startswith(".")]
    return tuple(sorted(found))


@as_owner_inside
def load_file(study: Path, identity: str, name: str) -> bytes:
    """One file of a run; empty where there is none."""
    path = study / EVIDENCE / check_name(identity) / check_name(name)
    with storage_errors(study):
        return _read(study, path, sizes.EVIDENCE) if path.is_file() else b""


@as_owner_inside
def load_evidence(study: Path, identity: str) -> Mapping[str, bytes]:
    """All files of a run by name, run.json included; StudyError if there is no such run."""
    folder = study / EVIDENCE / check_name(identity)
    if not (folder / HEADER).is_file():
        raise StudyError(f"there is no evidence of run {identity}", where=str(folder))
    with storage_errors(study):
        found: dict[str, bytes] = {}
        left = sizes.EVIDENCE
        for path in (Path(parent, name) for parent, _, names in os.walk(folder) for name in sorted(names)):
            try:
                content = _read(study, path, left)
            except OSError as error:
                if error.errno == errno.EFBIG:
                    raise _too_large(folder, path, left) from None
                raise
            left -= len(content)
            found[path.relative_to(folder).as_posix()] = content
        return found


def _too_large(folder: Path, path: Path, left: int) -> StudyError:
    most = sizes.EVIDENCE >> 20
    used = f"{path.name} has {path.stat().st_size / (1 << 20):.1f} MiB, the files before it"
    return StudyError(
        f"the evidence of one run may have {most} MiB, and this has more: {used} {most - left / (1 << 20):.1f} MiB",
        where=str(folder),
        remedy="remove from this folder what pgstrata has not put there",
    )


def _read(study: Path, path: Path, most: int) -> bytes:
    """A file of a run; StudyError where it is one of `SHARED` that is not any more what its name there says."""
    content = reading.read_regular(path, most=most)
    status = path.stat()
    if status.st_nlink > 1 and not (study / SHARED / hashlib.sha256(content).hexdigest()).exists():
        for shared in (study / SHARED).iterdir():
            if os.path.samestat(shared.lstat(), status):
                raise _changed(shared)
    return content


def _refuse_changed(shared: Path, content: bytes) -> None:
    if shared.stat().st_size != len(content) or reading.read_regular(shared, most=len(content)) != content:
        raise _changed(shared)


def _changed(shared: Path) -> StudyError:
    return StudyError(
        "this file was changed, and it is evidence of several runs",
        where=str(shared),
        remedy="restore it from a backup of the study, or begin a new study",
    )


def save_fingerprint_file(study: Path, name: str, fingerprint: Fingerprint) -> None:
    """Create or replace the file of a fingerprint; name is host, client, or environment/NAME."""
    files.write_atomically(study / FINGERPRINTS / f"{check_name(name)}.json", render_fingerprint(fingerprint))


@as_owner_inside
def load_fingerprint_files(study: Path) -> Mapping[str, Fingerprint]:
    """All fingerprints by name."""
    root = study / FINGERPRINTS
    with storage_errors(study):
        return {
            path.relative_to(root).as_posix().removesuffix(".json"): parse_fingerprint(
                reading.read_regular(path, most=sizes.FINGERPRINT_FILE), where=str(path)
            )
            for path in sorted(root.rglob("*.json"))
            if not path.name.startswith(".")
        }
