"""A study that is being written: created or opened under its lock, one committed run after the other.

A run is part of the study from the moment its evidence folder is renamed to its final place. Its row in the catalogue
follows; where that could not be written, the next `open` derives it from the evidence.
"""

import os
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

from pgstrata.errors import StudyError
from pgstrata.model import sizes
from pgstrata.model.metrics import BACKGROUND_LOAD, COMPARED_SERIES, ROUND_TPS
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.model.server import Fingerprint
from pgstrata.plan.identity import identify
from pgstrata.ports.store import Evidence, FinishedRun, RunHeader
from pgstrata.ports.studies import Derive, StudyHead
from pgstrata.store import catalogue, evidence
from pgstrata.store.database import transaction
from pgstrata.store.difference import explain_difference
from pgstrata.store.failures import catalogue_errors, storage_errors
from pgstrata.store.lock import LOCK_FILE, StudyLock
from pgstrata.store.rebuild import derive_run, rebuild_catalogue
from pgstrata.store.serialise import damaged_plan, parse_plan_file, render_plan_file
from pgstrata.system import files, reading
from pgstrata.system.ways import as_owner_inside

PLAN_FILE = "plan.json"
MERGED_FILE = "merged.json"
"""In place of a plan in the folder of a merged study, whose parts are studies (`store.merged`)."""
_DEPTH = 4
"""How many folders of a study lie within each other, evidence of a run included."""
EXPERIMENT_FILE = "experiment.toml"
_CATALOGUE_FILES = {f"{catalogue.CATALOGUE}{suffix}" for suffix in ("", "-wal", "-shm", "-journal")}
# Drafts of a pgstrata up to 0.1.0 that was killed
_OLD_DRAFTS = {f".{EXPERIMENT_FILE}.new", f".{PLAN_FILE}.new"}
_FOLDERS = (evidence.EVIDENCE, evidence.SHARED, evidence.FINGERPRINTS)
_OWN = {LOCK_FILE, EXPERIMENT_FILE, *_FOLDERS, *_CATALOGUE_FILES, *_OLD_DRAFTS}


