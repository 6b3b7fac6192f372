"""An archive as data of the repository: copied whole by SQLite, its floats rounded, compressed; and back."""

from __future__ import annotations

import lzma
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import numpy as np

from pgstrata.errors import ArchiveError
from pgstrata.store.archives.schema import ARCHIVE, open_archive

LARGEST: Final = 300_000
"""Bytes that a packed archive may have."""
_ADDED: Final[Mapping[tuple[str, str], str]] = {("event", "times"): "1"}
"""Columns that came to archives after the first recordings, and what they are in those, as SQL."""
_BITS: Final = 16
_ROUNDED: Final = (
    *(f"{table}_{size}" for table in ("server", "host", "group") for size in ("second", "minute")),
    "statement_use",
)


def pack(archive: Path, packed: Path) -> int:
    """Write an archive's database into one compressed file; its size. Rates keep 16 bits, 1 in 65,536."""
    draft = packed.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    with closing(sqlite3.connect(f"{archive.as_uri()}?mode=ro", uri=True)) as source:
        source.execute("VACUUM INTO ?", (str(draft),))
    with closing(sqlite3.connect(draft, isolation_level=None)) as copy:
        copy.create_function("rounded", 1, rounded, deterministic=True)
        for table in _ROUNDED:
            columns = [name for _, name, kind, *_ in copy.execute(f"PRAGMA table_info({table})") if kind == "REAL"]
            copy.execute(f"UPDATE {table} SET {', '.join(f'{name} = rounded({name})' for name in columns)}")
        copy.execute("VACUUM")
    packed.write_bytes(lzma.compress(draft.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
    draft.unlink()
    return packed.stat().st_size


def unpack(packed: Path, folder: Path) -> Path:
    """The folder of an archive with the same content, for the product's own readers.

    It is written anew with the tables of this pgstrata, so that recordings outlive columns that come to an archive.

    Raises:
        ArchiveError: it lacks a column for which no value is known.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept, path = folder / "kept.sqlite", folder / ARCHIVE
    with lzma.open(packed) as source, kept.open("wb") as out:
        shutil.copyfileobj(source, out)
    open_archive(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ATTACH ? AS kept", (str(kept),))
        connection.execute("BEGIN")
        for table in _columns(connection, "main"):
            _copy(connection, table)
        connection.execute("COMMIT")
        connection.execute("DETACH kept")
        connection.execute("PRAGMA journal_mode = DELETE")
    kept.unlink()
    return folder


def _copy(connection: sqlite3.Connection, table: str) -> None:
    """Rows of a table; one that the kept archive does not have stays empty, and so does a column that may be NULL."""
    wanted, there = _columns(connection, "main")[table], _columns(connection, "kept").get(table)
    if there is None:
        return
    values = []
    for name, needed in wanted.items():
        value = name if name in there else _ADDED.get((table, name), "" if needed else "NULL")
        if not value:
            what = f"the recording has no column {name} in {table}"
            raise ArchiveError(what, where="packing.py", remedy="add its value to _ADDED")
        values.append(value)
    listed = ", ".join(values)
    connection.execute(f"INSERT INTO main.{table} ({', '.join(wanted)}) SELECT {listed} FROM kept.{table}")


def _columns(connection: sqlite3.Connection, schema: str) -> Mapping[str, Mapping[str, bool]]:
    """By table: its columns, and whether each must have a value."""
    tables = connection.execute(
        f"SELECT name FROM {schema}.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    )
    return {
        name: {
            column: bool(needed)
            for _, column, _, needed, *_ in connection.execute(f"PRAGMA {schema}.table_info({name})")
        }
        for (name,) in tables.fetchall()
    }


def rounded(value: float | None) -> float | None:
    """The nearest number with 16 significant bits."""
    if value is None or not np.isfinite(value):
        return value
    mantissa, exponent = np.frexp(value)
    return float(np.ldexp(np.round(mantissa * 2**_BITS) / 2**_BITS, exponent))
