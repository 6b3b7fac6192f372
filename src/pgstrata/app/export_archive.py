"""Exports the tables of an archive to a new folder with a file for each, for other tools."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

from pgstrata.app.explain import archive_facts
from pgstrata.app.live_windows import choose_window
from pgstrata.app.new_files import name_after
from pgstrata.app.parquet import require_pyarrow
from pgstrata.errors import PgstrataError, UsageError
from pgstrata.store.archives.reader import ArchiveReader
from pgstrata.store.archives.schema import ARCHIVE
from pgstrata.store.archives.tables import TABLE_NAMES, TEXTS, ArchiveTable, ColumnKind
from pgstrata.system.files import PRIVATE, PRIVATE_FOLDER, make_folder, remove_rest, write_error, writing_new

CSV: Final = "csv"
PARQUET: Final = "parquet"
_PORTION: Final = 20_000
"""Rows that are in memory at once."""
_STEPS: Final = ("second", "minute")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveWishes:
    """What is exported of an archive, as the user wrote it: None for the default, no tables for all of them."""

    begin: str | None = None
    end: str | None = None
    step: str | None = None
    tables: tuple[str, ...] = ()
    query_text: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTables:
    """The folder that was written, and the rows of each file in it by name."""

    output: Path
    rows: Mapping[str, int]


def is_archive(folder: Path) -> bool:
    """Whether it is the folder of an archive, not of a study."""
    try:
        return (folder / ARCHIVE).exists()
    except OSError:
        return False


def export_archive(archive: Path, form: str, output: Path | None, wishes: ArchiveWishes) -> ExportedTables:
    """Write tables of an archive to a new folder for the user alone; nothing is left of it if that fails.

    Raises:
        UsageError: there is no such format, table or step, the folder exists, or pyarrow is missing.
        ArchiveError: there is no archive that can be read, or it has nothing of the window.
        DiskFullError, PgstrataError: the files cannot be written.
    """
    _choose(form, (CSV, PARQUET), "--format")
    step = _choose(wishes.step or _STEPS[0], _STEPS, "--by")
    names = [_choose(name, TABLE_NAMES, "--table") for name in dict.fromkeys(wishes.tables or TABLE_NAMES)]
    if not wishes.query_text and TEXTS in wishes.tables:
        remedy = "leave out --table texts, or --no-query-text"
        raise UsageError("texts are left out by --no-query-text", where="--table", remedy=remedy)
    names = [name for name in names if wishes.query_text or name != TEXTS]
    if form == PARQUET:
        require_pyarrow()
    target = output or Path(f"{name_after(archive)}-export")
    with ArchiveReader.open(archive) as reader:
        facts = archive_facts(reader, archive)
        span, _ = choose_window(facts, wishes.begin, wishes.end)
        rows: dict[str, int] = {}
        with _new_folder(target):
            for name in names:
                table = reader.table(name, span, facts, by_minute=step != _STEPS[0])
                with writing_new(target / f"{name}.{form}", mode=PRIVATE) as stream:
                    rows[f"{name}.{form}"] = (_write_csv if form == CSV else _write_parquet)(table, stream)
    return ExportedTables(output=target, rows=rows)


def _choose(value: str, known: Collection[str], option: str) -> str:
    if value not in known:
        remedy = f"choose one of {', '.join(known)}"
        raise UsageError(f"{value!r} is not a valid choice for an archive", where=option, remedy=remedy)
    return value


@contextmanager
def _new_folder(target: Path) -> Iterator[None]:
    """A folder that was not there, removed again if something fails."""
    try:
        make_folder(target, mode=PRIVATE_FOLDER)
    except FileExistsError:
        remedy = "remove it, or name another folder with -o"
        raise UsageError("the folder exists already", where=str(target), remedy=remedy) from None
    except OSError as error:
        raise _unwritten(target, error) from None
    try:
        yield
    except OSError as error:
        remove_rest(target)
        raise _unwritten(target, error) from None
    except BaseException:
        remove_rest(target)
        raise


def _unwritten(target: Path, error: OSError) -> PgstrataError:
    return write_error("the files cannot be written", error, where=target, remedy="name another place with -o")


class _Lines:
    """Ends lines with a line feed alone: csv quotes fields with a carriage return only where lines end with both."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, line: str) -> None:
        self._stream.write(f"{line[:-2]}\n")


def _write_csv(table: ArchiveTable, stream: IO[bytes]) -> int:
    """With a header; what is not known is an empty field."""
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="")
    writer = csv.writer(_Lines(text), lineterminator="\r\n")
    writer.writerow([name for name, _ in table.columns])
    rows = 0
    while portion := list(islice(table.rows, _PORTION)):
        writer.writerows(portion)
        rows += len(portion)
    text.detach()
    return rows


def _write_parquet(table: ArchiveTable, stream: IO[bytes]) -> int:
    """A row group for each portion."""
    pa, parquet = require_pyarrow()
    kinds = {ColumnKind.WHOLE: pa.int64(), ColumnKind.NUMBER: pa.float64(), ColumnKind.TEXT: pa.string()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in table.columns])
    rows = 0
    with parquet.ParquetWriter(stream, schema) as writer:
        while portion := list(islice(table.rows, _PORTION)):
            writer.write_table(pa.table(_columns(portion, schema, pa), schema=schema))
            rows += len(portion)
    return rows


def _columns(portion: Sequence[tuple[Any, ...]], schema: Any, pa: Any) -> list[Any]:
    return [pa.array(column, type=field.type) for column, field in zip(zip(*portion, strict=True), schema, strict=True)]
