"""A catalogue made anew from evidence, and swapped in so that readers see the old one or the new one."""

import sqlite3
from contextlib import closing
from pathlib import Path

from pgstrata.errors import StudyError
from pgstrata.model.runs import RunRecord
from pgstrata.ports.studies import Derive
from pgstrata.store import catalogue, evidence
from pgstrata.store.database import transaction
from pgstrata.store.failures import is_damage
from pgstrata.store.serialise import parse_header
from pgstrata.system.files import remove_file, rename
from pgstrata.system.ways import as_owner

_RESTORE = (
    "restore this folder from a backup of the study; or remove it and start `pgstrata reparse` again, after which "
    "`pgstrata run` measures the run anew"
)
_NEW = f"{catalogue.CATALOGUE}.new"


def rebuild_catalogue(folder: Path, derive: Derive, plan: str) -> int:
    """Derive every run anew and replace the catalogue at once; the number of runs. The caller holds the lock."""
    new = folder / _NEW
    _remove_database(new)
    try:
        count = _fill(folder, new, derive, plan)
        _swap(new, folder / catalogue.CATALOGUE)
    finally:
        _remove_database(new)
    return count


def _fill(folder: Path, path: Path, derive: Derive, plan: str) -> int:
    catalogue.create_catalogue(path)
    count = 0
    with closing(catalogue.open_for_writing(path)) as connection, transaction(connection):
        for identity in evidence.list_runs(folder):
            catalogue.save_run(connection, derive_run(folder, identity, derive, plan))
            count += 1
        for name, fingerprint in evidence.load_fingerprint_files(folder).items():
            catalogue.save_fingerprint(connection, name, fingerprint)
    return count


def derive_run(folder: Path, identity: str, derive: Derive, plan: str) -> RunRecord:
    """The record of a run from its evidence; StudyError if the folder holds another run, or one of another plan."""
    where = str(folder / evidence.EVIDENCE / identity)
    files = evidence.load_evidence(folder, identity)
    try:
        header = parse_header(files[evidence.HEADER])
    except StudyError as error:
        raise StudyError(f"run {identity}: {error.what}", where=where, remedy=_RESTORE) from error
    if header.identity != identity or header.plan != plan:
        raise StudyError(
            f"the evidence in this place is that of run {header.identity} of plan {header.plan}",
            where=where,
            remedy="take it out of the study",
        )
    return derive(files)


@as_owner
def _swap(new: Path, path: Path) -> None:
    """One transaction of SQLite: renaming a file under a write-ahead log would let the old log spoil the new file."""
    if path.exists():
        try:
            with closing(sqlite3.connect(new)) as source, closing(catalogue.open_raw(path)) as target:
                source.backup(target)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
        else:
            return
    # No catalogue, or one that nobody can read: nothing is lost with it.
    _remove_database(path)
    rename(new, path)


def _remove_database(path: Path) -> None:
    for suffix in ("-wal", "-shm", "-journal", ""):
        remove_file(path.with_name(path.name + suffix))
