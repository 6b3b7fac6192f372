"""The evidence of runs as folders: written aside, made durable, and visible by one rename."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from pgstrata.errors import StudyError
from pgstrata.ports.store import RunHeader
from pgstrata.store.failures import storage_errors
from pgstrata.store.serialise import render_header
from pgstrata.system import files

EVIDENCE = "evidence"
SHARED = "shared"
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
            if not shared.exists():
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
            for parent in _parents_up_to(target, self._study / EVIDENCE):
                files.sync_file(parent)


def _parents_up_to(target: Path, root: Path) -> tuple[Path, ...]:
    return tuple(parent for parent in target.parents if parent == root or root in parent.parents)


def _check_free(name: str) -> str:
    if name == HEADER:
        raise ValueError(f"{HEADER} is written by the store itself")
    return check_name(name)


def clear_partial(study: Path) -> None:
    """Remove what interrupted attempts left."""
    files.remove_tree(study / EVIDENCE / _PARTIAL)
    for folder in (study, study / SHARED):
        files.remove_drafts(folder)


def list_runs(study: Path) -> tuple[str, ...]:
    """Identities of all runs whose evidence is complete, sorted."""
    root = study / EVIDENCE
    found = []
    for parent, folders, names in os.walk(root):
        if HEADER in names:
            found.append(Path(parent).relative_to(root).as_posix())
            folders.clear()
        else:
            folders[:] = [name for name in folders if not name.startswith(".")]
    return tuple(sorted(found))


def load_file(study: Path, identity: str, name: str) -> bytes:
    """One file of a run; empty where there is none."""
    path = study / EVIDENCE / check_name(identity) / check_name(name)
    with storage_errors(study):
        return path.read_bytes() if path.is_file() else b""


def load_evidence(study: Path, identity: str) -> Mapping[str, bytes]:
    """All files of a run by name, run.json included; StudyError if there is no such run."""
    folder = study / EVIDENCE / check_name(identity)
    if not (folder / HEADER).is_file():
        raise StudyError(f"there is no evidence of run {identity}", where=str(folder))
    with storage_errors(study):
        return {
            Path(parent, name).relative_to(folder).as_posix(): Path(parent, name).read_bytes()
            for parent, _, names in os.walk(folder)
            for name in sorted(names)
        }