class StudyStore:
    """Implements ports.Store. Use `create`, `open` or `open_or_create`, then close it or use it in a `with`."""

    def __init__(self, folder: Path, file: StudyHead, lock: StudyLock, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self.plan = file.plan
        self.created = file.created
        self.version = file.version
        self._lock = lock
        self._connection = connection
        self._committed = set(evidence.list_runs(folder))
        self._fingerprints = dict(catalogue.load_fingerprints(connection))

    @classmethod
    def create(cls, folder: Path, plan: Plan, version: str) -> Self:
        """A new study in a folder that is missing or empty (or where creating one was interrupted)."""
        folder = folder.absolute()
        with storage_errors(folder):
            _make_folder(folder)
            _refuse_occupied(folder)
        created = datetime.now(UTC).astimezone().isoformat(timespec="seconds")
        file = StudyHead(plan=plan, created=created, version=version)
        lock = _take_lock(folder)
        try:
            with storage_errors(folder):
                _lay_out(folder, file)
                return cls(folder, file, lock, catalogue.open_for_writing(folder / catalogue.CATALOGUE))
        except BaseException:
            lock.release()
            raise

    @classmethod
    def open(cls, folder: Path, plan: Plan | None = None, *, derive: Derive | None = None) -> Self:
        """An existing study. `derive` makes the record of a run whose evidence has not yet entered the catalogue.

        Where the plan given has more blocks than the study's, the study is continued with them.

        Raises:
            StudyError: no study, another plan's study, locked, read-only, damaged, or runs to derive without `derive`.
        """
        folder = folder.absolute()
        file = load_plan_file(folder)
        if plan is not None and plan.identity != file.plan.identity:
            raise explain_difference(folder, file.plan, plan)
        if plan is not None:
            # The caller's plan is the same one, with the secrets that were never written; floors
            # stay as frozen.
            plan = replace(plan, floors=file.plan.floors)
            more = len(plan.blocks) > len(file.plan.blocks)
            file = StudyHead(plan=plan, created=file.created, version=file.version)
        _refuse_read_only(folder)
        lock = _take_lock(folder)
        try:
            with storage_errors(folder):
                evidence.clear_partial(folder)
                if plan is not None and more:
                    _write_plan(folder, file)
                if derive is not None and not (folder / catalogue.CATALOGUE).exists():
                    rebuild_catalogue(folder, derive, file.plan.identity)
                return cls._open_reconciled(folder, file, lock, derive)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def _open_reconciled(cls, folder: Path, file: StudyHead, lock: StudyLock, derive: Derive | None) -> Self:
        path = folder / catalogue.CATALOGUE
        if not path.exists():
            raise _out_of_step(folder, "the study has no catalogue")
        connection = catalogue.open_for_writing(path)
        try:
            _reconcile(folder, connection, derive, file.plan.identity)
            return cls(folder, file, lock, connection)
        except BaseException:
            connection.close()
            raise

    @classmethod
    def open_or_create(cls, folder: Path, plan: Plan, version: str, *, derive: Derive | None = None) -> Self:
        """The study of that plan, created if there is none yet."""
        if is_begun(folder):
            return cls.open(folder, plan, derive=derive)
        return cls.create(folder, plan, version)

    def committed(self) -> frozenset[str]:
        return frozenset(self._committed)

    def begin(self, identity: str) -> evidence.PartialEvidence:
        self._require_there()
        if identity in self._committed:
            raise StudyError(f"run {identity} is in the study already", where=str(self.folder))
        return evidence.PartialEvidence(self.folder, identity)

    def commit(self, *finished: FinishedRun) -> None:
        for run in finished:
            identity = getattr(run.evidence, "identity", "")
            if not identity == run.header.identity == run.record.identity:
                raise ValueError(f"evidence, header and record of different runs: {identity}, {run.header.identity}")
        for run in finished:
            self._publish(run.evidence, run.header)
            self._committed.add(run.record.identity)
        with storage_errors(self.folder), transaction(self._connection):
            for run in finished:
                catalogue.save_run(self._connection, run.record)

    def records(self) -> tuple[RunRecord, ...]:
        with catalogue_errors(self.folder):
            return catalogue.load_runs(
                self._connection,
                metrics=(self.plan.experiment.metric, BACKGROUND_LOAD, ROUND_TPS),
                series=COMPARED_SERIES,
                sessions=False,
            )

    @staticmethod
    def _publish(partial: Evidence, header: RunHeader) -> None:
        if not isinstance(partial, evidence.PartialEvidence):
            raise TypeError("the evidence of another store")
        partial.publish(header)

    def keep_fingerprint(self, name: str, fingerprint: Fingerprint) -> None:
        if self._fingerprints.get(name) == fingerprint:
            return
        self._require_there()
        with storage_errors(self.folder):
            evidence.save_fingerprint_file(self.folder, name, fingerprint)
            with transaction(self._connection):
                catalogue.save_fingerprint(self._connection, name, fingerprint)
        self._fingerprints[name] = fingerprint

    def _require_there(self) -> None:
        """A folder that was removed or moved meanwhile is not made anew, where nobody would find the rest of it."""
        if not (self.folder / PLAN_FILE).is_file() or not self._lock.holds(self.folder / LOCK_FILE):
            raise StudyError(
                "the study's folder was removed or moved while it was being measured",
                where=str(self.folder),
                remedy="put it back if you can; the same command then goes on with what is in it, or begins anew",
            )

    def fingerprint(self, name: str) -> Fingerprint | None:
        return self._fingerprints.get(name)

    def load_evidence(self, identity: str) -> Mapping[str, bytes]:
        """All files of a committed run by name, run.json included."""
        return evidence.load_evidence(self.folder, identity)

    def close(self) -> None:
        self._connection.close()
        with storage_errors(self.folder):
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def reparse_study(folder: Path, derive: Derive) -> int:
    """Rebuild the whole catalogue from evidence and swap it in at once; the number of runs."""
    folder = folder.absolute()
    file = load_plan_file(folder)
    _refuse_read_only(folder)
    lock = _take_lock(folder)
    try:
        with storage_errors(folder):
            evidence.clear_partial(folder)
            return rebuild_catalogue(folder, derive, file.plan.identity)
    finally:
        lock.release()


def is_begun(folder: Path) -> bool:
    """Whether there is a study in a folder."""
    with storage_errors(folder):
        return (folder / PLAN_FILE).exists()


def load_plan_file(folder: Path) -> StudyHead:
    """The plan of a study, and when and by which pgstrata it was created; StudyError if there is no study."""
    path = folder / PLAN_FILE
    with storage_errors(folder):
        there, merged = path.is_file(), (folder / MERGED_FILE).is_file()
    if merged and not there:
        raise StudyError(
            "this is a merged study, which only show, report and gate accept as a whole",
            where=str(folder),
            remedy=f"name one of its parts: {folder}/parts/PART; each is a study",
        )
    if not there:
        remedy = "give the folder that `pgstrata run` made; `pgstrata list` finds it"
        with suppress(OSError):
            if above := next((each for each in folder.parents[:_DEPTH] if (each / PLAN_FILE).is_file()), None):
                remedy = f"this is a folder inside a study: give the study's own folder, {above}"
        raise StudyError("there is no study here", where=str(folder), remedy=remedy)
    with storage_errors(folder):
        file = parse_plan_file(reading.read_regular(path, most=sizes.PLAN_FILE), where=str(path))
    if why := _find_change(file.plan):
        raise damaged_plan(why, str(path))
    return file


def _find_change(plan: Plan) -> str:
    """How it can be seen that a plan is not any more what it was when it got its identity; empty if it is."""
    experiment = plan.experiment
    if identify(experiment, plan.designs, plan.horizon) != plan.identity or experiment.blocks != len(plan.blocks):
        return "it was changed after it was written"
    names, cells = ({one.name for one in experiment.environments}, {one.identity for one in experiment.cells})
    strange = (run.identity for run in plan.runs if run.environment not in names or run.cell not in cells)
    return "".join(f"run {identity} has an unknown environment or cell" for identity in islice(strange, 1))


def _take_lock(folder: Path) -> StudyLock:
    with storage_errors(folder):
        return StudyLock(folder)


@as_owner_inside
def _lay_out(folder: Path, file: StudyHead) -> None:
    for name in _FOLDERS:
        files.make_folders(folder / name)
    evidence.clear_partial(folder)
    files.write_atomically(folder / EXPERIMENT_FILE, file.plan.experiment.text.encode())
    for leftover in folder.glob(f"{catalogue.CATALOGUE}*"):
        files.remove_file(leftover)
    catalogue.create_catalogue(folder / catalogue.CATALOGUE)
    # The plan comes last: a folder with a plan is a complete study.
    _write_plan(folder, file)


@as_owner_inside
def _write_plan(folder: Path, file: StudyHead) -> None:
    files.write_atomically(folder / PLAN_FILE, render_plan_file(file))


def _reconcile(folder: Path, connection: sqlite3.Connection, derive: Derive | None, plan: str) -> None:
    there = frozenset(evidence.list_runs(folder))
    known = {identity for (identity,) in connection.execute("SELECT identity FROM run")}
    if lost := sorted(known - there):
        raise _out_of_step(folder, f"the evidence of {len(lost)} catalogued runs is missing, such as {lost[0]}")
    missing = sorted(there - known)
    if missing and derive is None:
        raise _out_of_step(folder, f"{len(missing)} runs are not in the catalogue yet, such as {missing[0]}")
    for identity in missing:
        assert derive is not None
        record = derive_run(folder, identity, derive, plan)
        with transaction(connection):
            catalogue.save_run(connection, record)
    fingerprints = evidence.load_fingerprint_files(folder)
    if fingerprints != catalogue.load_fingerprints(connection):
        with transaction(connection):
            for name, fingerprint in fingerprints.items():
                catalogue.save_fingerprint(connection, name, fingerprint)


def _out_of_step(folder: Path, what: str) -> StudyError:
    return StudyError(what, where=str(folder), remedy=f"rebuild the catalogue: pgstrata reparse {folder}")


def _make_folder(folder: Path) -> None:
    try:
        files.make_folders(folder)
    except (FileExistsError, NotADirectoryError):
        raise StudyError(
            "a file exists where the study's folder would be",
            where=str(folder),
            remedy="name a folder that is empty or does not exist yet",
        ) from None


@as_owner_inside
def _refuse_occupied(folder: Path) -> None:
    if (folder / PLAN_FILE).exists():
        raise StudyError(
            "there is a study here already", where=str(folder), remedy="choose another folder for a new one"
        )
    foreign = sorted(entry.name for entry in folder.iterdir() if entry.name not in _OWN and not files.is_draft(entry))
    if foreign:
        raise StudyError(
            f"the folder is not empty: {', '.join(foreign[:3])}",
            where=str(folder),
            remedy="choose a folder that is empty or does not exist yet",
        )


def _refuse_read_only(folder: Path) -> None:
    if not os.access(folder, os.W_OK):
        raise StudyError(
            "the study cannot be written",
            where=str(folder),
            remedy="check owner and permissions, or copy the study to a place that can be written",
        )
